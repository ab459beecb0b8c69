//! Recording a success by the short form leaves exactly the state that the general form leaves.

use proptest::prelude::*;
use shmlimit::{Algorithm, BreakerCommand, Policy, PolicyDraft, Priority, RuleDraft};
use shmlimit_kernel::outcome::{OutcomeClass, Report};
use shmlimit_kernel::policy::{Breaker, BreakerKind, OutcomeWindow};
use shmlimit_kernel::state::Checked;
use shmlimit_kernel::{AcquireRequest, LocalMemory, Nanos, Ticket, Time, View, decide};
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;

#[derive(Clone, Copy, Debug)]
enum Op {
    /// The class, the latency, and the actual cost.
    Call(OutcomeClass, Option<u64>, Option<u64>),
    Force(BreakerCommand),
    Step(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        10 => (prop::option::of(prop_oneof![0..SECOND, any::<u64>()]), prop::option::of(prop_oneof![0..20_u64, any::<u64>()]))
            .prop_map(|(latency, actual)| Op::Call(OutcomeClass::Ok, latency, actual)),
        1 => prop_oneof![Just(OutcomeClass::Throttled), Just(OutcomeClass::Server), Just(OutcomeClass::Net), Just(OutcomeClass::Ignored)]
            .prop_map(|class| Op::Call(class, None, None)),
        1 => prop::sample::select(BreakerCommand::ALL.to_vec()).prop_map(Op::Force),
        4 => prop_oneof![0..10_u64, 0..SECOND, Just(SECOND), 0..20 * SECOND].prop_map(Op::Step),
    ]
}

fn policy(kind: BreakerKind, max_count: u32, max_age: u64) -> Policy {
    let calls = RuleDraft::new(Algorithm::TokenBucket, 1000, Duration::from_secs(1));
    let tokens = Algorithm::ALL.map(|algorithm| RuleDraft {
        unit: Some("tokens"),
        ..RuleDraft::new(algorithm, 100, Duration::from_millis(700))
    });
    let rules: Vec<_> = std::iter::once(calls).chain(tokens).collect();
    Policy::new(&PolicyDraft {
        rules: &rules,
        breaker: Breaker::of(kind),
        window: OutcomeWindow { max_age: Duration::from_nanos(max_age), max_count, min_samples: 2 },
        ..PolicyDraft::default()
    })
    .unwrap()
}

/// The short form as its caller uses it. Its changes are undone if it declines.
fn record_success(
    m: &mut LocalMemory,
    ticket: &Ticket,
    actual: Option<&[u64; 4]>,
    latency: Option<Nanos>,
    now: Time,
) -> Option<u32> {
    let before = m.clone();
    let checked = Checked { core: m.core(), held: m.held(0) };
    let samples = decide::record_success(m, 0, ticket, actual, latency, &checked, now);
    if samples.is_none() {
        *m = before;
    }
    samples
}

proptest! {
    #[test]
    fn r129_r130_the_short_form_of_recording_agrees_with_the_general_form(
        kind in prop::sample::select(BreakerKind::ALL.to_vec()),
        max_count in 1..6_u32,
        max_age in prop_oneof![1..4_u64, 1..3 * SECOND],
        ops in prop::collection::vec(op(), 1..80),
    ) {
        let policy = policy(kind, max_count, max_age);
        let mut m = LocalMemory::new(&policy);
        let mut now = 0;
        for op in ops {
            match op {
                Op::Step(by) => now += by,
                Op::Force(force) => drop(decide::force(&mut m, force, Time(now))),
                Op::Call(class, latency, actual) => {
                    let latency = latency.map(Nanos);
                    let request = AcquireRequest { cost: [1, 10, 0, 0], priority: Priority::User };
                    let actual = actual.map(|tokens| [1, tokens, 0, 0]);
                    let Ok(ticket) = decide::acquire(&mut m, 0, &request, Time(now)) else { continue };
                    now += 1;
                    let mut short = m.clone();
                    let by_short = if class == OutcomeClass::Ok {
                        record_success(&mut short, &ticket, actual.as_ref(), latency, Time(now))
                    } else {
                        None
                    };
                    let report = Report {
                        priority: Priority::User,
                        granted_at: Some(ticket.granted_at),
                        latency,
                        actual,
                        ..Report::new(class)
                    };
                    let verdict = decide::record(&mut m, 0, Some(&ticket), &report, Time(now));
                    if let Some(samples) = by_short {
                        prop_assert_eq!(&short, &m);
                        prop_assert_eq!((samples, 0, 0), (verdict.samples, verdict.errors, verdict.consec429));
                        prop_assert_eq!(verdict.advice, Default::default());
                    }
                }
            }
        }
    }
}

#[test]
fn the_short_form_of_recording_is_used_while_calls_succeed() {
    for kind in BreakerKind::ALL {
        let mut m = LocalMemory::new(&policy(kind, 3, SECOND));
        for i in 0..20 {
            let now = Time(i * SECOND / 10);
            let ticket = decide::acquire(&mut m, 0, &AcquireRequest::one(Priority::User), now).unwrap();
            assert_eq!(record_success(&mut m, &ticket, None, None, now), Some((i as u32 + 1).min(3)));
        }
    }
}
