//! Pipes: reads without blocking, one wait for several pipes, and opening a pipe of another process.

use crate::platform::{Stream, WaitSource};
use shmlimit_segment::sys::tool::{reach_writer, wait_for, writer_address};
use std::fs::File;
use std::io::{self, PipeWriter, Write};
use std::os::windows::io::AsHandle;
use std::process::Command;
use std::time::Duration;

pub use shmlimit_segment::sys::tool::PipeSource;

/// Waits for pipes and the command. The system cannot tell whether a stream has room to write, so it always counts as
/// ready, and a slow reader also delays this process. Nothing is lost by that: console events arrive on a separate
/// thread, and at the command itself.
pub fn wait(sources: &[WaitSource<'_>], most: Option<Duration>) -> io::Result<Option<Vec<bool>>> {
    let mut handles = Vec::new();
    for source in sources {
        match source {
            WaitSource::Pipe(pipe) => handles.push(pipe.ready_event()),
            WaitSource::Command(child) => handles.push(child.as_handle()),
            WaitSource::Room(_) => {}
        }
    }
    let is_room = |source: &WaitSource<'_>| matches!(source, WaitSource::Room(_));
    let most = if sources.iter().any(is_room) { Some(Duration::ZERO) } else { most };
    let mut ready = wait_for(&handles, most)?.into_iter();
    Ok(Some(sources.iter().map(|source| is_room(source) || ready.next().unwrap_or(false)).collect()))
}

/// Writes bytes to a stream. The command's output need not be UTF-8, which the standard library requires for a
/// console.
pub fn write_to(which: Stream, bytes: &[u8]) -> io::Result<usize> {
    let stream = match which {
        Stream::Out => io::stdout().as_handle().try_clone_to_owned(),
        Stream::Err => io::stderr().as_handle().try_clone_to_owned(),
    }?;
    File::from(stream).write(bytes)
}

/// Always fails: programs on Windows cannot inherit descriptor numbers. `texts::descriptor` has already refused the
/// option.
pub fn pass_descriptor(_command: &mut Command, _ours: PipeWriter, _number: i32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub fn pipe_address(to: &PipeWriter) -> io::Result<String> {
    writer_address(to)
}

pub fn open_pipe(address: &str) -> Option<PipeWriter> {
    reach_writer(address)
}
