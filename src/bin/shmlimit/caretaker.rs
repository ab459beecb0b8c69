//! A private directory, and a process that clears it away together with every program that works there.
//!
//! The caretaker leads the process group in which the programs run, and reads from a pipe whose other end only this
//! process has. However this one ends, be it by SIGKILL, the pipe ends with it; then the caretaker ends whoever is in
//! the group, removes the directory, and ends itself. No number of a process that could meanwhile be somebody else's
//! is ever used: the group is the caretaker's as long as it lives.

use crate::failure::Failure;
use crate::signals::ENDING;
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::unistd::{Pid, getpgrp, getpid, mkdtemp};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long the end of a process may take.
pub const ENOUGH: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(5);
/// What names of private directories begin with.
const NAME: &[u8] = b"shmlimit-";

pub struct Caretaker {
    directory: PathBuf,
    tool: PathBuf,
    child: Child,
}

impl Caretaker {
    /// Makes the directory and starts the process.
    pub fn start() -> Result<Caretaker, Failure> {
        let tool = std::env::current_exe()
            .map_err(|error| Failure::Command(format!("cannot find this program again: {error}"), 1))?;
        let directory = private_directory()?;
        match start(&tool, &directory) {
            Ok(child) => Ok(Caretaker { directory, tool, child }),
            Err(error) => {
                let _ = std::fs::remove_dir_all(&directory);
                Err(Failure::Command(format!("cannot start {}: {error}", tool.display()), 1))
            }
        }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// This tool, to be started again.
    pub fn tool(&self) -> &Path {
        &self.tool
    }

    /// The process group that programs must be in.
    pub fn group(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// Ends all programs and whatever they have started.
    pub fn end_programs(&self) {
        // The caretaker is in the group too, and deaf to it.
        let _ = killpg(Pid::from_raw(self.group()), Signal::SIGTERM);
    }
}

impl Drop for Caretaker {
    fn drop(&mut self) {
        // The sign to clear away.
        drop(self.child.stdin.take());
        reap(&mut self.child, Instant::now() + 2 * ENOUGH);
    }
}

/// Waits for a process, and ends it if that takes too long.
pub fn reap(child: &mut Child, by: Instant) {
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
    let make = |place: &Path| mkdtemp(&place.join("shmlimit-XXXXXX"));
    let usual = std::env::temp_dir();
    let wanted = std::env::var_os("TMPDIR").is_some_and(|place| !place.is_empty());
    let made = if wanted { make(&usual) } else { make(Path::new("/dev/shm")).or_else(|_| make(&usual)) };
    made.map_err(|error| {
        let message = format!("cannot make a private directory in {}: {error}", usual.display());
        Failure::Command(format!("{message}\nset TMPDIR to a directory you may write to"), 1)
    })
}

fn start(tool: &Path, directory: &Path) -> io::Result<Child> {
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
        return Err(Failure::Usage("--act-as is for the tool's own processes".to_owned()));
    };
    // It removes and kills without asking; somebody who starts it by hand shall lose nothing.
    let is_ours =
        Path::new(directory).file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(NAME));
    if !is_ours || getpgrp() != getpid() {
        return Err(Failure::Usage("--act-as is for the tool's own processes".to_owned()));
    }
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
