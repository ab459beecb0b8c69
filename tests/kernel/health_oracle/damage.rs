//! Arbitrary words in health state, terms and policy: every decision ends after bounded steps and does not panic.

use proptest::prelude::*;
use shmlimit_kernel::breaker::{BreakerCommand, EFFECTIVE_WORDS};
use shmlimit_kernel::health_state::{HEALTH_STATE_HEAD_WORDS, PAUSE_AT};
use shmlimit_kernel::log_context::{LogBaseline, RecentEvents};
use shmlimit_kernel::outcome::{self, OutcomeClass, Report};
use shmlimit_kernel::pace::{self, Observation};
use shmlimit_kernel::pause::{self, PAUSE_WORDS, Pausing};
use shmlimit_kernel::policy::{POLICY_WORDS, PolicyWords};
use shmlimit_kernel::*;

fn word() -> impl Strategy<Value = u64> {
    prop_oneof![
        3 => Just(0u64),
        2 => any::<u64>(),
        2 => 0u64..8,
        1 => Just(u64::MAX),
        1 => (0u32..64).prop_map(|bit| 1 << bit),
        1 => any::<u32>().prop_map(u64::from),
        1 => (any::<u32>(), any::<u32>()).prop_map(|(a, b)| u64::from(a % 8) << 32 | u64::from(b % 8)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_words_are_decided_without_panic(
        policy in prop::collection::vec(word(), POLICY_WORDS),
        effective in prop::collection::vec(word(), EFFECTIVE_WORDS),
        health_state in prop::collection::vec(word(), HEALTH_STATE_HEAD_WORDS),
        pause in prop::collection::vec(word(), PAUSE_WORDS),
        core in [word(), word()],
        now in word(),
        (cost, state, kind) in (word(), 0u64..6, 0u64..3),
        numbers in [word(), word(), word()],
        class in prop::sample::select(vec![OutcomeClass::Ok, OutcomeClass::Throttled, OutcomeClass::Server, OutcomeClass::Net, OutcomeClass::Ignored]),
    ) {
        let mut policy: [u64; POLICY_WORDS] = policy.try_into().unwrap();
        // The breaker kind and `count_net` share a word. Most states and kinds must occur.
        policy[15] = kind;
        let mut m = LocalMemory::from_words(policy, effective.try_into().unwrap());
        for (at, word) in health_state.iter().enumerate() {
            m.set_health_state(at, [*word]);
        }
        let pause: [u64; PAUSE_WORDS] = pause.try_into().unwrap();
        m.set_health_state(PAUSE_AT, pause);
        m.set_health_state(0, [state | health_state[0] & !0xffff_ffff]);
        m.set_core(Core::from_words(core));
        m.set_held(0, Held { total: 3, background: 1 });
        let now = Time(now);
        let request = AcquireRequest { cost: [cost, 1, 0, 0], priority: Priority::User };
        decide::is_settled(&m, now);
        decide::check(&m, &request, now);
        decide::tick(&mut m, now);
        outcome::counted(&m, now);
        let ticket = decide::acquire(&mut m, 0, &request, now).ok();
        let report = Report {
            retry_after: Some(Nanos(numbers[0])), attempt: Some(numbers[1] as u32), latency: Some(Nanos(numbers[2])),
            actual: Some(numbers.into_iter().chain([0]).collect::<Vec<_>>().try_into().unwrap()),
            granted_at: Some(Time(numbers[1])), ..Report::new(class)
        };
        let advice = decide::record(&mut m, 0, ticket.as_ref(), &report, now).advice;
        advice.wait(u64::MAX);
        let said = Observation { limit: Some(numbers[0]), remaining: Some(numbers[1]), used: None, reset_after: Some(Nanos(numbers[2])) };
        decide::observe(&mut m, |_| Some(said), now);
        if let Some(adaptive) = m.adaptive_policy() {
            for (i, window) in adaptive.windows().enumerate() {
                pace::status(&m, i, window, now);
            }
        }
        if let Some(pause) = pause::paused(&m, now) {
            let _ = (pause.reason_text(), pause.is_sane(now), pause.ends_at());
        }
        let asked = Pausing { length: Some(Nanos(numbers[2])), pid: 1, program: [7; 16], reason: "x" };
        decide::pause(&mut m, &asked, now);
        decide::resume(&mut m, now);
        m.set_health_state(PAUSE_AT, pause);
        for what in BreakerCommand::ALL {
            decide::force(&mut m, what, now);
            decide::tick(&mut m, Time(u64::MAX));
            if let Ok(ticket) = decide::acquire(&mut m, 0, &AcquireRequest::one(Priority::Background), now) {
                decide::cancel(&mut m, 0, &ticket, now);
            }
        }
        let known = LogBaseline { transitions: numbers[0], paused: numbers[1] & 1 == 1 };
        if let Some(pause) = RecentEvents::since(&m, known).ended {
            pause.reason_text();
        }
        decide::reclaim(&mut m, 0);
    }
}
