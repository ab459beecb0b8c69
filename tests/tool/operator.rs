//! Operators' commands with real processes (R66, R110, R142): waiting calls react at once.

use crate::util::crash::NAME;
use crate::util::crash::child_process::ChildProcess;
use crate::util::server::client::{request, start};
use crate::util::server::{Answer, Server, breaker, limiter, roomy};
use crate::util::{boot_time, poll, queued, wait_until};
use shmlimit::{Algorithm, BreakerCommand, Limiter, Outcome, Policy, PolicyDraft, Request, RuleDraft};
use shmlimit_kernel::policy::{Breaker, BreakerKind};
use std::cell::Cell;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Less than the second after which a waiting call checks by itself.
const AT_ONCE: u64 = 500_000_000;

/// Runs the tool and returns its output.
fn tool(directory: &Path, arguments: &[&str]) -> String {
    let output =
        Command::new(crate::cli::binary()).args(arguments).env("SHMLIMIT_DIR", directory).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Starts clients that wait for a call.
fn line_up(directory: &Path, limiter: &Limiter, server: &Server, count: usize) -> Vec<ChildProcess> {
    let waiting = |i| {
        let mut client = start(directory, server);
        client.send("call /a");
        wait_until("it waits", || limiter.snapshot().unwrap().queue.len() == i + 1);
        client
    };
    (0..count).map(waiting).collect()
}

/// The shortest of several tries: a busy machine makes some tries longer, but none shorter.
fn least(mut time: impl FnMut() -> u64) -> u64 {
    (0..4).map(|_| time()).min().unwrap()
}

/// Sets the sleep to an hour, so that no test waits for its end.
fn drowsy(breaker: &mut Breaker) {
    (breaker.sleep_min, breaker.sleep_max) = (Duration::from_secs(3600), Duration::from_secs(3600));
}

/// `hold` makes four clients wait, an operator runs a command, and the clients react before they would have checked.
fn is_told_at_once(hold: fn(&Limiter), send: &str, calls: usize, hears: fn(&str) -> bool) {
    let took = least(|| {
        let server = Server::start();
        let (directory, limiter) = limiter(roomy(drowsy));
        hold(&limiter);
        let mut waiters = line_up(directory.path(), &limiter, &server, 4);
        assert_eq!(server.seen().len(), 0, "no client calls the server");
        let before = boot_time();
        tool(directory.path(), &["force", NAME, send]);
        for waiter in &mut waiters {
            let said = waiter.receive();
            assert!(hears(&said), "{send}: {said}");
        }
        let took = boot_time() - before;
        assert_eq!(limiter.snapshot().unwrap().queue.len(), 0);
        assert_eq!(server.seen().len(), calls);
        took
    });
    assert!(took < AT_ONCE, "{send}: they reacted only at their own next look, after {took} ns");
}

fn close_the_gate(limiter: &Limiter) {
    limiter.record(&Outcome::http(429, &[("Retry-After", "3600")])).unwrap();
}

fn put_to_sleep(limiter: &Limiter) {
    limiter.force(BreakerCommand::Sleep).unwrap();
}

#[test]
fn r66_cache_only_refuses_waiting_calls() {
    is_told_at_once(close_the_gate, "cache_only", 0, |said| said == "refused cache_only -");
}

#[test]
fn r63_offline_refuses_waiting_calls() {
    is_told_at_once(close_the_gate, "offline", 0, |said| said == "refused sleep -");
}

/// A change from one sleep to another, which is not a transition.
#[test]
fn r63_offline_refuses_calls_that_wait_for_the_end_of_a_sleep() {
    is_told_at_once(put_to_sleep, "offline", 0, |said| said == "refused sleep -");
}

#[test]
fn r66_normal_wakes_calls_that_wait_for_the_end_of_a_sleep() {
    is_told_at_once(put_to_sleep, "normal", 4, |said| said.ends_with(" ok -"));
}

#[test]
fn r142_clear_gate_releases_the_calls_that_wait_for_the_gate() {
    is_told_at_once(close_the_gate, "clear-gate", 4, |said| said.ends_with(" ok -"));
}

/// A waiter that cannot be woken, because no thread sleeps for it, does not delay the wake-up of others.
#[test]
fn r142_clear_gate_wakes_the_calls_behind_a_future() {
    let took = least(|| {
        let server = Server::start();
        let (directory, limiter) = limiter(roomy(drowsy));
        close_the_gate(&limiter);
        let (one, awake) = (Request::new(), Cell::new(false));
        let mut future = queued(&limiter, &one, &awake);
        assert!(poll(&mut future).is_pending());
        let mut client = start(directory.path(), &server);
        client.send("call /a");
        wait_until("it waits", || limiter.snapshot().unwrap().queue.len() == 2);
        let before = boot_time();
        tool(directory.path(), &["force", NAME, "clear-gate"]);
        assert!(client.receive().ends_with(" ok -"));
        boot_time() - before
    });
    assert!(took < AT_ONCE, "it reacted only at its own next look, after {took} ns");
}

/// An offline limiter continues with probes in every process (R63).
#[test]
fn r63_online_ends_offline_by_probing() {
    let server = Server::start();
    let (directory, limiter) = limiter(roomy(|breaker| breaker.s_probe_ok = 2));
    let mut clients = [(); 3].map(|()| start(directory.path(), &server));
    tool(directory.path(), &["force", NAME, "offline"]);
    for client in &mut clients {
        assert_eq!(request(client, "try"), "refused sleep -");
        assert_eq!(request(client, "call /a"), "refused sleep -", "no call waits for a sleep without an end");
    }
    assert!(tool(directory.path(), &["force", NAME, "online"]).contains("half_open"));
    assert_eq!(request(&mut clients[0], "try"), "granted");
    assert!(request(&mut clients[1], "try").starts_with("refused concurrency "), "one probe at a time");
    assert_eq!(request(&mut clients[0], "get /a"), "200");
    assert!(request(&mut clients[0], "record").ends_with(" ok -"));
    assert!(request(&mut clients[2], "call /a").ends_with(" half_open>normal(probe_ok)".trim_start()));
    assert_eq!(limiter.snapshot().unwrap().condition.state_name, "normal");
    assert_eq!(server.seen().len(), 2);
}

/// Forcing Normal starts over: full rate, an empty window, the first cooldown (R66).
#[test]
fn r66_normal_discards_the_health_state() {
    let server = Server::start();
    let (directory, limiter) = limiter(roomy(drowsy));
    let mut client = start(directory.path(), &server);
    server.plan("/a", std::iter::repeat_n(Answer::status(429), 5));
    for _ in 0..5 {
        request(&mut client, "call /a");
    }
    let condition = limiter.snapshot().unwrap().condition;
    assert_eq!((condition.state_name, condition.samples), ("sleep", 5));
    tool(directory.path(), &["force", NAME, "normal"]);
    let condition = limiter.snapshot().unwrap().condition;
    assert_eq!((condition.state_name, condition.samples, condition.consec429), ("normal", 0, 0));
    assert_eq!(condition.rate, 100_000.0);
    assert!(request(&mut client, "call /a").ends_with(" ok -"));
}

/// All processes see a changed setting at once, also waiting calls (R110).
#[test]
fn r110_a_higher_rate_wakes_the_calls_that_wait_for_it() {
    let took = least(|| {
        let server = Server::start();
        let (directory, limiter) = limiter(breaker(1, None, |_| {}));
        limiter.acquire(&Request::new()).unwrap().release().unwrap();
        limiter.set_policy(&hourly(1)).unwrap();
        let mut waiters = line_up(directory.path(), &limiter, &server, 3);
        let before = boot_time();
        limiter.set_policy(&breaker(100_000, None, |_| {})).unwrap();
        for waiter in &mut waiters {
            assert!(waiter.receive().ends_with(" ok -"));
        }
        assert_eq!(limiter.snapshot().unwrap().condition.outcomes.ok, 3, "no counter is lost");
        boot_time() - before
    });
    assert!(took < AT_ONCE, "they reacted only at their own next look, after {took} ns");
}

/// A policy with this number of calls an hour.
fn hourly(calls: u64) -> Policy {
    let rule = RuleDraft::new(Algorithm::TokenBucket, calls, Duration::from_secs(3600));
    let breaker = Breaker::of(BreakerKind::Fsm);
    Policy::new(&PolicyDraft { rules: &[rule], breaker, ..PolicyDraft::default() }).unwrap()
}

/// The same with the tool's `set`.
#[test]
fn r110_set_is_seen_by_every_process() {
    let server = Server::start();
    let (directory, limiter) = limiter(breaker(1000, Some(1), |_| {}));
    let mut clients = [(); 4].map(|()| start(directory.path(), &server));
    assert_eq!(request(&mut clients[0], "try"), "granted");
    assert!(request(&mut clients[1], "try").starts_with("refused concurrency "));
    clients[2].send("acquire");
    wait_until("it waits", || limiter.snapshot().unwrap().queue.len() == 1);
    tool(directory.path(), &["set", NAME, "concurrency", "3"]);
    assert_eq!(clients[2].receive(), "granted", "the waiting call is woken");
    assert_eq!(request(&mut clients[1], "try"), "granted");
    assert!(request(&mut clients[3], "try").starts_with("refused concurrency "));
    tool(directory.path(), &["set", NAME, "concurrency", "1"]);
    assert_eq!(request(&mut clients[2], "drop"), "dropped");
    assert!(
        request(&mut clients[3], "try").starts_with("refused concurrency "),
        "two permits are still held"
    );
    tool(directory.path(), &["set", NAME, "breaker.n_throttle", "1"]);
    server.plan("/a", [Answer::status(429)]);
    assert_eq!(request(&mut clients[0], "get /a"), "429");
    assert!(request(&mut clients[0], "record").ends_with(" normal>throttle(consec_429)"));
}
