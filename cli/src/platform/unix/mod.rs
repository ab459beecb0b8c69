//! Unix: signals, polls, process groups, modes.

mod care;
mod events;
mod files;
mod machine;
mod pipes;
mod place;
mod relay;
pub mod words;

pub use care::{Care, end_programs, join, lead};
pub use events::{Endings, die_of, hear, stop_here};
pub use files::{
    LINK, can_be_run, create_public, is_at, is_device, is_link, largest_file, open_to_append,
    private_directory, try_lock, unlock,
};
pub use machine::{has_lost, is_stopped, machine, session, shows_more_than_ascii, understands_escapes};
pub use pipes::{Inlet, address, give_descriptor, reach, wait, write_to};
pub use place::{close, is_left_by_us, open_parent, room, user_name};
pub use relay::{End, News, command, start};
