//! Retry-After with real processes and a real server (R73, R118, R132, R142): one 429 stops all processes for as long
//! as the server said, unless an operator opens the gate earlier.

use crate::util::crash::{self, child_process::ChildProcess};
use crate::util::server::client::{request, start};
use crate::util::server::{Answer, Server, breaker, limiter, roomy};
use crate::util::{boot_time, wait_until};
use shmlimit::{
    AcquireError, Algorithm, BreakerCommand, Limiter, Outcome, Policy, PolicyDraft, Reason, Request,
    RuleDraft,
};
use shmlimit_kernel::policy::{Breaker, BreakerKind};
use std::time::{Duration, SystemTime};

const SECOND: u64 = 1_000_000_000;

/// When a record began, taken from the client's answer.
fn recorded_at(said: &str) -> u64 {
    said.split(' ').next().and_then(|at| at.parse().ok()).expect(said)
}

/// Starts `N` clients.
fn clients<const N: usize>(directory: &std::path::Path, server: &Server) -> [ChildProcess; N] {
    std::array::from_fn(|_| start(directory, server))
}

/// Sends the same request to all waiters, one after the other, until all of them wait.
fn line_up(limiter: &Limiter, waiters: &mut [ChildProcess], line: &str) {
    for (i, waiter) in waiters.iter_mut().enumerate() {
        waiter.send(line);
        wait_until("it waits", || limiter.snapshot().unwrap().queue.len() == i + 1);
    }
}

fn refusal_of(limiter: &Limiter) -> Option<(Reason, Duration)> {
    match limiter.try_acquire(&Request::new()) {
        Ok(_) => None,
        Err(AcquireError::Refused(refusal)) => {
            Some((refusal.reason(), refusal.retry_after().unwrap_or_default()))
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn r118_retry_after_2_stops_all_calls_for_2_seconds_and_then_all_succeed() {
    let server = Server::start();
    server.plan("/a", [Answer::retry_after(429, "2")]);
    // With one permit no other client's call is under way when the 429 arrives.
    let (directory, limiter) = limiter(breaker(1000, Some(1), |_| {}));
    let mut all = clients::<4>(directory.path(), &server);
    assert_eq!(request(&mut all[0], "acquire"), "granted");
    let (first, others) = all.split_first_mut().unwrap();
    line_up(&limiter, others, "call /a");
    assert_eq!(request(first, "get /a"), "429");
    let closed = recorded_at(&request(first, "record"));
    assert_eq!(limiter.snapshot().unwrap().condition.state_name, "normal", "the state does not change");
    first.send("call /a");
    for client in &mut all {
        assert!(client.receive().ends_with(" ok -"));
    }
    let seen = server.seen();
    assert_eq!(seen.len(), 5);
    let early = seen.iter().skip(1).filter(|seen| seen.at < closed + 2 * SECOND).count();
    assert_eq!(early, 0, "calls before the gate opened: {seen:?}");
    assert_eq!(limiter.snapshot().unwrap().condition.outcomes.ok, 4);
}

#[test]
fn r118_retry_after_accepts_a_date() {
    let server = Server::start();
    let opens = SystemTime::now() + Duration::from_secs(2);
    let date = httpdate::fmt_http_date(opens);
    // Dates have a resolution of one second.
    let opens = httpdate::parse_http_date(&date).unwrap();
    server.plan("/a", [Answer::retry_after(503, &date)]);
    let (directory, _limiter) = limiter(roomy(|_| {}));
    let [mut one, mut other] = clients(directory.path(), &server);
    assert!(request(&mut one, "call /a").ends_with(" 5xx -"));
    assert!(request(&mut other, "try").starts_with("refused retry_after "));
    assert!(request(&mut other, "call /a").ends_with(" ok -"));
    assert!(SystemTime::now() >= opens);
    let waited = server.seen()[1].at - server.seen()[0].at;
    assert!(waited >= SECOND, "the server was called again after {waited} ns");
}

#[test]
fn r70_a_past_date_waits_one_second_and_r71_nonsense_is_ignored() {
    let server = Server::start();
    let (directory, limiter) = limiter(roomy(|breaker| breaker.n_throttle = 1000));
    let [mut one, mut other] = clients(directory.path(), &server);
    for nonsense in ["soon", "5s", "+5", "2 3", "2026-11-16T12:00:00Z", ""] {
        server.plan("/a", [Answer::retry_after(429, nonsense)]);
        assert!(request(&mut one, "call /a").contains(" 429 "), "{nonsense:?}");
        assert_eq!(request(&mut other, "try"), "granted", "{nonsense:?} closes no gate");
    }
    // Retry-After is ignored on an answer that gives no reason to back off.
    for status in [200, 304, 404] {
        server.plan("/a", [Answer::retry_after(status, "60")]);
        request(&mut one, "call /a");
        assert_eq!(request(&mut other, "try"), "granted", "Retry-After with {status}");
    }
    assert!(limiter.snapshot().unwrap().condition.gate.is_none());
    server.plan("/a", [Answer::retry_after(429, "Sun, 06 Nov 1994 08:49:37 GMT")]);
    let closed = recorded_at(&request(&mut one, "call /a"));
    let before = server.seen().len();
    assert!(request(&mut other, "try").starts_with("refused retry_after "));
    request(&mut other, "call /a");
    assert!(server.seen()[before].at >= closed + SECOND);
}

#[test]
fn r73_a_recorded_retry_after_stops_other_processes_at_their_next_call() {
    let server = Server::start();
    let (directory, limiter) = limiter(roomy(|_| {}));
    let mut all = clients::<4>(directory.path(), &server);
    for client in &mut all {
        assert_eq!(request(client, "try"), "granted");
    }
    server.plan("/a", [Answer::retry_after(429, "3600")]);
    assert!(request(&mut all[2], "call /a").contains(" 429 "));
    for client in &mut all {
        assert!(request(client, "try").starts_with("refused retry_after 3599"));
    }
    let gate = limiter.snapshot().unwrap().condition.gate.expect("it is closed");
    assert_eq!(gate.pid, all[2].pid.as_raw() as u32, "the snapshot names the process that closed the gate");
    // The later of two times wins, in any order of arrival.
    server.plan("/b", [Answer::retry_after(429, "7200"), Answer::retry_after(429, "1")]);
    for client in &mut all[..2] {
        assert_eq!(request(client, "get /b"), "429");
        request(client, "record");
    }
    for client in &mut all[..3] {
        assert!(request(client, "try").starts_with("refused retry_after 7199"));
    }
}

/// A handle that was refused caches how long the refusal probably lasts. The cache must not outlive the gate when an
/// operator opens it.
#[test]
fn r142_a_process_refused_by_the_gate_sees_at_once_that_an_operator_opened_it() {
    let (directory, limiter) = limiter(roomy(|_| {}));
    let elsewhere = crash::builder(directory.path()).open_existing().unwrap();
    for _ in 0..100 {
        limiter.record(&Outcome::http(429, &[("Retry-After", "600")])).unwrap();
        for _ in 0..3 {
            assert_eq!(refusal_of(&elsewhere).unwrap().0, Reason::RetryAfter);
        }
        limiter.force(BreakerCommand::ClearGate).unwrap();
        assert_eq!(refusal_of(&elsewhere), None);
        limiter.force(BreakerCommand::CacheOnly).unwrap();
        for _ in 0..3 {
            assert_eq!(refusal_of(&elsewhere).unwrap().0, Reason::CacheOnly);
        }
        limiter.force(BreakerCommand::Sleep).unwrap();
        for _ in 0..3 {
            assert_eq!(refusal_of(&elsewhere).unwrap().0, Reason::Sleep);
        }
        limiter.record(&Outcome::http(429, &[("Retry-After", "600")])).unwrap();
        limiter.force(BreakerCommand::Normal).unwrap();
        assert_eq!(
            refusal_of(&elsewhere).unwrap().0,
            Reason::RetryAfter,
            "forcing a state leaves the gate closed"
        );
        limiter.force(BreakerCommand::ClearGate).unwrap();
        assert_eq!(refusal_of(&elsewhere), None);
    }
}

#[test]
fn r142_clear_gate_releases_the_calls_that_wait_for_the_gate() {
    let server = Server::start();
    let (directory, limiter) = limiter(roomy(|_| {}));
    limiter.record(&Outcome::http(429, &[("Retry-After", "3600")])).unwrap();
    let mut all = clients::<4>(directory.path(), &server);
    line_up(&limiter, &mut all, "call /a");
    assert_eq!(server.seen().len(), 0);
    limiter.force(BreakerCommand::ClearGate).unwrap();
    for client in &mut all {
        assert!(client.receive().ends_with(" ok -"));
    }
    assert_eq!(server.seen().len(), 4);
}

#[test]
fn r132_a_call_whose_deadline_is_before_the_gate_opens_is_refused_at_once() {
    let server = Server::start();
    let (directory, limiter) = limiter(roomy(|_| {}));
    let mut client = start(directory.path(), &server);
    limiter.record(&Outcome::http(429, &[("Retry-After", "3600")])).unwrap();
    let before = boot_time();
    let said = request(&mut client, "acquire 1800000");
    assert!(said.starts_with("refused retry_after 3599"), "{said}");
    // The call did not wait for half an hour.
    assert!(boot_time() - before < 60 * SECOND);
    // The latest of all layers counts (R4): the breaker's sleep ends long before the gate opens.
    limiter.force(BreakerCommand::Sleep).unwrap();
    let said = request(&mut client, "acquire 1800000");
    assert!(said.starts_with("refused sleep "), "{said}");
    assert_eq!(limiter.snapshot().unwrap().queue.len(), 0);
}

/// This also applies to a call that already waits for its rate. The call would check again within a second; it is
/// woken before that.
#[test]
fn r132_a_waiting_call_is_refused_at_once_when_the_gate_closes_past_its_deadline() {
    let server = Server::start();
    let took = (0..5).map(|_| {
        let (directory, limiter) = limiter(breaker(1, None, |_| {}));
        let mut all = clients::<3>(directory.path(), &server);
        let (first, others) = all.split_first_mut().unwrap();
        assert_eq!(request(first, "acquire"), "granted");
        // Calls for an hour are ahead of the others.
        limiter.try_acquire(&Request::new()).expect_err("the burst is one");
        set_rate(&limiter, 3600);
        line_up(&limiter, others, "acquire 7200000");
        server.plan("/a", [Answer::retry_after(429, "36000")]);
        assert_eq!(request(first, "get /a"), "429");
        let closed = recorded_at(&request(first, "record"));
        for client in others {
            let said = client.receive();
            assert!(said.starts_with("refused retry_after "), "{said}");
        }
        boot_time() - closed
    });
    let least = took.min().unwrap();
    assert!(least < SECOND / 2, "they noticed only at their own next look, after {least} ns");
}

/// Sets the rate to one call in `seconds` seconds from now on.
fn set_rate(limiter: &Limiter, seconds: u64) {
    let rule = RuleDraft::new(Algorithm::TokenBucket, 1, Duration::from_secs(seconds));
    let breaker = Breaker::of(BreakerKind::Fsm);
    let policy = Policy::new(&PolicyDraft { rules: &[rule], breaker, ..PolicyDraft::default() }).unwrap();
    limiter.set_policy(&policy).unwrap();
}
