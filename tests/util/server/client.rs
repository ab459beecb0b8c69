//! A client process that executes the test's commands, line by line: it asks the limiter, calls the server, and
//! records.

use super::http::{self, End};
use super::{Server, mix};
use crate::util::boot_time;
use crate::util::crash::builder;
use crate::util::crash::child_process::{self, ChildProcess, receive, send};
use shmlimit::{AcquireError, Advice, BreakerCommand, Grant, Limiter, Request, Transition};
use std::path::Path;
use std::time::Duration;

const ROLE: &str = "client";
/// The test that runs as a client. Each program that starts clients has it in its `main.rs`.
const TEST: &str = "client_process";
/// A label of a host name has at most 63 characters, so it is known without a resolver that this host does not
/// exist.
const NO_SUCH_HOST: &str =
    "no-such-host-because-its-name-is-longer-than-the-sixty-three-letters-that-a-label-may-have";

/// Starts a client of the server.
pub fn start(directory: &Path, server: &Server) -> ChildProcess {
    start_at(directory, server.port())
}

/// Starts a client of the server on this port.
pub fn start_at(directory: &Path, port: u16) -> ChildProcess {
    let mut client = ChildProcess::start(TEST, &format!("{ROLE}:{port}"), directory);
    client.send("go");
    client
}

/// Sends a command to a client and waits for its answer.
pub fn request(client: &mut ChildProcess, line: &str) -> String {
    client.send(line);
    client.receive()
}

/// The main loop of a client; call it in the test named `client_process`.
pub fn live() {
    let Some((role, directory)) = child_process::role() else { return };
    let port = role.strip_prefix(ROLE).and_then(|rest| rest.strip_prefix(':')).expect(&role);
    let limiter = builder(&directory).open_existing().unwrap();
    child_process::ready();
    let mut client = Client { limiter: &limiter, port: port.parse().unwrap(), grants: Vec::new(), end: None };
    loop {
        send(&client.obey(&receive()));
    }
}

struct Client<'l> {
    limiter: &'l Limiter,
    port: u16,
    grants: Vec<Grant<'l>>,
    end: Option<End>,
}

impl<'l> Client<'l> {
    fn obey(&mut self, line: &str) -> String {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "try" => self.keep(self.limiter.try_acquire(&Request::new())),
            "acquire" => {
                let request = match rest.parse() {
                    Ok(millis) => Request::new().timeout(Duration::from_millis(millis)),
                    Err(_) => Request::new(),
                };
                self.keep(self.limiter.acquire(&request))
            }
            "get" => self.get(rest),
            // The time at which the recording began, by the limiters' clock, and the resulting advice.
            "record" => {
                let (grant, end) = (self.grants.pop().expect("a grant"), self.end.take().expect("a call"));
                let before = boot_time();
                in_words(before, &end.with_outcome(|outcome| grant.record(outcome).unwrap()))
            }
            // The same for a call without a grant.
            "tell" => {
                let end = self.end.take().expect("a call");
                let before = boot_time();
                in_words(before, &end.with_outcome(|outcome| self.limiter.record(outcome).unwrap()))
            }
            "call" => match self.obey("acquire").as_str() {
                "granted" => {
                    self.get(rest);
                    self.obey("record")
                }
                refused => refused.to_owned(),
            },
            "drop" => {
                self.grants.clear();
                "dropped".to_owned()
            }
            "force" => {
                let what: BreakerCommand = rest.parse().expect(rest);
                transitions(&self.limiter.force(what).unwrap())
            }
            "state" => self.limiter.snapshot().unwrap().condition.state_name.to_owned(),
            "hammer" => self.hammer(rest),
            "flood" => self.flood(rest),
            "mix" => mix::run(self.limiter, self.port, rest),
            other => panic!("a client does not know {other:?}"),
        }
    }

    fn keep(&mut self, answer: Result<Grant<'l>, AcquireError>) -> String {
        match answer {
            Ok(grant) => {
                self.grants.push(grant);
                "granted".to_owned()
            }
            Err(AcquireError::Refused(refusal)) => {
                let after =
                    refusal.retry_after().map_or("-".to_owned(), |after| after.as_millis().to_string());
                format!("refused {} {after}", refusal.reason().as_str())
            }
            Err(AcquireError::Failed(error)) => panic!("{error}"),
        }
    }

    fn get(&mut self, path: &str) -> String {
        let end = match path.strip_prefix("no-such-host") {
            Some(path) => http::get(NO_SUCH_HOST, self.port, path),
            None => http::get("127.0.0.1", self.port, path),
        };
        let words = end.in_words();
        self.end = Some(end);
        words
    }

    /// Asks without waiting, over and over, and calls after every grant. Returns how often it called.
    fn hammer(&mut self, rest: &str) -> String {
        let (times, path) = rest.split_once(' ').expect("how often, and what");
        let mut called = 0;
        for _ in 0..times.parse().unwrap() {
            if let Ok(grant) = self.limiter.try_acquire(&Request::new()) {
                called += 1;
                http::get("127.0.0.1", self.port, path)
                    .with_outcome(|outcome| grant.record(outcome).unwrap());
            }
        }
        format!("called {called}")
    }

    /// Waits for its turn and calls, repeatedly for this many milliseconds. Returns how often it called.
    fn flood(&mut self, rest: &str) -> String {
        let (millis, path) = rest.split_once(' ').expect("how long, and what");
        let end = boot_time() + millis.parse::<u64>().unwrap() * 1_000_000;
        let mut called = 0;
        while boot_time() < end {
            let grant = self.limiter.acquire(&Request::new()).unwrap();
            called += 1;
            http::get("127.0.0.1", self.port, path).with_outcome(|outcome| grant.record(outcome).unwrap());
        }
        format!("called {called}")
    }
}

fn in_words(before: u64, recorded: &Advice) -> String {
    format!("{before} {} {}", recorded.outcome_class.as_str(), transitions(&recorded.transitions))
}

fn transitions(all: &[Transition]) -> String {
    let kind = shmlimit_kernel::policy::BreakerKind::Fsm;
    let words = all.iter().map(|move_| {
        let Transition { from, to, cause, .. } = move_;
        format!("{}>{}({})", from.as_str(kind), to.as_str(kind), cause.as_str())
    });
    let words: Vec<String> = words.collect();
    if words.is_empty() { "-".to_owned() } else { words.join(",") }
}
