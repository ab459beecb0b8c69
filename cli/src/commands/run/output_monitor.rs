//! Reads what a command writes while it runs: the status descriptor, the record channel and the watched streams.
//!
//! One thread does all of it, including signals. It never reads without data and never writes without room (where the
//! platform can tell). So a slow reader delays the command, as it would without `run`, but does not delay signals.

use super::line_search::LineSearch;
use super::parsed_outcome::ParsedOutcome;
use crate::platform::{self, ChildEvents, PipeSource, Stream, WaitSource};
use std::io::{self, ErrorKind, PipeWriter, pipe};
use std::time::Duration;

/// No server sends longer headers. The limit is needed because a command may write forever.
const LONGEST_TEXT: usize = 1 << 20;
/// The capacity of a pipe, unless an administrator has raised it.
const PIPE_HOLDS: usize = 1 << 20;
const READ_AT_ONCE: usize = 64 << 10;
/// The number of bytes that a pipe with any room accepts without blocking (`PIPE_BUF`).
const WRITE_AT_ONCE: usize = 4096;
/// The maximum length of one wait. A longer wait wakes up once an hour and continues.
const LONGEST_SLEEP: Duration = Duration::from_secs(3600);

/// Text that the command writes into a pipe for this process.
pub struct PipeText {
    from: Option<PipeSource>,
    text: Vec<u8>,
}

impl PipeText {
    /// Creates a pipe; returns the text and the writing end.
    pub fn new() -> io::Result<(PipeText, PipeWriter)> {
        let (from, to) = PipeSource::new()?;
        Ok((PipeText { from: Some(from), text: Vec::new() }, to))
    }

    pub fn text(&self) -> &[u8] {
        &self.text
    }

    fn read(&mut self) -> usize {
        let Some(from) = &mut self.from else { return 0 };
        let count = match from.read(&mut self.text) {
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

    /// Drops old text. Keeps everything from the first line of the last response, which may be long ago; without a
    /// response, keeps the last line. Afterwards half of the room is free, so that the text is not searched again
    /// after every few bytes.
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
            // Headers this long without an end are not valid, so their beginning is enough. The end of the text stays
            // too, because another response may begin there.
            self.text.drain(LONGEST_TEXT / 2..self.text.len() - READ_AT_ONCE);
        }
    }
}

/// An output stream of the command that passes through this process.
struct WatchedStream {
    which: Stream,
    from: Option<PipeSource>,
    /// The writing end, kept for later attempts.
    writer: Option<PipeWriter>,
    pending: Vec<u8>,
    passed: usize,
    lines: LineSearch,
}

impl WatchedStream {
    fn is_empty(&self) -> bool {
        self.passed == self.pending.len()
    }

    /// Returns what to wait for next.
    fn source(&self) -> Option<WaitSource<'_>> {
        match self.is_empty() {
            true => self.from.as_ref().map(WaitSource::Pipe),
            false => Some(WaitSource::Room(self.which)),
        }
    }

    /// Reads some bytes. Returns their number and the outcome found in them.
    fn read(&mut self) -> (usize, Option<ParsedOutcome>) {
        let Some(from) = &mut self.from else { return (0, None) };
        if self.passed == self.pending.len() {
            self.pending.clear();
            self.passed = 0;
        }
        let known = self.pending.len();
        match from.read(&mut self.pending) {
            Ok(Some(count)) => (count, self.lines.feed(&self.pending[known..])),
            Ok(None) | Err(_) => {
                self.from = None;
                (0, None)
            }
        }
    }

    /// Writes some pending bytes. If the reader has closed the stream, the command finds its pipe closed at the next
    /// write.
    fn write(&mut self) -> io::Result<()> {
        let end = self.pending.len().min(self.passed + WRITE_AT_ONCE);
        let bytes = &self.pending[self.passed..end];
        match platform::write_to(self.which, bytes) {
            Ok(count) => {
                self.passed += count;
                Ok(())
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(()),
            Err(error) => {
                (self.from, self.writer) = (None, None);
                self.pending.clear();
                self.passed = 0;
                if error.kind() == ErrorKind::BrokenPipe { Ok(()) } else { Err(error) }
            }
        }
    }
}

/// All sources of the outcome of one command.
#[derive(Default)]
pub struct OutputMonitor {
    /// The text that the command writes to its status descriptor.
    pub status: Option<PipeText>,
    /// The message of a `record` that the command started.
    pub recorded: Option<PipeText>,
    streams: Vec<WatchedStream>,
    /// The last outcome found in the streams.
    found: Option<ParsedOutcome>,
    /// Why output could not be passed on.
    failed: Option<io::Error>,
}

impl OutputMonitor {
    /// Watches a stream.
    pub fn watch(&mut self, which: Stream, lines: LineSearch) -> io::Result<()> {
        let (from, writer) = PipeSource::new()?;
        let (pending, passed) = (Vec::new(), 0);
        self.streams.push(WatchedStream {
            which,
            from: Some(from),
            writer: Some(writer),
            pending,
            passed,
            lines,
        });
        Ok(())
    }

    /// Returns the pipe for a stream of the command, if the stream is watched.
    pub fn writer(&self, which: Stream) -> io::Result<Option<PipeWriter>> {
        let stream = self.streams.iter().find(|stream| stream.which == which);
        match stream {
            // The reader has closed the stream. The command finds that out when it writes, as with the real stream.
            Some(WatchedStream { writer: None, .. }) => pipe().map(|(_, to)| Some(to)),
            Some(WatchedStream { writer: Some(to), .. }) => to.try_clone().map(Some),
            None => Ok(None),
        }
    }

    /// Waits for events of `other`, but at most for `most`, and reads the output meanwhile. Returns whether there are
    /// such events.
    pub fn wait(&mut self, other: Option<&ChildEvents>, most: Option<Duration>) -> io::Result<bool> {
        let mut asked = vec![other.map(WaitSource::Command)];
        for intake in [&self.status, &self.recorded] {
            asked.push(intake.as_ref().and_then(|intake| intake.from.as_ref()).map(WaitSource::Pipe));
        }
        asked.extend(self.streams.iter().map(WatchedStream::source));
        let sources: Vec<WaitSource<'_>> = asked.iter().flatten().copied().collect();
        let Some(ready_sources) = platform::wait(&sources, most.map(|most| most.min(LONGEST_SLEEP)))? else {
            return Ok(false);
        };
        let mut ready_sources = ready_sources.into_iter();
        let ready: Vec<bool> =
            asked.iter().map(|asked| asked.is_some() && ready_sources.next().unwrap_or(false)).collect();
        let (first, streams) = ready.split_at(3);
        for (intake, ready) in [&mut self.status, &mut self.recorded].into_iter().zip(&first[1..]) {
            if let Some(intake) = intake.as_mut().filter(|_| *ready) {
                intake.read();
            }
        }
        for (stream, ready) in self.streams.iter_mut().zip(streams) {
            if !ready {
                continue;
            }
            if stream.is_empty() {
                self.found = stream.read().1.or(self.found);
            } else if let Err(error) = stream.write() {
                self.failed = Some(error);
            }
        }
        Ok(first[0])
    }

    /// Reads the output that the command wrote before it ended, and returns the outcome in it. Does not wait for
    /// other processes that still have the pipe open.
    pub fn command_ended(&mut self) -> Option<ParsedOutcome> {
        for intake in [&mut self.status, &mut self.recorded].into_iter().flatten() {
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
                let (count, found) = stream.read();
                self.found = found.or(self.found);
                match count {
                    0 => break,
                    count => all += count,
                }
            }
            self.found = stream.lines.end().or(self.found);
        }
        self.found.take()
    }

    /// Passes on the output read so far, before this tool writes its own.
    pub fn flush(&mut self) -> io::Result<()> {
        while self.streams.iter().any(|stream| !stream.is_empty()) {
            self.wait(None, None)?;
        }
        Ok(())
    }

    /// Returns whether there is, or may be, output to pass on.
    pub fn is_watching(&self) -> bool {
        !self.streams.is_empty()
    }

    /// Passes on all later output, until the processes that the command left behind have ended too, as with any pipe.
    pub fn finish(mut self) -> io::Result<()> {
        (self.status, self.recorded) = (None, None);
        self.streams.iter_mut().for_each(|stream| stream.writer = None);
        while self.streams.iter().any(|stream| stream.from.is_some() || !stream.is_empty()) {
            self.wait(None, None)?;
        }
        self.failed.map_or(Ok(()), Err)
    }
}
