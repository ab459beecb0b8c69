//! Where the show is played: the programs, and the signals that end it before its time.

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
    /// Makes the directory and starts the supervisor. Call it on the main thread, before any other is started.
    pub fn set_up() -> Result<Scenario, Failure> {
        let exit_requests = ExitRequests::listen()?;
        Ok(Scenario { supervisor: Supervisor::start()?, programs: Vec::new(), exit_requests })
    }

    pub fn directory(&self) -> &Path {
        self.supervisor.directory()
    }

    pub fn tool(&self) -> &Path {
        self.supervisor.tool()
    }

    /// Starts a program under the supervisor's care. What it complains about is kept for `complaint`.
    pub fn enter(&mut self, kind: Kind, part: &ClientArgs<'_>) -> Result<(), Failure> {
        let child = self.start(kind, part)?;
        self.programs.push(child);
        Ok(())
    }

    /// Starts our own binary in the place of a program that does not work here.
    pub fn replace(&mut self, place: usize, part: &ClientArgs<'_>) -> Result<(), Failure> {
        let child = self.start(Kind::Rust, part)?;
        let mut before = std::mem::replace(&mut self.programs[place], child);
        let _ = before.kill();
        let _ = before.wait();
        Ok(())
    }

    fn start(&self, kind: Kind, part: &ClientArgs<'_>) -> Result<Child, Failure> {
        let mut command = part.command(kind);
        let path = self.complaints(part.who);
        let complaints = File::create(&path)
            .map_err(|error| Failure::Command(format!("cannot write {}: {error}", path.display()), 1))?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(complaints);
        self.supervisor.admit(&mut command);
        self.exit_requests
            .spawn(command)
            .map_err(|error| Failure::Command(format!("cannot start {}: {error}", kind.name()), 1))
    }

    fn complaints(&self, who: usize) -> PathBuf {
        self.directory().join(format!("program-{who}.txt"))
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
        self.supervisor.end_programs(&mut self.programs);
        let by = Instant::now() + EXIT_TIMEOUT;
        for mut child in self.programs.drain(..) {
            wait_or_kill(&mut child, by);
        }
    }

    /// What asks the demo to end, if anything does.
    pub fn asked_to_end(&self) -> Option<Event> {
        self.exit_requests.next()
    }
}

impl Drop for Scenario {
    fn drop(&mut self) {
        self.clear();
    }
}
