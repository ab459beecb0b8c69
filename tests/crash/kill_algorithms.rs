//! P1 for every algorithm at once: SIGKILL at any instruction of the short form of a decision leaves the state exactly
//! before or after.
//!
//! The method is that of `kill_every_instruction.rs`. The limiter has one rule of each algorithm, in two units. A call
//! that the last rule refuses has charged all others by then, so its transaction is undone.

use crate::util::crash::child_process::{self, ChildProcess, mark, ready};
use crate::util::crash::walk::{Walk, walk};
use crate::util::crash::{CONCURRENCY, builder};
use crate::util::directory;
use shmlimit::{AcquireError, Algorithm, Outcome, Policy, PolicyDraft, Reason, Request, RuleDraft};
use std::path::Path;
use std::time::Duration;

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

/// One rule of each algorithm, in turn by calls and by tokens; the last one admits 20 tokens a day.
fn policy() -> Policy {
    let day = Duration::from_secs(86_400);
    let mut rules = Vec::new();
    for (i, algorithm) in Algorithm::ALL.into_iter().enumerate() {
        let unit = ["requests", "tokens"][i % 2];
        rules.push(RuleDraft { unit: Some(unit), ..RuleDraft::new(algorithm, 1000, day) });
    }
    let last = RuleDraft::new(Algorithm::TokenBucket, 20, day);
    rules.push(RuleDraft { unit: Some("tokens"), name: Some("last"), ..last });
    let (provider, concurrency) = ("test", Some(CONCURRENCY));
    Policy::new(&PolicyDraft { provider, concurrency, rules: &rules, ..PolicyDraft::default() }).unwrap()
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
    let request = Request::new().cost("requests", 1).cost("tokens", 7);
    let mut grant = Some(limiter.try_acquire(&request).unwrap());
    match role {
        "bystander" => {
            ready();
            child_process::receive();
        }
        "granted" => {
            let mut another = None;
            marked(&mut || another = limiter.try_acquire(&Request::new().cost("tokens", 2)).ok());
        }
        "refused" => marked(&mut || match limiter.try_acquire(&request) {
            Err(AcquireError::Refused(refusal)) => assert_eq!(refusal.reason(), Reason::Rate),
            other => panic!("expected a refusal, got {other:?}"),
        }),
        "settled" => {
            let outcome = Outcome::http(200, &[]).cost(&[("tokens", 3)]);
            marked(&mut || drop(grant.take().map(|grant| grant.record(&outcome).unwrap())));
        }
        other => panic!("no such role: {other}"),
    }
}

/// Steps through `role` beside another participant that holds a permit.
fn step_through(role: &str) -> Walk {
    let directory = directory();
    drop(builder(directory.path()).policy(policy()).create().unwrap());
    let _bystander = ChildProcess::start(CHILD_PROCESS, "bystander", directory.path());
    walk(CHILD_PROCESS, role, directory.path(), true)
}

/// The rules whose states differ.
fn changed(walk: &Walk) -> Vec<usize> {
    let (before, after) = (walk.before().rules(), walk.after().rules());
    before
        .chunks(4)
        .zip(after.chunks(4))
        .enumerate()
        .filter(|(_, (a, b))| a != b)
        .map(|(rule, _)| rule)
        .collect()
}

#[test]
fn p1_r38_a_grant_by_every_algorithm_is_before_or_after() {
    let walk = step_through("granted");
    assert_eq!(walk.committed.len(), 2, "a grant is one transaction");
    assert_eq!(walk.before().in_flight() + 1, walk.after().in_flight());
    assert_eq!(changed(&walk), (0..=Algorithm::ALL.len()).collect::<Vec<_>>(), "every rule is charged");
}

#[test]
fn p1_r38_a_refusal_by_the_last_rule_takes_nothing_from_the_others() {
    assert_eq!(step_through("refused").committed.len(), 1, "a refusal commits nothing");
}

#[test]
fn p1_r129_a_success_with_an_actual_cost_is_before_or_after() {
    let walk = step_through("settled");
    assert_eq!(walk.committed.len(), 2, "recording is one transaction");
    assert_eq!(walk.before().in_flight(), walk.after().in_flight() + 1);
    let tokens: Vec<usize> = (0..=Algorithm::ALL.len()).filter(|rule| rule % 2 == 1 || *rule == 6).collect();
    assert_eq!(changed(&walk), tokens, "every rule that counts tokens is settled");
}
