//! Pipes, one wait for all of them, and a pipe of another process.

use crate::platform::{Source, Which};
use shmlimit_segment::sys::tool::{reach_writer, wait_for, writer_address};
use std::fs::File;
use std::io::{self, PipeWriter, Write};
use std::os::windows::io::AsHandle;
use std::process::Command;
use std::time::Duration;

pub use shmlimit_segment::sys::tool::Inlet;

/// Nobody can tell whether there is room to write, so there always is: a reader who is slow holds up this process too.
/// Nothing is lost by that. What the console says is heard on a thread of its own, and by the command itself.
pub fn wait(sources: &[Source<'_>], most: Option<Duration>) -> io::Result<Option<Vec<bool>>> {
    let mut handles = Vec::new();
    for source in sources {
        match source {
            Source::Inlet(inlet) => handles.push(inlet.news()),
            Source::Command(news) => handles.push(news.as_handle()),
            Source::Room(_) => {}
        }
    }
    let is_room = |source: &Source<'_>| matches!(source, Source::Room(_));
    let most = if sources.iter().any(is_room) { Some(Duration::ZERO) } else { most };
    let mut news = wait_for(&handles, most)?.into_iter();
    Ok(Some(sources.iter().map(|source| is_room(source) || news.next().unwrap_or(false)).collect()))
}

/// As bytes: the command's output need not be UTF-8, which the standard library wants for a console.
pub fn write_to(which: Which, bytes: &[u8]) -> io::Result<usize> {
    let stream = match which {
        Which::Out => io::stdout().as_handle().try_clone_to_owned(),
        Which::Err => io::stderr().as_handle().try_clone_to_owned(),
    }?;
    File::from(stream).write(bytes)
}

/// Programs have no numbers that they could inherit; `words::descriptor` has said so.
pub fn give_descriptor(_command: &mut Command, _ours: PipeWriter, _number: i32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub fn address(to: &PipeWriter) -> io::Result<String> {
    writer_address(to)
}

pub fn reach(address: &str) -> Option<PipeWriter> {
    reach_writer(address)
}
