//! Runs the clients of the demo in a private directory, and ends them.

use super::clients::{ClientArgs, Kind};
use crate::platform::{Event, ExitRequests};
use crate::supervisor::{EXIT_TIMEOUT, Supervisor, wait_or_kill};
use crate::ui::failure::Failure;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Instant;

pub struct Scenario {
    supervisor: Supervisor,
    programs: Vec<Child>,
    exit_requests: ExitRequests,
}

impl Scenario {
    /// Creates the directory and starts the supervisor. Call it on the main thread, before any other thread starts.
    pub fn start() -> Result<Scenario, Failure> {
        let exit_requests = ExitRequests::listen()?;
        Ok(Scenario { supervisor: Supervisor::start()?, programs: Vec::new(), exit_requests })
    }

    pub fn directory(&self) -> &Path {
        self.supervisor.directory()
    }

    pub fn tool(&self) -> &Path {
        self.supervisor.tool()
    }

    /// Starts a client in the supervisor's group. Its standard error is stored for `last_error`.
    pub fn start_client(&mut self, kind: Kind, args: &ClientArgs<'_>) -> Result<(), Failure> {
        let child = self.spawn(kind, args)?;
        self.programs.push(child);
        Ok(())
    }

    /// Starts our own binary in place of a program that does not work on this machine.
    pub fn replace(&mut self, program: usize, args: &ClientArgs<'_>) -> Result<(), Failure> {
        let child = self.spawn(Kind::Rust, args)?;
        let mut before = std::mem::replace(&mut self.programs[program], child);
        let _ = before.kill();
        let _ = before.wait();
        Ok(())
    }

    fn spawn(&self, kind: Kind, args: &ClientArgs<'_>) -> Result<Child, Failure> {
        let mut command = args.command(kind);
        let path = self.stderr_file(args.client);
        let stderr_file = File::create(&path)
            .map_err(|error| Failure::Command(format!("cannot write {}: {error}", path.display()), 1))?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr_file);
        self.supervisor.add(&mut command);
        self.exit_requests
            .spawn(command)
            .map_err(|error| Failure::Command(format!("cannot start {}: {error}", kind.name()), 1))
    }

    fn stderr_file(&self, client: usize) -> PathBuf {
        self.directory().join(format!("program-{client}.txt"))
    }

    /// Returns the last error message of a program.
    pub fn last_error(&self, client: usize) -> String {
        let text = std::fs::read(self.stderr_file(client)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing").to_owned()
    }

    /// Returns whether the program with number `program` has exited by itself.
    pub fn has_exited(&mut self, program: usize) -> bool {
        self.programs.get_mut(program).is_none_or(|child| !matches!(child.try_wait(), Ok(None)))
    }

    /// Ends all programs and the processes that they started.
    pub fn stop_clients(&mut self) {
        self.supervisor.terminate_programs(&mut self.programs);
        let by = Instant::now() + EXIT_TIMEOUT;
        for mut child in self.programs.drain(..) {
            wait_or_kill(&mut child, by);
        }
    }

    /// Returns the event that asks the demo to end, if any.
    pub fn exit_request(&self) -> Option<Event> {
        self.exit_requests.next()
    }
}

impl Drop for Scenario {
    fn drop(&mut self) {
        self.stop_clients();
    }
}
