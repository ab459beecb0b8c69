//! Rare cases of the rate algorithms: calls behind other calls, cancelled calls, changed terms, a lost state, and
//! damaged words.

use proptest::prelude::*;
use shmlimit_kernel::rule::{self, Charge, Charged, Need, RuleContext, When};
use shmlimit_kernel::*;
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;

fn draft(algorithm: Algorithm, limit: u64, period: u64) -> RuleDraft<'static> {
    // GCRA stands for its older burst mode.
    let burst_mode = if algorithm == Algorithm::Gcra { BurstMode::FixedWindow } else { BurstMode::GcraTau };
    RuleDraft {
        name: Some("r"),
        burst_mode,
        ..RuleDraft::new(algorithm, limit, Duration::from_nanos(period))
    }
}

fn policy(rule: RuleDraft<'_>) -> Policy {
    Policy::new(&PolicyDraft { rules: &[rule], ..PolicyDraft::default() }).expect("valid")
}

fn left(m: &LocalMemory, now: u64) -> u64 {
    decide::remaining(m, Priority::User, [true; MAX_UNITS], Time(now)).expect("a rule")
}

fn take(m: &mut LocalMemory, cost: u64, now: u64) -> Result<Ticket, Refusal> {
    decide::acquire(m, 0, &AcquireRequest::requests(cost, Priority::User), Time(now))
}

fn algorithm() -> impl Strategy<Value = Algorithm> {
    prop::sample::select(Algorithm::ALL.to_vec())
}

fn rule() -> impl Strategy<Value = RuleDraft<'static>> {
    let rate = prop_oneof![(1u64..30, 1u64..100), (1u64..30, 1u64..20 * SECOND), Just((7, 3))];
    (algorithm(), rate, 0u64..10).prop_map(|(algorithm, (limit, period), reserve)| RuleDraft {
        reserve: reserve.min(limit - 1),
        ..draft(algorithm, limit, period)
    })
}

/// A limiter with a history: calls of these costs, each some thousandths of a period after the previous one.
fn with_past(rule: RuleDraft<'_>, epoch: u64, past: &[(u64, u64)]) -> (LocalMemory, Vec<Ticket>, u64) {
    let mut m = LocalMemory::starting_at(&policy(rule), epoch);
    let (mut now, mut tickets) = (0, Vec::new());
    for (cost, thousandths) in past {
        tickets.extend(take(&mut m, *cost, now));
        now +=
            (u128::from(shmlimit_kernel::Nanos::of(rule.period).0) * u128::from(*thousandths) / 1000) as u64;
    }
    (m, tickets, now)
}

fn past() -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((1u64..6, prop_oneof![Just(0u64), 0u64..900]), 0..25)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    /// Behind other calls, a call may go now exactly if all of them may. A predicted time is never too late.
    #[test]
    fn behind_other_calls_now_is_exact_and_a_later_time_is_never_too_late(
        rule in rule(), epoch in 0u64..1 << 40, past in past(),
        ahead in prop::collection::vec(1u64..8, 0..20), cost in 1u64..8, background: bool,
    ) {
        let (mut m, _, now) = with_past(rule, epoch, &past);
        // For the window burst, the time for a sum of several costs is unknown.
        let ahead: Vec<u64> = if rule.algorithm == Algorithm::Gcra { vec![1; ahead.len()] } else { ahead };
        let ahead: Vec<u64> = ahead.into_iter().filter(|cost| *cost <= rule.limit).collect();
        let at = RuleContext::of(&m, 0, Time(now));
        let said = rule::earliest_behind(&m, &at, m.rule(0), ahead.iter().sum(), Need { cost, leave_reserve: background });
        let priority = if background { Priority::Background } else { Priority::User };
        let mut clock = now;
        let calls = ahead.iter().map(|cost| AcquireRequest::requests(*cost, Priority::User));
        for request in calls.chain([AcquireRequest::requests(cost, priority)]) {
            while let Err(refusal) = decide::acquire(&mut m, 0, &request, Time(clock)) {
                let Some(at) = refusal.retry_at else {
                    prop_assert_eq!(said, When::Never);
                    return Ok(());
                };
                clock = at.0;
            }
        }
        match said {
            When::Now => prop_assert_eq!(clock, now),
            When::At(time) => prop_assert!(now < time.0 && time.0 <= clock, "{:?}, but {}", said, clock),
            When::Never => prop_assert!(false, "it went"),
        }
    }

    /// R129: a call that is cancelled at once leaves the state that was there before.
    #[test]
    fn r129_an_immediate_cancel_restores_the_remaining_units(rule in rule(), epoch in 0u64..1 << 40, past in past(), cost in 1u64..6) {
        let (mut m, _, now) = with_past(rule, epoch, &past);
        let before = left(&m, now);
        if let Ok(ticket) = take(&mut m, cost, now) {
            decide::cancel(&mut m, 0, &ticket, Time(now));
        }
        prop_assert_eq!(left(&m, now), before);
    }

    /// R147: no period of a limiter with only a `rate` grants more than its limit, for any calls at any times. This
    /// also holds across a later increase of the limit. Each call takes as much as possible, which is the worst
    /// case.
    #[test]
    #[cfg(feature = "config")]
    fn r147_a_rate_alone_never_grants_more_than_its_limit_in_any_period(
        limit in prop_oneof![1u64..200, 90_000u64..120_000, 1_000_000u64..1 << 40],
        period in prop_oneof![1u64..1_000, SECOND..100_000 * SECOND],
        pauses in prop::collection::vec((prop_oneof![Just(0u64), 0u64..300, 900u64..1100], 1u64..101), 1..60),
        raise in 1u64..4,
    ) {
        let choice = shmlimit::config::ConfigSource::default().setting("rate", format!("{limit}/{period}ns"));
        let mut policy = choice.policy("own").expect("valid");
        let mut m = LocalMemory::new(&policy);
        let (mut now, mut taken, half) = (0, Vec::new(), pauses.len() / 2);
        let (mut highest, log) = (limit, policy.rules()[0].algorithm == Algorithm::SlidingLog);
        for (i, (thousandths, part)) in pauses.iter().enumerate() {
            if i == half && log && limit * raise <= policy.rules()[0].log_room {
                highest = limit * raise;
                let rate = format!("{highest}/{period}ns");
                let higher = shmlimit::config::set(&policy, "rate", &rate).expect("within its room");
                let before = left(&m, now);
                m.change_policy(&policy, &higher, Time(now));
                prop_assert_eq!(left(&m, now), highest - (limit - before), "the log is kept");
                policy = higher;
            }
            let cost = (u128::from(left(&m, now)) * u128::from(*part) / 100) as u64;
            if cost > 0 {
                take(&mut m, cost, now).expect("it was to be had");
                taken.push((now, cost));
            }
            now += (u128::from(period) * u128::from(*thousandths) / 1000) as u64;
        }
        for (begin, _) in &taken {
            let inside = taken.iter().filter(|(at, _)| at >= begin && at - begin < period);
            let seen: u128 = inside.map(|(_, cost)| u128::from(*cost)).sum();
            prop_assert!(seen <= u128::from(highest), "{} of {} in a period", seen, highest);
        }
    }

    /// R110: a change never grants anything twice. Old tickets have no effect after a change of the terms.
    #[test]
    fn r110_a_change_keeps_what_was_used(old in rule(), new in rule(), same_period: bool, epoch in 0u64..1 << 40, past in past()) {
        let new = RuleDraft { period: if same_period { old.period } else { new.period }, ..new };
        let (was, will) = (policy(old), policy(new));
        let (mut m, tickets, now) = with_past(old, epoch, &past);
        let before = left(&m, now);
        m.change_policy(&was, &will, Time(now));
        let after = left(&m, now);
        let windows = [Algorithm::FixedWindow, Algorithm::SlidingCounter];
        let logs = old.algorithm == new.algorithm && old.algorithm == Algorithm::SlidingLog;
        let kept = windows.contains(&old.algorithm) || logs;
        if logs && new.period < old.period {
            // Entries that are too old for the new period are removed; the others stay.
            prop_assert!(after >= new.limit.saturating_sub(old.limit - before));
        } else if old.period == new.period && old.algorithm == new.algorithm && kept {
            prop_assert_eq!(after, new.limit.saturating_sub(old.limit - before));
        } else if old.period == new.period && old.algorithm == new.algorithm && old.algorithm == Algorithm::Gcra {
            // A used window burst stays used. One more call may go by pacing.
            prop_assert!(after <= (new.limit + before).saturating_sub(old.limit).max(1));
        } else if old.algorithm == new.algorithm && old.algorithm == Algorithm::LeakyBucket {
            // The level stays, in units. The fraction of a unit may be rounded.
            let wanted = (new.burst.unwrap_or(new.limit) + before).saturating_sub(old.burst.unwrap_or(old.limit));
            prop_assert!(after.abs_diff(wanted) <= 1, "{} not {}", after, wanted);
        } else {
            prop_assert!(after <= before, "{} of {}", after, before);
        }
        prop_assert!(decide::sane(&m));
        if (old.limit, old.reserve, old.period, old.algorithm) != (new.limit, new.reserve, new.period, new.algorithm) {
            for ticket in &tickets {
                decide::cancel(&mut m, 0, ticket, Time(now));
            }
            let buckets = [Algorithm::TokenBucket, Algorithm::LeakyBucket];
            let alike = buckets.contains(&old.algorithm) && buckets.contains(&new.algorithm);
            prop_assert!(alike || left(&m, now) == after);
        }
    }

    /// A lost state has nothing to give at first, is sane, and is full again in the end.
    #[test]
    fn a_reset_starts_empty_and_fills(rule in rule(), epoch in 0u64..1 << 40, past in past()) {
        let (mut m, tickets, now) = with_past(rule, epoch, &past);
        let full = left(&LocalMemory::starting_at(&policy(rule), epoch), now);
        decide::reset(&mut m, None, Time(now));
        prop_assert_eq!(left(&m, now), 0);
        prop_assert!(decide::sane(&m));
        for ticket in &tickets {
            decide::cancel(&mut m, 0, ticket, Time(now));
        }
        prop_assert_eq!(left(&m, now), 0, "old tickets mean nothing");
        prop_assert_eq!(left(&m, now + 2 * shmlimit_kernel::Nanos::of(rule.period).0 + 1), full);
    }

    /// For arbitrary words, every decision returns an answer in finite time and does not panic. Tests have checked
    /// arithmetic.
    #[test]
    fn garbage_is_decided_without_panic(
        code in 1u64..9, terms in prop::collection::vec(extreme(), 8), state in prop::collection::vec(extreme(), 4),
        logs in prop::collection::vec(extreme(), 1..40), times in [extreme(), extreme(), extreme()], cost in extreme(), reserve: bool,
    ) {
        let mut m = LocalMemory::starting_at(&policy(draft(Algorithm::TokenBucket, 1, 1)), times[0]);
        let mut words: [u64; 8] = std::array::from_fn(|i| terms[i]);
        // The log starts among the first words, or anywhere.
        words[0] = code | (if words[0].is_multiple_of(2) { words[0] % 300 } else { words[0] | 1 << 30 }) << 24;
        let damaged = Terms::from_words(words);
        m.set_terms(0, damaged);
        m.set_rule(0, RuleState([state[0], state[1], state[2], state[3]]));
        for (i, word) in logs.iter().cycle().take(400).enumerate() {
            m.set_log(i, *word);
        }
        let now = Time(times[1]);
        let request = AcquireRequest { cost: [cost; 4], priority: if reserve { Priority::Background } else { Priority::User } };
        decide::sane(&m);
        decide::check(&m, &request, now);
        left(&m, now.0);
        let at = RuleContext::of(&m, 0, now);
        rule::earliest_behind(&m, &at, m.rule(0), times[2], Need { cost, leave_reserve: reserve });
        rule::window(&m, &at, m.rule(0));
        if let Ok(ticket) = decide::acquire(&mut m, 0, &request, now) {
            decide::settle(&mut m, &ticket, [times[2]; 4], now);
            decide::cancel(&mut m, 0, &ticket, now);
        }
        let charged = Charged { at: Time(times[2]), cost, charge: Charge(state[0]), last: Time(times[1]) };
        rule::settle(&mut m, at.rule, 0, &charged, at.now);
        rule::settle(&mut m, at.rule, cost, &Charged { cost: 0, ..charged }, at.now);
        let other = Terms::from_words(std::array::from_fn(|i| words[(i * 5) % 8]));
        let state = m.rule(0);
        rule::rescale(&mut m, &at, &other, state);
        rule::rescale(&mut m, &RuleContext { terms: other, ..at }, &damaged, state);
        rule::forget(&mut m, &at);
        rule::empty(&mut m, &at);
    }
}

fn extreme() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0u64..4,
        0u64..300,
        Just(u64::MAX),
        Just(u64::MAX - 1),
        Just(1 << 62),
        Just(1 << 63),
        0u64..1 << 33
    ]
}

#[test]
fn r129_a_settlement_below_zero_expires_with_its_window() {
    for (algorithm, full_at) in [(Algorithm::FixedWindow, SECOND), (Algorithm::SlidingCounter, 2 * SECOND)] {
        let mut m = LocalMemory::new(&policy(draft(algorithm, 10, SECOND)));
        let ticket = take(&mut m, 5, 0).unwrap();
        decide::settle(&mut m, &ticket, [u64::MAX, 0, 0, 0], Time(7));
        assert_eq!(left(&m, full_at - 1), 0, "{algorithm:?}");
        assert_eq!(take(&mut m, 1, SECOND / 2).unwrap_err().retry_at, Some(Time(full_at)));
        assert_eq!(left(&m, full_at), 10);
    }
}

#[test]
fn r129_a_settlement_above_the_window_burst_is_charged_to_pacing() {
    let mut m = LocalMemory::new(&policy(RuleDraft { burst: Some(2), ..draft(Algorithm::Gcra, 10, SECOND) }));
    let ticket = take(&mut m, 2, 0).unwrap();
    // Three units more than the window burst has: 0.3 s of pacing.
    decide::settle(&mut m, &ticket, [5, 0, 0, 0], Time(0));
    assert_eq!(take(&mut m, 1, 0).unwrap_err().retry_at, Some(Time(3 * SECOND / 10)));
}

#[test]
fn r134_a_wall_clock_set_back_does_not_grant_a_window_twice() {
    for algorithm in [Algorithm::FixedWindow, Algorithm::SlidingCounter, Algorithm::Gcra] {
        let mut m = LocalMemory::starting_at(&policy(draft(algorithm, 1, 60 * SECOND)), 600 * SECOND);
        take(&mut m, 1, 0).unwrap();
        let _ = take(&mut m, 1, 0);
        // The wall clock goes from ten minutes to nine and a half, into a minute that was over.
        m.set_epoch(570 * SECOND);
        assert_eq!(left(&m, 0), 0, "{algorithm:?}");
        assert_eq!(left(&m, 30 * SECOND), 0, "{algorithm:?}: the same minute again");
        assert!(decide::sane(&m));
    }
    let mut m =
        LocalMemory::starting_at(&policy(draft(Algorithm::FixedWindow, 1, 60 * SECOND)), 600 * SECOND);
    take(&mut m, 1, 0).unwrap();
    m.set_epoch(570 * SECOND);
    let again = take(&mut m, 1, 0).unwrap_err().retry_at;
    assert_eq!(again, Some(Time(90 * SECOND)), "the first full minute after a minute in real time");
    // A wall clock that was days ahead does not make a call wait longer.
    m.set_epoch(0);
    assert!(decide::sane(&m));
    let mut ahead = LocalMemory::starting_at(&policy(draft(Algorithm::FixedWindow, 1, 60 * SECOND)), 1 << 60);
    take(&mut ahead, 1, 0).unwrap();
    ahead.set_epoch(0);
    assert!(decide::sane(&ahead));
    let again = take(&mut ahead, 1, 0).unwrap_err().retry_at.unwrap();
    assert!(again <= Time(120 * SECOND) && take(&mut ahead, 1, again.0).is_ok());
    // A window end that no clock change can explain is damage.
    ahead.set_rule(0, RuleState([again.0 + 121 * SECOND, 1, 0, 0]));
    assert!(!decide::sane(&ahead));
}
