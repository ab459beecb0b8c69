//! The queue against a slow implementation of its rules, and against damage (R131, R132, P3).

use crate::machine::{Habit, Machine, SECOND};
use crate::oracle::Oracle;
use crate::pair::{Op, Pair, op, policies};
use proptest::prelude::*;
use shmlimit_kernel::pause::Pausing;
use shmlimit_kernel::queue::{
    self as kernel, Entry, NewWaiter, PlaceSet, Progress, QueueOutcome, QueueTicket, Turn, WaiterCounts,
};
use shmlimit_kernel::*;

fn words<const N: usize>() -> impl Strategy<Value = [u64; N]> {
    let word = prop_oneof![
        2 => any::<u64>(),
        2 => 0u64..20,
        1 => Just(u64::MAX),
        2 => 0u64..3 * SECOND,
        1 => (0u32..64).prop_map(|shift| 1 << shift),
    ];
    prop::collection::vec(word, N).prop_map(|words| words.try_into().expect("N of them"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    /// R131, R132: order, no overtaking, wake times, which call is woken, and that no call is lost.
    #[test]
    fn every_decision_agrees_with_the_oracle(policies in policies(), ops in prop::collection::vec(op(), 1..120)) {
        let mut pair = Pair {
            m: LocalMemory::new(&policies[0]),
            oracle: Oracle::new(policies[0]),
            tickets: Vec::new(),
            now: 0,
        };
        for op in &ops {
            pair.step(op, &policies)?;
        }
        pair.step(&Op::Resume, &policies)?;
        // Every call that still waits is served in the end, if calls end and every call checks at its wake time.
        for _ in 0..4_000 {
            if pair.oracle.waiters.is_empty() {
                break;
            }
            while !pair.tickets.is_empty() {
                pair.give_back(0, false)?;
            }
            pair.step(&Op::Sleep { late: 0 }, &policies)?;
        }
        prop_assert!(pair.oracle.waiters.is_empty(), "{} still wait", pair.oracle.waiters.len());
        prop_assert!(pair.m.waiting().is_empty());
    }

    /// P3: for arbitrary words, every call ends, and no call spins.
    #[test]
    fn arbitrary_words_end_in_bounded_steps(
        policies in policies(),
        entries in prop::collection::vec((0usize..200, words::<12>()), 0..40),
        turns in prop::collection::vec((0usize..1024, words::<2>()), 0..40),
        progress in words::<5>(),
        taken in words::<4>(),
        waiting in any::<u64>(),
        ops in prop::collection::vec(op(), 1..25),
        now in words::<1>(),
    ) {
        let mut m = LocalMemory::new(&policies[0]);
        for (place, words) in entries {
            let mut number = [0; kernel::ENTRY_WORDS];
            number.copy_from_slice(&words[..kernel::ENTRY_WORDS]);
            m.set_entry(place, &bytemuck::cast::<_, Entry>(number));
        }
        for (index, words) in turns {
            m.set_turn(index, bytemuck::cast::<_, Turn>(words));
        }
        m.set_progress(bytemuck::cast::<_, Progress>(progress));
        for (group, places) in taken.into_iter().enumerate() {
            m.set_places(group, PlaceSet(places));
        }
        m.set_waiting(WaiterCounts(waiting));
        let mut now = now[0];
        let mut waits: Vec<(u64, QueueTicket)> = Vec::new();
        for op in &ops {
            match op {
                Op::Enter { slot, group, cost, priority, timeout, can_be_woken } => {
                    let who = NewWaiter {
                        owner: slot + 2,
                        group: *group,
                        request: AcquireRequest { cost: [cost[0], cost[1], 0, 0], priority: *priority },
                        deadline: Time(timeout.map_or(u64::MAX, |timeout| now.saturating_add(timeout))),
                        can_be_woken: *can_be_woken,
                    };
                    if let (QueueOutcome::Waiting(wait), _) = kernel::enter(&mut m, &who, Time(now)) {
                        prop_assert!(wait.until.0 > now);
                        waits.push((who.owner, wait));
                    }
                }
                Op::Look(_) | Op::Sleep { .. } => {
                    if let Some((owner, wait)) = waits.pop()
                        && let (QueueOutcome::Waiting(wait), _) = kernel::look(&mut m, owner, &wait, Time(now))
                    {
                        prop_assert!(wait.until.0 > now);
                        waits.insert(0, (owner, wait));
                    }
                }
                Op::Leave(_) => {
                    if let Some((owner, wait)) = waits.pop() {
                        let _ = kernel::leave(&mut m, owner, &wait, Time(now));
                    }
                }
                Op::Die { slot } => drop(decide::reclaim(&mut m, *slot as usize)),
                Op::Try { cost, priority } => {
                    let request = AcquireRequest { cost: [cost[0], cost[1], 0, 0], priority: *priority };
                    let _ = decide::acquire(&mut m, 0, &request, Time(now));
                }
                Op::Step(by) => now = now.saturating_add(*by),
                Op::Pause(length) => {
                    let length = length.map(Nanos);
                    let asked = Pausing { length, pid: 1, program: [0; 16], reason: "" };
                    decide::pause(&mut m, &asked, Time(now));
                }
                Op::Resume => drop(decide::resume(&mut m, Time(now))),
                _ => drop(kernel::changed(&mut m, Time(now))),
            }
            prop_assert!(kernel::in_order(&m, Time(now)).len() <= kernel::WAITERS);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// R131: groups that always wait get the same amount of budget, to within the cost of one call of each.
    #[test]
    fn shares_are_fair_within_one_cost_and_no_budget_is_unused(
        groups in prop::collection::vec((1u64..8, 1u64..12), 2..7),
        limit in 50u64..3000,
        lateness in prop_oneof![Just(0u64), 0u64..80_000],
    ) {
        let burst = 24;
        let mut machine = Machine::with_rate(limit, burst);
        for (slot, (threads, cost)) in groups.iter().enumerate() {
            for _ in 0..*threads {
                let request = AcquireRequest::requests(*cost, Priority::User);
                machine.add(Habit { lateness, ..Habit::of(slot as u64, request) }, 0);
            }
        }
        machine.run(SECOND);
        let start = machine.log.len();
        machine.run(6 * SECOND);
        let mut got = vec![0u64; groups.len()];
        for served in &machine.log[start..] {
            got[machine.threads[served.thread].habit.owner as usize - 2] += served.cost[0];
            for (a, (_, cost_a)) in groups.iter().enumerate() {
                for (b, (_, cost_b)) in groups.iter().enumerate().take(a) {
                    prop_assert!(got[a].abs_diff(got[b]) <= 2 * (cost_a + cost_b), "{:?} of {:?}", got, groups);
                }
            }
        }
        let all: u64 = machine.log.iter().map(|served| served.cost[0]).sum();
        let dearest = groups.iter().map(|group| group.1).max().expect("some");
        prop_assert!(all <= burst + 6 * limit);
        prop_assert!(all + dearest + lateness * limit / SECOND + 1 >= burst + 6 * limit, "{} of {}", all, burst + 6 * limit);
    }
}
