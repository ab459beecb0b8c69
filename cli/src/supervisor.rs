//! Manages a private directory, and a process that removes it together with every program that works there.
//!
//! The supervisor process reads from a pipe. Only this process has the other end, so the pipe closes when this
//! process ends, even if it is killed. Then the supervisor ends the programs, removes the directory, and exits.

use crate::platform::{self, SupervisedGroup, texts};
use crate::ui::failure::Failure;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The time limit for the end of a process.
pub const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(5);
/// The prefix of the names of private directories.
const NAME: &[u8] = b"shmlimit-";

pub struct Supervisor {
    directory: PathBuf,
    tool: PathBuf,
    child: Child,
}

impl Supervisor {
    /// Creates the directory and starts the supervisor process.
    pub fn start() -> Result<Supervisor, Failure> {
        let tool = std::env::current_exe()
            .map_err(|error| Failure::Command(format!("cannot find the file of this program: {error}"), 1))?;
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

    /// Returns the path of this tool, to start it again.
    pub fn tool(&self) -> &Path {
        &self.tool
    }

    /// Puts a program into the group that the supervisor ends.
    pub fn add(&self, program: &mut Command) {
        platform::join_group(program, &self.child);
    }

    /// Ends all programs and the processes that they started.
    pub fn terminate_programs(&self, programs: &mut [Child]) {
        platform::terminate_group(&self.child, programs);
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        // Closing the pipe tells the supervisor to clean up.
        drop(self.child.stdin.take());
        wait_or_kill(&mut self.child, Instant::now() + 2 * EXIT_TIMEOUT);
    }
}

/// Waits for a process, and kills it if it does not end in time.
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
        let message = format!("cannot create a private directory in {}: {error}", usual.display());
        Failure::Command(format!("{message}\nset {} to a directory you may write to", texts::TEMPORARY), 1)
    })
}

fn start(tool: &Path, directory: &Path) -> io::Result<Child> {
    let mut command = Command::new(tool);
    command.args(["demo", "--act-as", "supervisor"]).arg(directory);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = platform::spawn_group_leader(command)?;
    // From now on, the supervisor ignores the signals that end the programs.
    let mut ready = [0];
    let said = child.stdout.take().map_or(Ok(()), |mut out| out.read_exact(&mut ready));
    if let Err(error) = said {
        let _ = child.kill();
        let _ = child.wait();
        return Err(error);
    }
    Ok(child)
}

/// Runs the supervisor process: waits until its pipe closes, then cleans up.
pub fn run(words: &[String]) -> Result<ExitCode, Failure> {
    let [directory] = words else {
        return Err(Failure::Usage("--act-as is for the tool's own processes".to_owned()));
    };
    // The supervisor removes and kills without asking. So it refuses to run for any other directory or when a user
    // starts it by hand.
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
