//! What a command says while it runs: on the status descriptor, to us alone, and on the streams that are watched.
//!
//! One thread does it all, with the signals: it never reads without news and never writes without room, so that a reader
//! who is slow holds up the command, as it would without us, and no signal.

use super::lines::Lines;
use super::word::Word;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::write;
use std::io::{self, PipeReader, PipeWriter, Read, pipe};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// No server sends longer headers; a command may write for ever.
const LONGEST_TEXT: usize = 1 << 20;
/// The most a pipe holds, unless an administrator says more.
const PIPE_HOLDS: usize = 1 << 20;
const READ_AT_ONCE: usize = 64 << 10;
/// What a pipe with any room takes without waiting (`PIPE_BUF`).
const WRITE_AT_ONCE: usize = 4096;
/// One look at the time is enough.
const LONGEST_SLEEP: Duration = Duration::from_secs(3600);

/// Reads what is there; nothing at the end.
fn read_some(from: &mut PipeReader, into: &mut Vec<u8>) -> io::Result<Option<usize>> {
    let mut bytes = [0; READ_AT_ONCE];
    match from.read(&mut bytes) {
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

/// A pipe to us that is never waited for.
fn pipe_to_us() -> io::Result<(PipeReader, PipeWriter)> {
    let (from, to) = pipe()?;
    fcntl(&from, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok((from, to))
}

/// A text on its way to us.
pub struct Intake {
    from: Option<PipeReader>,
    text: Vec<u8>,
}

impl Intake {
    /// And the end that is written to.
    pub fn new() -> io::Result<(Intake, PipeWriter)> {
        let (from, to) = pipe_to_us()?;
        Ok((Intake { from: Some(from), text: Vec::new() }, to))
    }

    pub fn text(&self) -> &[u8] {
        &self.text
    }

    fn read(&mut self) -> usize {
        let Some(from) = &mut self.from else { return 0 };
        let count = match read_some(from, &mut self.text) {
            Ok(Some(count)) => count,
            Ok(None) | Err(_) => {
                self.from = None;
                0
            }
        };
        if self.text.len() > LONGEST_TEXT {
            self.shorten();
        }
        count
    }

    /// The last response is what counts, from its first line on, which may be long ago. Without one it is the last line.
    /// Half of the room is free then, so that it is not looked through again for every few bytes.
    fn shorten(&mut self) {
        let head = b"\nHTTP/";
        let last = self.text.windows(head.len()).rposition(|bytes| bytes == head);
        let is_response = last.is_some() || self.text.starts_with(&head[1..]);
        match last {
            Some(last) => drop(self.text.drain(..last)),
            None if !is_response => drop(self.text.drain(..self.text.len() - LONGEST_TEXT / 2)),
            None => {}
        }
        if self.text.len() > LONGEST_TEXT {
            // One head that does not end is no head; what it began with is enough. Its end stays too: another may begin.
            self.text.drain(LONGEST_TEXT / 2..self.text.len() - READ_AT_ONCE);
        }
    }
}

/// Which of the command's two streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    Out,
    Err,
}

/// A stream on its way through us.
struct Stream {
    which: Which,
    from: Option<PipeReader>,
    /// For those attempts that are to come.
    to_us: Option<PipeWriter>,
    pending: Vec<u8>,
    passed: usize,
    lines: Lines,
}

impl Stream {
    fn is_empty(&self) -> bool {
        self.passed == self.pending.len()
    }

    /// What to wait for next.
    fn poll<'f>(&'f self, out: &'f io::Stdout, err: &'f io::Stderr) -> Option<PollFd<'f>> {
        if !self.is_empty() {
            let to = match self.which {
                Which::Out => out.as_fd(),
                Which::Err => err.as_fd(),
            };
            return Some(PollFd::new(to, PollFlags::POLLOUT));
        }
        Some(PollFd::new(self.from.as_ref()?.as_fd(), PollFlags::POLLIN))
    }

    /// Reads some; how much, and what it says.
    fn read(&mut self) -> (usize, Option<Word>) {
        let Some(from) = &mut self.from else { return (0, None) };
        if self.passed == self.pending.len() {
            self.pending.clear();
            self.passed = 0;
        }
        let known = self.pending.len();
        match read_some(from, &mut self.pending) {
            Ok(Some(count)) => (count, self.lines.hear(&self.pending[known..])),
            Ok(None) | Err(_) => {
                self.from = None;
                (0, None)
            }
        }
    }

    /// Passes some on. A reader that is gone is the command's business: it finds the pipe closed at its next write.
    fn write(&mut self) -> io::Result<()> {
        let end = self.pending.len().min(self.passed + WRITE_AT_ONCE);
        let bytes = &self.pending[self.passed..end];
        let written = match self.which {
            Which::Out => write(io::stdout(), bytes),
            Which::Err => write(io::stderr(), bytes),
        };
        match written {
            Ok(count) => {
                self.passed += count;
                Ok(())
            }
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(()),
            Err(error) => {
                (self.from, self.to_us) = (None, None);
                self.pending.clear();
                self.passed = 0;
                if error == Errno::EPIPE { Ok(()) } else { Err(error.into()) }
            }
        }
    }
}

/// All that is heard of one command.
#[derive(Default)]
pub struct Ears {
    /// What the command writes to its status descriptor.
    pub status: Option<Intake>,
    /// What `record`, started by the command, tells us.
    pub told: Option<Intake>,
    streams: Vec<Stream>,
    /// The last word on the streams.
    said: Option<Word>,
    /// Why output could not be passed on.
    failed: Option<io::Error>,
}

impl Ears {
    /// Watches a stream.
    pub fn watch(&mut self, which: Which, lines: Lines) -> io::Result<()> {
        let (from, to_us) = pipe_to_us()?;
        let (pending, passed) = (Vec::new(), 0);
        self.streams.push(Stream { which, from: Some(from), to_us: Some(to_us), pending, passed, lines });
        Ok(())
    }

    /// Where the command shall write a stream to, if it is watched.
    pub fn writer(&self, which: Which) -> io::Result<Option<PipeWriter>> {
        let stream = self.streams.iter().find(|stream| stream.which == which);
        match stream {
            // Nobody reads any more: as with the real stream, that is found out by writing.
            Some(Stream { to_us: None, .. }) => pipe().map(|(_, to)| Some(to)),
            Some(Stream { to_us: Some(to), .. }) => to.try_clone().map(Some),
            None => Ok(None),
        }
    }

    /// Waits for news of `other`, but not longer than `most`, and hears the command meanwhile. Says whether there is
    /// such news.
    pub fn wait(&mut self, other: Option<BorrowedFd<'_>>, most: Option<Duration>) -> io::Result<bool> {
        let (out, err) = (io::stdout(), io::stderr());
        let mut asked = vec![other.map(|fd| PollFd::new(fd, PollFlags::POLLIN))];
        for intake in [&self.status, &self.told] {
            let from = intake.as_ref().and_then(|intake| intake.from.as_ref());
            asked.push(from.map(|from| PollFd::new(from.as_fd(), PollFlags::POLLIN)));
        }
        asked.extend(self.streams.iter().map(|stream| stream.poll(&out, &err)));
        let mut fds: Vec<PollFd<'_>> = asked.iter().flatten().cloned().collect();
        let timeout = most.map_or(PollTimeout::NONE, |most| {
            // Rounded up, so that the last millisecond is not spent asking.
            let most = most.min(LONGEST_SLEEP) + Duration::from_micros(999);
            PollTimeout::try_from(most).unwrap_or(PollTimeout::MAX)
        });
        match poll(&mut fds, timeout) {
            Ok(_) => {}
            Err(Errno::EINTR) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        let mut answers = fds.iter().map(|fd| fd.any().unwrap_or(true));
        let ready: Vec<bool> =
            asked.iter().map(|asked| asked.is_some() && answers.next().unwrap_or(false)).collect();
        drop(fds);
        drop(asked);
        let (first, streams) = ready.split_at(3);
        for (intake, ready) in [&mut self.status, &mut self.told].into_iter().zip(&first[1..]) {
            if let Some(intake) = intake.as_mut().filter(|_| *ready) {
                intake.read();
            }
        }
        for (stream, ready) in self.streams.iter_mut().zip(streams) {
            if !ready {
                continue;
            }
            if stream.is_empty() {
                self.said = stream.read().1.or(self.said);
            } else if let Err(error) = stream.write() {
                self.failed = Some(error);
            }
        }
        Ok(first[0])
    }

    /// Hears what the command said before it ended, and what that comes to. Others may still write: for them nobody waits.
    pub fn command_ended(&mut self) -> Option<Word> {
        for intake in [&mut self.status, &mut self.told].into_iter().flatten() {
            let mut all = 0;
            while all < PIPE_HOLDS {
                match intake.read() {
                    0 => break,
                    count => all += count,
                }
            }
        }
        for stream in &mut self.streams {
            let mut all = 0;
            while all < PIPE_HOLDS {
                let (count, said) = stream.read();
                self.said = said.or(self.said);
                match count {
                    0 => break,
                    count => all += count,
                }
            }
            self.said = stream.lines.end().or(self.said);
        }
        self.said.take()
    }

    /// Passes on what was heard so far, before anything else is said.
    pub fn pass_on(&mut self) -> io::Result<()> {
        while self.streams.iter().any(|stream| !stream.is_empty()) {
            self.wait(None, None)?;
        }
        Ok(())
    }

    /// Whether there is output to pass on, or may be.
    pub fn is_watching(&self) -> bool {
        !self.streams.is_empty()
    }

    /// Passes all on that is still to come: until whoever the command left behind has ended too, as in any pipe.
    pub fn finish(mut self) -> io::Result<()> {
        (self.status, self.told) = (None, None);
        self.streams.iter_mut().for_each(|stream| stream.to_us = None);
        while self.streams.iter().any(|stream| stream.from.is_some() || !stream.is_empty()) {
            self.wait(None, None)?;
        }
        self.failed.map_or(Ok(()), Err)
    }
}
