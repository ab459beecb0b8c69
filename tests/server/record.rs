//! Recording outcomes while something else happens: the limiter is replaced, timers are due. Also the distribution of
//! random waits (R119).

use crate::util::crash::builder;
use crate::util::forks::{exit_code, forked};
use crate::util::respawn::in_own_process;
use crate::util::server::{breaker, limiter, roomy};
use crate::util::wait_until;
use shmlimit::{BreakerCommand, Outcome, Request, WaitSource};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// The grant of a limiter that was replaced: its permit vanished with the old limiter, but the server's answer
/// counts.
#[test]
fn an_outcome_counts_in_the_limiter_that_replaced_the_one_that_granted_the_call() {
    let (directory, limiter) = limiter(roomy(|_| {}));
    let (borrowed, owned) = (limiter.acquire(&Request::new()), limiter.acquire(&Request::new()));
    let owned = owned.unwrap().into_owned();
    let new = builder(directory.path()).policy(roomy(|_| {})).replace().unwrap();
    let said = borrowed.unwrap().record(&Outcome::http(429, &[("Retry-After", "600")])).unwrap();
    assert_eq!((said.wait_source, said.consec429), (Some(WaitSource::RetryAfter), 1));
    let said = owned.record(&Outcome::http(429, &[])).unwrap().unwrap();
    assert_eq!(said.consec429, 2);
    let condition = new.snapshot().unwrap().condition;
    assert!(condition.gate.is_some(), "all users of the new limiter are stopped");
    assert_eq!((condition.outcomes.throttled, new.snapshot().unwrap().in_flight), (2, 0));
}

/// Successes take a fast path. Headers are still read if the policy asks for them (R93), and latencies are recorded.
#[test]
fn headers_and_latencies_of_successes_are_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let listening =
        builder(directory.path()).policy(shmlimit::presets::policy("github").unwrap().unwrap()).open();
    let (_other, deaf) = limiter(roomy(|_| {}));
    let listening = listening.unwrap();
    let headers =
        [("X-RateLimit-Limit", "5000"), ("X-RateLimit-Remaining", "4321"), ("X-RateLimit-Reset", "60")];
    for (limiter, heard) in [(&listening, true), (&deaf, false)] {
        for _ in 0..2 {
            let outcome = Outcome::http(200, &headers).latency(std::time::Duration::from_millis(7));
            limiter.acquire(&Request::new()).unwrap().record(&outcome).unwrap();
        }
        let condition = limiter.snapshot().unwrap().condition;
        let windows = condition.pace.iter().flat_map(|pace| &pace.windows);
        assert_eq!(windows.filter(|window| window.remaining == 4321).count() == 1, heard);
        assert_eq!((condition.outcomes.ok, condition.outcomes.latency[3]), (2, 2), "up to 10 ms");
        assert_eq!(condition.outcomes.latency_sum, Duration::from_millis(14));
    }
}

/// A forked child does not own the permit of its parent's grant, but it knows when the call was granted (R140).
#[test]
fn r140_a_late_outcome_is_late_also_in_a_forked_child() {
    in_own_process!();
    let (_directory, limiter) = limiter(roomy(|breaker| breaker.probe_concurrency = 4));
    let grant = limiter.acquire(&Request::new()).unwrap();
    limiter.force(BreakerCommand::HalfOpen).unwrap();
    let child = forked(|| {
        let moved = grant.record(&Outcome::http(500, &[])).unwrap().transitions.len();
        i32::try_from(moved).unwrap()
    });
    assert_eq!(exit_code(child), 0, "nothing moves");
    let condition = limiter.snapshot().unwrap().condition;
    assert_eq!((condition.state_name, condition.outcomes.server), ("half_open", 1));
}

/// A lower full rate also limits the rate that a state derives from it (R110).
#[test]
fn r110_a_lower_rate_is_effective_in_every_state() {
    for (state, most) in [
        (BreakerCommand::Normal, 2.0),
        (BreakerCommand::Throttle, 2.0),
        (BreakerCommand::HalfOpen, 2.0),
        (BreakerCommand::Sleep, 0.0),
    ] {
        let (_directory, limiter) = limiter(breaker(100, None, |_| {}));
        limiter.force(BreakerCommand::Throttle).unwrap();
        limiter.force(state).unwrap();
        limiter.set_policy(&breaker(2, None, |_| {})).unwrap();
        assert_eq!(limiter.snapshot().unwrap().condition.rate, most, "{state:?}");
        limiter.force(BreakerCommand::HalfOpen).unwrap();
        assert_eq!(limiter.snapshot().unwrap().condition.rate, 2.0, "probing after {state:?}");
    }
}

/// Every transition is logged once, by the call that finds that it is due.
#[test]
fn r115_a_timed_transition_is_logged_once_by_any_caller_that_finds_it() {
    type Find = fn(&shmlimit::Limiter);
    let ways: [(&str, Find); 5] = [
        ("try_acquire", |limiter| drop(limiter.try_acquire(&Request::new()))),
        ("acquire", |limiter| drop(limiter.acquire(&Request::new()))),
        ("snapshot", |limiter| drop(limiter.snapshot())),
        ("set_policy", |limiter| {
            let sleep_min = limiter.policy().unwrap().breaker().sleep_min;
            let other = roomy(|breaker| breaker.sleep_min = sleep_min + Duration::from_nanos(1));
            limiter.set_policy(&other).unwrap();
        }),
        ("record", |limiter| drop(limiter.record(&Outcome::http(404, &[])))),
    ];
    for (way, find) in ways {
        let (_directory, limiter) =
            limiter(roomy(|breaker| breaker.sleep_min = Duration::from_nanos(1_000_000)));
        let log = Log::default();
        tracing::subscriber::with_default(log.clone(), || {
            limiter.force(BreakerCommand::Sleep).unwrap();
            wait_until("the sleep is over", || {
                find(&limiter);
                log.0.lock().unwrap().len() == 2
            });
            for _ in 0..3 {
                find(&limiter);
            }
        });
        let logged = log.0.lock().unwrap().clone();
        assert_eq!(logged, ["normal sleep forced", "sleep half_open sleep_expired"], "{way}");
    }
}

/// A waiting call finds the end of the sleep.
#[test]
fn r115_a_change_that_a_waiting_call_finds_is_logged() {
    let (_directory, limiter) = limiter(roomy(|breaker| breaker.sleep_min = Duration::from_millis(50)));
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), || {
        limiter.force(BreakerCommand::Sleep).unwrap();
        limiter.acquire(&Request::new()).unwrap().release().unwrap();
    });
    let logged = log.0.lock().unwrap().clone();
    assert_eq!(logged, ["normal sleep forced", "sleep half_open sleep_expired"]);
}

/// Waits are uniform between zero and the ceiling: mean ceiling / 2, standard deviation ceiling / √12 (R74, R119).
#[test]
fn r119_the_mean_and_the_deviation_of_waits_converge() {
    const WAITS: usize = 20_000;
    let (_directory, limiter) = limiter(roomy(|_| {}));
    for (attempt, ceiling) in [(1, 1.5), (3, 6.0), (9, 30.0)] {
        let waits: Vec<f64> = (0..WAITS)
            .map(|_| {
                let said = limiter.record(&Outcome::http(500, &[]).attempt(attempt)).unwrap();
                assert_eq!(said.wait_at_most.as_secs_f64(), ceiling);
                assert_eq!(said.wait_source, Some(WaitSource::Backoff));
                said.wait.as_secs_f64() / ceiling
            })
            .collect();
        let count = WAITS as f64;
        let mean = waits.iter().sum::<f64>() / count;
        let deviation = (waits.iter().map(|wait| (wait - mean).powi(2)).sum::<f64>() / count).sqrt();
        // Six standard errors of the mean and of the deviation.
        assert!((mean - 0.5).abs() < 6.0 / (12.0 * count).sqrt(), "mean {mean} of the ceiling");
        assert!(
            (deviation - 12f64.sqrt().recip()).abs() < 6.0 * 0.13 / count.sqrt(),
            "deviation {deviation}"
        );
        assert!(waits.iter().all(|wait| (0.0..=1.0).contains(wait)));
        // Consecutive waits are independent.
        let related: f64 = waits.windows(2).map(|two| (two[0] - mean) * (two[1] - mean)).sum::<f64>()
            / (count * deviation.powi(2));
        assert!(related.abs() < 6.0 / count.sqrt(), "consecutive waits are correlated: {related}");
    }
}

/// The logged transitions: from, to, reason.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        if line.0[0] == "state_transition" {
            self.0.lock().unwrap().push(line.0[1..].join(" "));
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Line([String; 4]);

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        if let Some(i) = ["event", "from", "to", "reason"].iter().position(|name| *name == field.name()) {
            value.clone_into(&mut self.0[i]);
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}
