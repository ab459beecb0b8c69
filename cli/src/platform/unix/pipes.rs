//! Pipes: reads without blocking, one `poll` for several pipes, and opening a pipe of another process.

use crate::platform::{Stream, WaitSource};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::fstat;
use nix::unistd::write;
use shmlimit_segment::sys::tool;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, PipeReader, PipeWriter, Read, pipe};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::process::Command;
use std::time::Duration;

const READ_AT_ONCE: usize = 64 << 10;

/// See the contract in `platform`.
pub struct PipeSource(PipeReader);

impl PipeSource {
    pub fn new() -> io::Result<(PipeSource, PipeWriter)> {
        let (from, to) = pipe()?;
        fcntl(&from, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        Ok((PipeSource(from), to))
    }

    /// Reads the available bytes and returns their number, which may be 0. Returns `None` at the end of the pipe.
    pub fn read(&mut self, into: &mut Vec<u8>) -> io::Result<Option<usize>> {
        let mut bytes = [0; READ_AT_ONCE];
        match self.0.read(&mut bytes) {
            Ok(0) => Ok(None),
            Ok(count) => {
                into.extend_from_slice(&bytes[..count]);
                Ok(Some(count))
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(Some(0))
            }
            Err(error) => Err(error),
        }
    }
}

/// Returns `None` if a signal interrupted the wait.
pub fn wait(sources: &[WaitSource<'_>], most: Option<Duration>) -> io::Result<Option<Vec<bool>>> {
    let (out, err) = (io::stdout(), io::stderr());
    let mut fds = Vec::new();
    for source in sources {
        fds.push(match source {
            WaitSource::Pipe(source) => PollFd::new(source.0.as_fd(), PollFlags::POLLIN),
            WaitSource::Command(events) => PollFd::new(events.as_fd(), PollFlags::POLLIN),
            WaitSource::Room(Stream::Out) => PollFd::new(out.as_fd(), PollFlags::POLLOUT),
            WaitSource::Room(Stream::Err) => PollFd::new(err.as_fd(), PollFlags::POLLOUT),
        });
    }
    let timeout = most.map_or(PollTimeout::NONE, |most| {
        // Rounded up, so that the last millisecond is not spent in a busy loop.
        PollTimeout::try_from(most + Duration::from_micros(999)).unwrap_or(PollTimeout::MAX)
    });
    match poll(&mut fds, timeout) {
        Ok(_) => Ok(Some(fds.iter().map(|fd| fd.any().unwrap_or(true)).collect())),
        Err(Errno::EINTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

pub fn write_to(which: Stream, bytes: &[u8]) -> io::Result<usize> {
    Ok(match which {
        Stream::Out => write(io::stdout(), bytes),
        Stream::Err => write(io::stderr(), bytes),
    }?)
}

pub fn pass_descriptor(command: &mut Command, ours: PipeWriter, number: i32) -> io::Result<()> {
    tool::pass_descriptor(command, ours, number)
}

/// Returns the process id, the descriptor and the inode.
pub fn pipe_address(to: &PipeWriter) -> io::Result<String> {
    Ok(format!("{}:{}:{}", std::process::id(), to.as_raw_fd(), fstat(to)?.st_ino))
}

/// Opens the pipe through /proc. The inode must match, because the process id may belong to another process by then.
pub fn open_pipe(address: &str) -> Option<File> {
    let mut parts = address.split(':').map(str::parse::<u64>);
    let (process, descriptor, inode) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    let path = format!("/proc/{process}/fd/{descriptor}");
    // The file is checked before it is opened, because opening a device may have side effects.
    let is_meant = |meta: Metadata| meta.file_type().is_fifo() && meta.ino() == inode;
    std::fs::metadata(&path).ok().filter(|meta| is_meant(meta.clone()))?;
    let flags = nix::libc::O_NONBLOCK | nix::libc::O_NOCTTY;
    let pipe = OpenOptions::new().write(true).custom_flags(flags).open(path).ok()?;
    pipe.metadata().ok().filter(|meta| is_meant(meta.clone()))?;
    Some(pipe)
}
