//! Windows functions for the command-line tool: a command that ends with this process, console events, pipes that
//! can be waited for together, and a few facts.

mod console;
mod facts;
mod job;
mod pipe_source;
mod wait;

pub use facts::hold_whole_file;

pub use console::{console_and_session, listen_to_console, stop_listening};
pub use facts::{free_space, is_file_at, processor_time, try_lock_writing, unlock_writing};
pub use job::{end_children_with_us, keep_children_alive};
pub use pipe_source::{PipeSource, reach_writer, writer_address};
pub use wait::wait_for;
