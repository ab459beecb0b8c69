//! Windows: console events, jobs, named pipes and inherited access lists.

mod child_process;
mod events;
mod files;
mod machine;
mod pipes;
mod process_group;
pub mod texts;

pub use child_process::{ChildEvents, ChildExit, command, start};
pub use events::{ExitRequests, exit_by, on_events, suspend};
pub use files::{
    LINK_REFUSED, create_public, free_space, is_device, is_executable, is_link, is_own_leftover,
    is_same_file, largest_file, open_to_append, private_directory, restrict_directory, try_lock, unlock,
    unsafe_parent,
};
pub use machine::{
    is_stopped, machine, session, supports_escapes, supports_unicode, user_name, user_without_access,
};
pub use pipes::{PipeSource, open_pipe, pass_descriptor, pipe_address, wait, write_to};
pub use process_group::{SupervisedGroup, join_group, spawn_group_leader, terminate_group};
