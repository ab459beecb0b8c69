//! Windows: console events, jobs, named pipes, access by inheritance.

mod care;
mod events;
mod files;
mod machine;
mod pipes;
mod relay;
pub mod words;

pub use care::{Care, end_programs, join, lead};
pub use events::{Endings, die_of, hear, stop_here};
pub use files::{
    LINK, can_be_run, close, create_public, is_at, is_device, is_left_by_us, is_link, largest_file,
    open_parent, open_to_append, private_directory, room, try_lock, unlock,
};
pub use machine::{
    has_lost, is_stopped, machine, session, shows_more_than_ascii, understands_escapes, user_name,
};
pub use pipes::{Inlet, address, give_descriptor, reach, wait, write_to};
pub use relay::{End, News, command, start};
