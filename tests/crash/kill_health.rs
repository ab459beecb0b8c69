//! P1 for outcomes, operators and timers: SIGKILL at any instruction leaves the state exactly before or after.
//!
//! The method is that of `kill_every_instruction.rs`. The operations are recording, forcing, changing the policy,
//! timers that act, and calls that a sliding log counts. Recovery must also find effective limits that follow from
//! policy and state. A newcomer that finds others starts empty, and the copies show that.

use crate::util::crash::child_process::{self, ChildProcess, mark, ready};
use crate::util::crash::walk::{Walk, walk};
use crate::util::crash::{CONCURRENCY, builder};
use crate::util::directory;
use shmlimit::{
    Algorithm, BreakerCommand, BreakerState, Limiter, Outcome, PauseRequest, Policy, PolicyDraft, Request,
    RuleDraft,
};
use shmlimit_kernel::policy::{Breaker, BreakerKind};
use shmlimit_segment::layout::RESETS;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

/// The test that serves as the entry point of actor processes.
const CHILD_PROCESS: &str = concat!(module_path!(), "::child_process");

/// The entry point of the actors of the other tests; checks nothing by itself.
#[test]
fn child_process() {
    if let Some((role, directory)) = child_process::role() {
        run_role(&role, &directory);
        child_process::receive();
    }
}

const RETRY_IN_AN_HOUR: [(&str, &str); 1] = [("Retry-After", "3600")];

struct Settings {
    rules: [RuleDraft<'static>; 2],
    concurrency: u64,
    breaker: Breaker,
}

impl Settings {
    fn policy(&self) -> Policy {
        let Settings { rules, concurrency, breaker } = self;
        Policy::new(&PolicyDraft {
            provider: "test",
            concurrency: Some(*concurrency),
            rules,
            breaker: *breaker,
            ..PolicyDraft::default()
        })
        .unwrap()
    }
}

/// A rate that changes when it is halved; the second rule has the algorithm that the case names.
fn settings(breaker: Breaker, algorithm: Algorithm) -> Settings {
    let minute = Duration::from_secs(60);
    let requests = RuleDraft::new(Algorithm::TokenBucket, 6000, minute);
    let tokens = RuleDraft { unit: Some("tokens"), ..RuleDraft::new(algorithm, 500, minute) };
    Settings { rules: [requests, tokens], concurrency: CONCURRENCY, breaker }
}

fn with_breaker(breaker: Breaker, algorithm: Algorithm) -> Policy {
    settings(breaker, algorithm).policy()
}

/// Every 429 throttles; a sleep is over as soon as it has begun.
fn quick() -> Breaker {
    let mut breaker = slow();
    (breaker.n_throttle, breaker.n_cacheonly, breaker.sleep_min) = (1, 2, Duration::from_nanos(1));
    breaker
}

fn slow() -> Breaker {
    Breaker::of(BreakerKind::Fsm)
}

fn draft_for(role: &str) -> Policy {
    match role {
        "record ok" | "record gate" | "record settled" | "force sleep" | "force normal" => {
            with_breaker(slow(), Algorithm::Gcra)
        }
        "log" | "log cancelled" => with_breaker(slow(), Algorithm::SlidingLog),
        _ => with_breaker(quick(), Algorithm::Gcra),
    }
}

fn run_role(role: &str, directory: &Path) {
    let limiter = builder(directory).open_existing().unwrap();
    let marked = |work: &mut dyn FnMut()| {
        ready();
        mark();
        work();
        mark();
        child_process::receive();
    };
    let take = || limiter.try_acquire(&Request::new()).unwrap();
    let both = Request::new().cost("requests", 1).cost("tokens", 7);
    let force = |what: BreakerCommand| drop(limiter.force(what).unwrap());
    match role {
        "bystander" => {
            let _one = take();
            ready();
            child_process::receive();
        }
        "record ok" => {
            let mut grant = Some(take());
            let outcome = Outcome::http(200, &[]);
            marked(&mut || drop(grant.take().map(|grant| grant.record(&outcome).unwrap())));
        }
        "record gate" | "record throttle" => {
            let mut grant = Some(take());
            let outcome = Outcome::http(429, &RETRY_IN_AN_HOUR);
            marked(&mut || drop(grant.take().map(|grant| grant.record(&outcome).unwrap())));
        }
        "record settled" => {
            let mut grant = Some(limiter.try_acquire(&both).unwrap());
            let cost = [("tokens", 3)];
            let outcome = Outcome::http(503, &[]).cost(&cost);
            marked(&mut || drop(grant.take().map(|grant| grant.record(&outcome).unwrap())));
        }
        "record sleep" => {
            limiter.record(&Outcome::http(429, &[])).unwrap();
            marked(&mut || drop(limiter.record(&Outcome::http(429, &[])).unwrap()));
        }
        "force sleep" => marked(&mut || force(BreakerCommand::Sleep)),
        "force normal" => {
            force(BreakerCommand::Sleep);
            marked(&mut || force(BreakerCommand::Normal));
        }
        "pause" => marked(&mut || drop(limiter.pause(&PauseRequest::new().reason("why")).unwrap())),
        "pause again" => {
            limiter.pause(&PauseRequest::new().reason("first")).unwrap();
            let second = PauseRequest::new().duration(Duration::from_secs(3600)).reason("second");
            marked(&mut || drop(limiter.pause(&second).unwrap()));
        }
        "resume" => {
            limiter.pause(&PauseRequest::new()).unwrap();
            marked(&mut || drop(limiter.resume().unwrap()));
        }
        "pause over" => {
            // The pause is over as soon as it has begun.
            limiter.pause(&PauseRequest::new().duration(Duration::from_nanos(1))).unwrap();
            let mut grant = None;
            marked(&mut || grant = Some(limiter.try_acquire(&Request::new()).unwrap()));
        }
        "force offline" => marked(&mut || force(BreakerCommand::Offline)),
        "force clear_gate" => {
            limiter.record(&Outcome::http(503, &RETRY_IN_AN_HOUR)).unwrap();
            marked(&mut || force(BreakerCommand::ClearGate));
        }
        "set breaker" => {
            limiter.record(&Outcome::http(429, &[])).unwrap();
            let mut other = settings(quick(), Algorithm::Gcra);
            other.breaker.p_throttle = 300_000;
            marked(&mut || limiter.set_policy(&other.policy()).unwrap());
        }
        "set concurrency" | "set burst" => {
            limiter.record(&Outcome::http(429, &[])).unwrap();
            let mut other = settings(quick(), Algorithm::Gcra);
            match role {
                "set burst" => other.rules[0].burst = Some(3000),
                _ => other.concurrency = 2,
            }
            marked(&mut || limiter.set_policy(&other.policy()).unwrap());
        }
        "wake up" | "snapshot" => {
            force(BreakerCommand::Sleep);
            let mut grant = None;
            marked(&mut || match role {
                "wake up" => grant = Some(limiter.try_acquire(&Request::new()).unwrap()),
                _ => assert_eq!(limiter.snapshot().unwrap().condition.state, BreakerState::HalfOpen),
            });
        }
        "probe" => {
            force(BreakerCommand::HalfOpen);
            // The bystander's permit is not the probe's. It is written off when no outcome was reported for a while,
            // but here there is room for it.
            let mut grant = None;
            marked(&mut || grant = Some(limiter.try_acquire(&Request::new()).unwrap()));
        }
        "log" => {
            let _first = limiter.try_acquire(&both).unwrap();
            let mut grant = None;
            marked(&mut || grant = Some(limiter.try_acquire(&both).unwrap()));
        }
        "log cancelled" => {
            let _first = limiter.try_acquire(&both).unwrap();
            let mut grant = Some(limiter.try_acquire(&both).unwrap());
            marked(&mut || grant.take().unwrap().cancel().unwrap());
        }
        other => panic!("no such role: {other}"),
    }
}

/// A limiter with a permit held by another participant. A probing limiter has none, because that call would be the
/// probe.
struct Fixture {
    directory: TempDir,
    _bystander: Option<ChildProcess>,
}

impl Fixture {
    fn new(role: &str, policy: Policy) -> Fixture {
        let directory = directory();
        drop(builder(directory.path()).policy(policy).create().unwrap());
        let alone = matches!(role, "probe" | "wake up");
        let _bystander = (!alone).then(|| ChildProcess::start(CHILD_PROCESS, "bystander", directory.path()));
        Fixture { directory, _bystander }
    }

    fn limiter(&self) -> Limiter {
        builder(self.directory.path()).open_existing().unwrap()
    }
}

/// Steps through an operation that must be one transaction. Returns the fixture as the operation left it.
fn one_transaction(role: &str) -> (Walk, Fixture) {
    let fixture = Fixture::new(role, draft_for(role));
    let walk = walk(CHILD_PROCESS, role, fixture.directory.path(), false);
    assert_eq!(walk.committed.len(), 2, "{role} is one transaction");
    // Check for resets: if the effective limits did not follow from policy and state, both images would be reset and
    // then be equal.
    for image in [walk.before(), walk.after()] {
        assert_eq!(image.recovered(false).word(RESETS), Some(0), "{role}: recovery found damage");
    }
    (walk, fixture)
}

#[test]
fn p1_recording_success_is_before_or_after() {
    let (walk, _fixture) = one_transaction("record ok");
    assert_eq!(walk.before().in_flight(), walk.after().in_flight() + 1);
    assert_ne!(walk.before().rings(), walk.after().rings(), "the outcome is stored");
    assert_eq!(walk.before().effective(), walk.after().effective(), "the effective limits do not change");
}

#[test]
fn p1_recording_the_429_that_closes_the_gate_is_before_or_after() {
    let (walk, fixture) = one_transaction("record gate");
    assert_eq!(walk.before().in_flight(), walk.after().in_flight() + 1);
    assert_ne!(walk.before().effective(), walk.after().effective(), "calls must check the gate from now on");
    let gate = fixture.limiter().snapshot().unwrap().condition.gate.expect("the gate is closed");
    assert!(gate.opens_in.as_secs() > 3000 && gate.pid != 0);
}

#[test]
fn p1_recording_the_outcome_that_throttles_is_before_or_after_and_changes_the_effective_limits() {
    let (walk, fixture) = one_transaction("record throttle");
    let terms = |effective: Vec<u64>| effective[8..16].to_vec();
    assert_ne!(terms(walk.before().effective()), terms(walk.after().effective()), "half the rate");
    assert_ne!(walk.before().rules(), walk.after().rules(), "in another currency");
    assert_ne!(walk.before().health_state(), walk.after().health_state());
    let condition = fixture.limiter().snapshot().unwrap().condition;
    assert_eq!((condition.state, condition.transitions.len()), (BreakerState::Throttle, 1));
}

#[test]
fn p1_recording_with_settlement_is_before_or_after() {
    let (walk, _fixture) = one_transaction("record settled");
    let (before, after) = (walk.before().rules(), walk.after().rules());
    assert_eq!(before[..4], after[..4], "the requests cost what was reserved");
    assert_ne!(before[4..8], after[4..8], "some of the tokens were returned");
    assert_eq!(walk.before().in_flight(), walk.after().in_flight() + 1);
}

#[test]
fn p1_recording_the_outcome_that_leads_to_sleep_is_before_or_after() {
    let (_, fixture) = one_transaction("record sleep");
    assert_eq!(fixture.limiter().snapshot().unwrap().condition.transitions[1].to, "sleep");
}

#[test]
fn p1_forcing_is_before_or_after() {
    for (role, blocked) in [("force sleep", true), ("force normal", false), ("force offline", true)] {
        let (walk, _) = one_transaction(role);
        assert_ne!(walk.before().health_state(), walk.after().health_state(), "{role}");
        assert_eq!(walk.after().effective()[3] == 0, blocked, "{role}: whether calls check the breaker");
    }
    let (walk, fixture) = one_transaction("force clear_gate");
    assert_ne!(walk.before().health_state(), walk.after().health_state());
    assert!(fixture.limiter().snapshot().unwrap().condition.gate.is_none());
}

#[test]
fn p1_r148_pausing_and_resuming_are_before_or_after() {
    for (role, reason) in [("pause", Some("why")), ("pause again", Some("second")), ("resume", None)] {
        let (walk, fixture) = one_transaction(role);
        assert_ne!(walk.before().rings(), walk.after().rings(), "{role}: the words of the pause");
        assert_eq!(
            walk.after().effective()[3] == 0,
            reason.is_some(),
            "{role}: whether calls check the pause"
        );
        let paused = fixture.limiter().snapshot().unwrap().paused;
        assert_eq!(paused.and_then(|pause| pause.reason).as_deref(), reason, "{role}");
    }
}

#[test]
fn p1_r148_the_end_of_a_pause_noted_by_a_call_is_before_or_after() {
    let (walk, fixture) = one_transaction("pause over");
    assert_eq!(walk.before().in_flight() + 1, walk.after().in_flight());
    assert_eq!(walk.after().effective()[3], u64::MAX, "later calls need not check");
    assert!(fixture.limiter().snapshot().unwrap().paused.is_none());
}

#[test]
fn p1_changing_any_setting_is_before_or_after() {
    for role in ["set breaker", "set concurrency", "set burst"] {
        let (walk, _) = one_transaction(role);
        assert_ne!(walk.before().policy(), walk.after().policy(), "{role}");
        let changes = walk.before().effective() != walk.after().effective();
        assert_eq!(changes, role != "set breaker", "{role}: the effective limits");
    }
}

#[test]
fn p1_a_timer_that_acts_in_a_call_is_before_or_after() {
    let (walk, fixture) = one_transaction("wake up");
    assert_eq!((walk.before().in_flight(), walk.after().in_flight()), (0, 1));
    assert_ne!(walk.before().effective(), walk.after().effective(), "the probe rate is in effect");
    assert_eq!(fixture.limiter().snapshot().unwrap().condition.state, BreakerState::HalfOpen);
}

#[test]
fn p1_a_timer_that_acts_in_a_snapshot_is_before_or_after() {
    let (walk, _) = one_transaction("snapshot");
    assert_ne!(walk.before().health_state(), walk.after().health_state());
    assert_eq!(walk.before().in_flight(), walk.after().in_flight());
}

#[test]
fn p1_a_probe_is_before_or_after() {
    let (walk, _) = one_transaction("probe");
    assert_eq!((walk.before().in_flight(), walk.after().in_flight()), (0, 1));
    assert_ne!(
        walk.before().health_state(),
        walk.after().health_state(),
        "the time at which the probe is written off"
    );
}

#[test]
fn p1_calls_that_a_sliding_log_counts_are_before_or_after() {
    for role in ["log", "log cancelled"] {
        let (walk, _) = one_transaction(role);
        assert!(!walk.before().logs().is_empty());
        assert_ne!(walk.before().logs(), walk.after().logs(), "{role}");
        assert_ne!(walk.before().rules()[4..8], walk.after().rules()[4..8], "{role}");
    }
}
