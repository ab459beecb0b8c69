//! A private directory, and a process that clears it away together with every program that works there.
//!
//! The supervisor reads from a pipe whose other end only this process has. However this one ends, be it killed, the pipe
//! ends with it; then the supervisor ends the programs, removes the directory, and ends itself.

use crate::platform::{self, SupervisedGroup, texts};
use crate::ui::failure::Failure;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long the end of a process may take.
pub const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(5);
/// What names of private directories begin with.
const NAME: &[u8] = b"shmlimit-";

pub struct Supervisor {
    directory: PathBuf,
    tool: PathBuf,
    child: Child,
}

impl Supervisor {
    /// Makes the directory and starts the process.
    pub fn start() -> Result<Supervisor, Failure> {
        let tool = std::env::current_exe()
            .map_err(|error| Failure::Command(format!("cannot find this program again: {error}"), 1))?;
        let directory = private_directory()?;
        match start(&tool, &directory) {
            Ok(child) => Ok(Supervisor { directory, tool, child }),
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

    /// Puts a program into the group that the supervisor ends.
    pub fn add(&self, program: &mut Command) {
        platform::join_group(program, &self.child);
    }

    /// Ends all programs and whatever they have started.
    pub fn terminate_programs(&self, programs: &mut [Child]) {
        platform::terminate_group(&self.child, programs);
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        // The sign to clear away.
        drop(self.child.stdin.take());
        wait_or_kill(&mut self.child, Instant::now() + 2 * EXIT_TIMEOUT);
    }
}

/// Waits for a process, and ends it if that takes too long.
pub fn wait_or_kill(child: &mut Child, by: Instant) {
    while matches!(child.try_wait(), Ok(None)) {
        if Instant::now() >= by {
            let _ = child.kill();
            let _ = child.wait();
            return;
        }
        sleep(POLL);
    }
}

fn private_directory() -> Result<PathBuf, Failure> {
    platform::private_directory().map_err(|error| {
        let usual = std::env::temp_dir();
        let message = format!("cannot make a private directory in {}: {error}", usual.display());
        Failure::Command(format!("{message}\nset {} to a directory you may write to", texts::TEMPORARY), 1)
    })
}

fn start(tool: &Path, directory: &Path) -> io::Result<Child> {
    let mut command = Command::new(tool);
    command.args(["demo", "--act-as", "supervisor"]).arg(directory);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = platform::spawn_group_leader(command)?;
    // From here on it ignores the signals that end the programs.
    let mut ready = [0];
    let said = child.stdout.take().map_or(Ok(()), |mut out| out.read_exact(&mut ready));
    if let Err(error) = said {
        let _ = child.kill();
        let _ = child.wait();
        return Err(error);
    }
    Ok(child)
}

/// The supervisor process: waits for the end of its pipe, then clears away.
pub fn run(words: &[String]) -> Result<ExitCode, Failure> {
    let [directory] = words else {
        return Err(Failure::Usage("--act-as is for the tool's own processes".to_owned()));
    };
    // It removes and kills without asking, so it refuses to run for any other directory or when started by hand.
    let is_ours =
        Path::new(directory).file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(NAME));
    let Some(group) = is_ours.then(SupervisedGroup::lead).transpose()?.flatten() else {
        return Err(Failure::Usage("--act-as is for the tool's own processes".to_owned()));
    };
    io::stdout().write_all(b"!")?;
    io::stdout().flush()?;
    let _ = io::copy(&mut io::stdin(), &mut io::sink());
    group.terminate();
    let by = Instant::now() + EXIT_TIMEOUT;
    // A program that still writes there ends in a moment.
    while Path::new(directory).exists() && Instant::now() < by {
        if std::fs::remove_dir_all(directory).is_err() {
            sleep(POLL);
        }
    }
    group.kill();
    Ok(ExitCode::SUCCESS)
}
