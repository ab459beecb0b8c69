//! Observing and filling the queue of a limiter.

use super::Home;
use super::commands::{READY, run};
use serde_json::Value;
use shmlimit::{AcquireError, Grant, Limiter, Request};
use std::pin::Pin;
use std::process::{Child, Stdio};
use std::task::{Context, Waker};

/// A `shmlimit run` that holds a permit until the test lets it continue.
pub struct Holder(Child);

impl Holder {
    pub fn new(home: &Home, name: &str) -> Holder {
        let (child, _, ready) = home.start(&run(name, READY));
        assert_eq!(ready, "ready");
        Holder(child)
    }

    /// Releases the permit.
    pub fn let_go(mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}

/// Polls `status --json` until `wanted` holds. Other tests show that calls do not wait for ever.
pub fn wait_until(home: &Home, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    loop {
        let status = home.status(name);
        if wanted(&status) {
            return status;
        }
        std::thread::yield_now();
    }
}

/// The process ids of the waiting calls, in order.
pub fn waiting(status: &Value) -> Vec<u32> {
    let pid = |one: &Value| u32::try_from(one["pid"].as_u64().unwrap()).unwrap();
    status["queue"].as_array().unwrap().iter().map(pid).collect()
}

/// Starts the tool in its own session, and returns when it is in the queue.
pub fn start_waiting(home: &Home, name: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Child {
    let child = in_a_session_of_its_own(home)
        .args(arguments)
        .env_remove("SHMLIMIT_GROUP")
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until(home, name, |status| waiting(status).contains(&child.id()));
    child
}

#[cfg(unix)]
fn in_a_session_of_its_own(home: &Home) -> std::process::Command {
    let mut command = std::process::Command::new("setsid");
    command.args(["env", "--default-signal", super::binary()]).env("SHMLIMIT_DIR", home.path());
    command
}

/// Processes under one window form one group on Windows, which makes no difference to these tests.
#[cfg(windows)]
fn in_a_session_of_its_own(home: &Home) -> std::process::Command {
    home.as_a_shell_would()
}

type Waiter<'l> = Pin<Box<dyn Future<Output = Result<Grant<'l>, AcquireError>> + 'l>>;

/// Calls that have entered the queue and sleep for ever, because they are not polled again.
pub fn fill<'l>(limiter: &'l Limiter, request: &'l Request<'l>, count: usize) -> Vec<Waiter<'l>> {
    (0..count)
        .map(|i| {
            let mut waiter: Waiter<'l> =
                Box::pin(limiter.acquire_async(request, |_| std::future::pending::<()>()));
            assert!(waiter.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending(), "{i}");
            waiter
        })
        .collect()
}

/// Opens a limiter of this home in the test itself.
pub fn open(home: &Home, name: &str) -> Limiter {
    Limiter::builder(name).directory(home.path()).open_existing().unwrap()
}
