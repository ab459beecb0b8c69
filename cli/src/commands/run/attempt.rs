//! One attempt: starts the command, waits for its end and records its outcome.

use super::exit_codes::ExitCodes;
use super::output_monitor::{OutputMonitor, PipeText};
use super::verdict::{Retry, Verdict};
use super::{CANNOT_WAIT, Run, cannot_monitor};
use crate::options::{ENV_ATTEMPT, ENV_DIRECTORY, ENV_LIMITER, ENV_RUN, Location};
use crate::platform::{self, ChildExit, Stream, texts};
use crate::record_channel;
use crate::ui::failure::Failure;
use crate::ui::output;
use shmlimit::{BreakerState, Grant, Limiter};
use shmlimit_kernel::policy::BreakerKind;
use std::io::{self, ErrorKind, PipeWriter};
use std::process::{Command, Stdio};
use std::time::Instant;

const NOT_FOUND: u8 = 127;
const CANNOT_RUN: u8 = 126;

pub struct Attempt<'a> {
    pub location: &'a Location,
    pub args: &'a Run,
    pub limiter: &'a Limiter,
    pub number: u32,
    /// Whether no other attempt can follow.
    pub is_last: bool,
}

impl Attempt<'_> {
    /// Makes the attempt. Returns how the command ended, and whether to try again.
    pub fn make(
        &self,
        grant: Grant<'_>,
        monitor: &mut OutputMonitor,
    ) -> Result<(ChildExit, Option<Retry>), Failure> {
        // `record` finds the writing end by its name, so the end stays open while the command runs.
        let (command, _writer) = self.command(monitor).map_err(cannot_monitor)?;
        let program = command.get_program().to_owned();
        let began = Instant::now();
        let mut child = match platform::start(command) {
            Ok(child) => child,
            Err(error) => {
                // The call was never made, so its cost is returned.
                warn(grant.cancel());
                let (code, hint) = match error.kind() {
                    ErrorKind::NotFound => (NOT_FOUND, texts::not_found(&program.to_string_lossy())),
                    _ => (CANNOT_RUN, ""),
                };
                return Err(Failure::Command(
                    format!("cannot run {}: {error}{hint}", program.display()),
                    code,
                ));
            }
        };
        let cannot_wait =
            |error| Failure::Command(format!("cannot wait for {}: {error}", program.display()), CANNOT_WAIT);
        let end =
            child.wait_for_exit(|events, most| monitor.wait(Some(events), most)).map_err(cannot_wait)?;
        let latency = began.elapsed();
        let verdict = match self.verdict(&end, monitor) {
            Verdict::Unknown if self.is_probe_that_ended_well(&end) => Verdict::success(),
            verdict => verdict,
        };
        let attempt = self.args.retries.map(|_| self.number);
        let retry = match warn(verdict.record(grant, attempt, latency)).flatten() {
            Some(retry) if !self.is_last && !end.was_called_off() => Some(retry),
            _ => None,
        };
        // If nothing remains to be done except to exit, a signal must not change the exit code.
        if retry.is_some() || monitor.is_watching() {
            child.restore_signals().map_err(cannot_wait)?;
            monitor.flush().map_err(cannot_monitor)?;
        }
        Ok((end, retry))
    }

    /// Returns the command and the writing end of the record channel.
    fn command(&self, monitor: &mut OutputMonitor) -> io::Result<(Command, Option<PipeWriter>)> {
        let args = self.args;
        let (program, arguments) =
            args.command.split_first().unwrap_or_else(|| unreachable!("clap requires one"));
        let mut command = platform::command(program);
        command.args(arguments).env(ENV_LIMITER, self.limiter.name());
        // If this process runs inside another `run`, these variables belong to that one.
        command.env_remove(ENV_RUN).env_remove(ENV_ATTEMPT);
        if let Some(directory) = &self.location.dir {
            command.env(ENV_DIRECTORY, std::path::absolute(directory)?);
        }
        if args.retries.is_some() {
            command.env(ENV_ATTEMPT, self.number.to_string());
        }
        if let Some(to) = monitor.writer(Stream::Out)? {
            command.stdout(Stdio::from(to));
        }
        if let Some(to) = monitor.writer(Stream::Err)? {
            command.stderr(Stdio::from(to));
        }
        if let Some(number) = args.status_fd {
            let (status, writer) = PipeText::new()?;
            platform::pass_descriptor(&mut command, writer, number)?;
            monitor.status = Some(status);
        }
        if !self.may_record() {
            return Ok((command, None));
        }
        let (pipe, writer) = PipeText::new()?;
        command.env(ENV_RUN, platform::pipe_address(&writer)?);
        monitor.recorded = Some(pipe);
        Ok((command, Some(writer)))
    }

    /// Returns whether this attempt may record an outcome.
    fn may_record(&self) -> bool {
        let has_breaker = || self.limiter.policy().is_ok_and(|it| it.breaker().kind() != BreakerKind::None);
        !self.is_plain() || has_breaker()
    }

    /// Returns whether no option specifies how to determine the outcome.
    fn is_plain(&self) -> bool {
        let args = self.args;
        self.exits().is_none() && args.status_fd.is_none() && args.status_from.is_none()
    }

    /// Returns whether the call was a probe and ended well. While the breaker is not normal, only outcomes end its
    /// probing, so a plain run records exit code 0 as a success (R146). Any other exit code may mean anything. The
    /// grant distinguishes a probe from a call granted before the probing began (R140).
    fn is_probe_that_ended_well(&self, end: &ChildExit) -> bool {
        let is_normal = || self.limiter.state().is_ok_and(|state| state == BreakerState::Normal);
        self.is_plain() && end.code() == Some(0) && !is_normal()
    }

    fn exits(&self) -> Option<ExitCodes> {
        let args = self.args;
        (!args.exit.is_empty() || args.retries.is_some()).then(|| ExitCodes::new(&args.exit))
    }

    fn verdict(&self, end: &ChildExit, monitor: &mut OutputMonitor) -> Verdict {
        let found = monitor.command_ended();
        let text = |pipe: &Option<PipeText>| pipe.as_ref().map(|pipe| pipe.text().to_vec());
        let (status, recorded) = (text(&monitor.status), text(&monitor.recorded));
        if let Some(message) = recorded.and_then(|text| record_channel::last_message(&text, self.limiter)) {
            return Verdict::Advice(message);
        }
        let exit = self.exits().zip(end.code()).and_then(|(exits, code)| exits.outcome_of(code));
        Verdict::new(&String::from_utf8_lossy(&status.unwrap_or_default()), found, exit)
    }
}

/// Reports an error of recording only as a warning. The exit code is the command's, even if the permit could not be
/// released: it is reclaimed soon, when this process ends.
fn warn<T>(outcome: Result<T, shmlimit::Error>) -> Option<T> {
    outcome.map_err(|error| output::remark(&format!("warning: {error}"))).ok()
}
