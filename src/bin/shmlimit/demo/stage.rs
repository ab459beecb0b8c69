//! Where the show is played: a private directory, the processes, and a caretaker who clears all of it away.
//!
//! The caretaker is one more process. It leads the process group in which all programs run, and reads from a pipe whose
//! other end only the demo has. However the demo ends, be it by SIGKILL, the pipe ends with it; then the caretaker
//! ends whoever is in the group, removes the directory, and itself. No number of a process that could meanwhile be
//! somebody else's is ever used: the group is the caretaker's as long as it lives.

use super::cast::{Kind, Part};
use crate::failure::Failure;
use nix::sys::signal::{SigSet, Signal, killpg, raise};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{Pid, getpgrp, mkdtemp};
use shmlimit::tool::spawn_with_mask;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Signals that end the demo.
const ENDING: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];
/// How long the end of a process may take.
const ENOUGH: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(5);

pub struct Stage {
    directory: PathBuf,
    tool: PathBuf,
    caretaker: Child,
    programs: Vec<Child>,
    signals: SignalFd,
    before: SigSet,
}

impl Stage {
    /// Makes the directory and starts the caretaker. Call it on the main thread, before any other is started.
    pub fn set_up() -> Result<Stage, Failure> {
        let ours: SigSet = ENDING.into_iter().collect();
        let signals = SignalFd::with_flags(&ours, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
            .map_err(io::Error::from)?;
        let before = SigSet::thread_get_mask().map_err(io::Error::from)?;
        ours.thread_block().map_err(io::Error::from)?;
        let tool = std::env::current_exe()?;
        let directory = private_directory()?;
        match start_caretaker(&tool, &directory) {
            Ok(caretaker) => Ok(Stage { directory, tool, caretaker, programs: Vec::new(), signals, before }),
            Err(error) => {
                let _ = std::fs::remove_dir_all(&directory);
                Err(failed("the demo's caretaker", &error))
            }
        }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub fn tool(&self) -> &Path {
        &self.tool
    }

    /// Starts a program in the caretaker's group. What it complains about is kept for `complaint`.
    pub fn enter(&mut self, kind: Kind, part: &Part<'_>) -> Result<(), Failure> {
        let child = self.start(kind, part)?;
        self.programs.push(child);
        Ok(())
    }

    /// Starts our own binary in the place of a program that does not work here.
    pub fn replace(&mut self, place: usize, part: &Part<'_>) -> Result<(), Failure> {
        let child = self.start(Kind::Rust, part)?;
        let mut before = std::mem::replace(&mut self.programs[place], child);
        let _ = before.kill();
        let _ = before.wait();
        Ok(())
    }

    fn start(&self, kind: Kind, part: &Part<'_>) -> Result<Child, Failure> {
        let mut command = part.command(kind);
        let complaints = File::create(self.complaints(part.who))?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(complaints);
        command.process_group(self.caretaker.id().cast_signed());
        spawn_with_mask(command, self.before).map_err(|error| failed(kind.name(), &error))
    }

    fn complaints(&self, who: usize) -> PathBuf {
        self.directory.join(format!("program-{who}.txt"))
    }

    /// The last thing that a program complained about.
    pub fn complaint(&self, who: usize) -> String {
        let text = std::fs::read(self.complaints(who)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing").to_owned()
    }

    /// Whether the program that entered as number `place` has ended by itself.
    pub fn has_left(&mut self, place: usize) -> bool {
        self.programs.get_mut(place).is_none_or(|child| !matches!(child.try_wait(), Ok(None)))
    }

    /// Ends all programs and whatever they have started.
    pub fn clear(&mut self) {
        // The caretaker is in the group too, and deaf to it.
        let _ = killpg(Pid::from_raw(self.caretaker.id().cast_signed()), Signal::SIGTERM);
        let by = Instant::now() + ENOUGH;
        for mut child in self.programs.drain(..) {
            reap(&mut child, by);
        }
    }

    /// The signal that asks the demo to end, if there was one.
    pub fn asked_to_end(&self) -> Option<Signal> {
        let news = self.signals.read_signal().ok().flatten()?;
        Signal::try_from(news.ssi_signo.cast_signed()).ok()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.clear();
        // The caretaker's sign to do the rest.
        drop(self.caretaker.stdin.take());
        reap(&mut self.caretaker, Instant::now() + ENOUGH);
    }
}

/// Waits for a process, and ends it if that takes too long.
fn reap(child: &mut Child, by: Instant) {
    while matches!(child.try_wait(), Ok(None)) {
        if Instant::now() >= by {
            let _ = child.kill();
            let _ = child.wait();
            return;
        }
        sleep(POLL);
    }
}

/// Where the user wants such things, else in memory if there is such a place, so that no disk takes part.
fn private_directory() -> Result<PathBuf, Failure> {
    let make = |place: &Path| mkdtemp(&place.join("shmlimit-demo-XXXXXX"));
    let usual = std::env::temp_dir();
    let wanted = std::env::var_os("TMPDIR").is_some_and(|place| !place.is_empty());
    let made = if wanted { make(&usual) } else { make(Path::new("/dev/shm")).or_else(|_| make(&usual)) };
    made.map_err(|error| {
        Failure::Command(format!("cannot make a private directory in {}: {error}", usual.display()), 1)
    })
}

fn start_caretaker(tool: &Path, directory: &Path) -> io::Result<Child> {
    let mut command = Command::new(tool);
    command.args(["demo", "--act-as", "caretaker"]).arg(directory).process_group(0);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    // From here on it is deaf to what ends the programs.
    let mut ready = [0];
    let said = child.stdout.take().map_or(Ok(()), |mut out| out.read_exact(&mut ready));
    if let Err(error) = said {
        let _ = child.kill();
        let _ = child.wait();
        return Err(error);
    }
    Ok(child)
}

/// The caretaker's life.
pub fn take_care(words: &[String]) -> Result<ExitCode, Failure> {
    let [directory] = words else {
        return Err(Failure::Usage("--act-as is for the demo's own processes".to_owned()));
    };
    ENDING.into_iter().collect::<SigSet>().thread_block().map_err(io::Error::from)?;
    io::stdout().write_all(b"!")?;
    io::stdout().flush()?;
    let _ = io::copy(&mut io::stdin(), &mut io::sink());
    let _ = killpg(getpgrp(), Signal::SIGTERM);
    let by = Instant::now() + ENOUGH;
    // Whoever was about to write there ends in a moment.
    while Path::new(directory).exists() && Instant::now() < by {
        if std::fs::remove_dir_all(directory).is_err() {
            sleep(POLL);
        }
    }
    let _ = killpg(getpgrp(), Signal::SIGKILL);
    Ok(ExitCode::SUCCESS)
}

/// Ends as the signal wants it, so that a shell sees why.
pub fn end_by(signal: Signal) -> ExitCode {
    let _ = raise(signal);
    let _ = SigSet::from(signal).thread_unblock();
    ExitCode::from(u8::try_from(128 + signal as i32).unwrap_or(1))
}

fn failed(what: &str, error: &io::Error) -> Failure {
    Failure::Command(format!("cannot start {what}: {error}"), 1)
}
