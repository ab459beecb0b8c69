//! Recording a success by the fast path leaves exactly the state that the full path leaves.

use proptest::prelude::*;
use shmlimit::{Algorithm, BreakerCommand, Policy, PolicyDraft, Priority, RuleDraft};
use shmlimit_kernel::outcome::{OutcomeClass, Report};
use shmlimit_kernel::policy::{Breaker, BreakerKind, OutcomeWindow};
use shmlimit_kernel::{AcquireRequest, LocalMemory, Time, decide};
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;

#[derive(Clone, Copy, Debug)]
enum Op {
    Call(OutcomeClass, Option<u64>),
    Force(BreakerCommand),
    Step(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        10 => prop::option::of(prop_oneof![0..SECOND, any::<u64>()])
            .prop_map(|latency| Op::Call(OutcomeClass::Ok, latency)),
        1 => prop_oneof![Just(OutcomeClass::Throttled), Just(OutcomeClass::Server), Just(OutcomeClass::Net), Just(OutcomeClass::Ignored)]
            .prop_map(|class| Op::Call(class, None)),
        1 => prop::sample::select(BreakerCommand::ALL.to_vec()).prop_map(Op::Force),
        4 => prop_oneof![0..10_u64, 0..SECOND, Just(SECOND), 0..20 * SECOND].prop_map(Op::Step),
    ]
}

fn policy(kind: BreakerKind, max_count: u32, max_age: u64) -> Policy {
    let rule = RuleDraft::new(Algorithm::TokenBucket, 1000, Duration::from_secs(1));
    Policy::new(&PolicyDraft {
        rules: &[rule],
        breaker: Breaker::of(kind),
        window: OutcomeWindow { max_age: Duration::from_nanos(max_age), max_count, min_samples: 2 },
        ..PolicyDraft::default()
    })
    .unwrap()
}

proptest! {
    #[test]
    fn r130_fast_recording_agrees_with_full_recording(
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
                Op::Call(class, latency) => {
                    let latency = latency.map(shmlimit_kernel::Nanos);
                    let request = AcquireRequest::one(Priority::User);
                    let Ok(ticket) = decide::acquire(&mut m, 0, &request, Time(now)) else { continue };
                    now += 1;
                    let mut short = m.clone();
                    let fine = if class == OutcomeClass::Ok {
                        decide::record_success_fast(&mut short, 0, &ticket, latency, Time(now))
                    } else {
                        None
                    };
                    if fine.is_none() {
                        prop_assert_eq!(&short, &m, "who declines changes nothing");
                    }
                    let report = Report {
                        priority: Priority::User,
                        granted_at: Some(ticket.granted_at),
                        latency,
                        ..Report::new(class)
                    };
                    let verdict = decide::record(&mut m, 0, Some(&ticket), &report, Time(now));
                    if let Some(samples) = fine {
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
fn fast_recording_is_used_while_calls_succeed() {
    for kind in BreakerKind::ALL {
        let mut m = LocalMemory::new(&policy(kind, 3, SECOND));
        for i in 0..20 {
            let now = Time(i * SECOND / 10);
            let ticket = decide::acquire(&mut m, 0, &AcquireRequest::one(Priority::User), now).unwrap();
            assert_eq!(
                decide::record_success_fast(&mut m, 0, &ticket, None, now),
                Some((i as u32 + 1).min(3))
            );
        }
    }
}
