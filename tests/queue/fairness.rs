//! The order of turns, in exact counts, on a machine with its own clock (R131, R143).

use crate::machine::{Habit, MS, Machine, SECOND, rule};
use shmlimit_kernel::queue::GRACE;
use shmlimit_kernel::*;

const BACKGROUND: AcquireRequest = AcquireRequest::one(Priority::Background);
const USER: AcquireRequest = AcquireRequest::one(Priority::User);
const WEBHOOK: AcquireRequest = AcquireRequest::one(Priority::Webhook);

/// 8 processes of 1, 1, 1, 1, 16, 16, 16, 16 threads.
fn uneven(machine: &mut Machine, habit: impl Fn(u64) -> Habit) {
    for (slot, threads) in [1, 1, 1, 1, 16, 16, 16, 16].into_iter().enumerate() {
        for _ in 0..threads {
            machine.add(habit(slot as u64), 0);
        }
    }
}

#[test]
fn r131_processes_get_equal_turns_for_any_number_of_threads() {
    for lateness in [0, 90_000] {
        let mut machine = Machine::with_rate(1000, 10);
        uneven(&mut machine, |slot| Habit { lateness, ..Habit::of(slot, USER) });
        machine.run(SECOND);
        let before = machine.by_group();
        let (looks, wakes) = (machine.looks, machine.wakes);
        machine.run(11 * SECOND);
        let settled = machine.log.len() as u64 - before.values().sum::<u64>();
        assert_eq!(settled, 10_000, "the whole budget");
        assert_eq!(machine.log.len() as u64, 10 + 11_000 - lateness.min(1), "the burst, and the rate");
        let counts = machine.by_group();
        let turns: Vec<u64> = counts.iter().map(|(group, count)| count - before[group]).collect();
        assert!(turns.iter().all(|turns| turns.abs_diff(1250) <= 1), "{turns:?}");
        // Each grant costs one timer, and no thread wakes another.
        assert!(machine.looks - looks <= settled + settled / 100, "{} looks", machine.looks - looks);
        assert_eq!(machine.wakes - wakes, 0);
    }
}

#[test]
fn r131_calls_that_take_time_leave_no_budget_unused() {
    let mut machine = Machine::with_rate(1000, 10);
    uneven(&mut machine, |slot| Habit { call: 3 * MS, lateness: 60_000, ..Habit::of(slot, USER) });
    machine.run(10 * SECOND);
    assert!(machine.log.len() >= 10_009);
    // A thread that returns in between may pass others, and these then wake once more.
    assert!(machine.looks <= 2 * machine.log.len() as u64, "{} looks", machine.looks);
    // This also holds for processes that pause between their calls and often have no waiting call.
    let counts = machine.by_group();
    let (least, most) = (counts.values().min(), counts.values().max());
    assert!(most <= least.map(|least| least + 7).as_ref(), "{counts:?}");
}

#[test]
fn r143_fifty_programs_of_one_group_share_the_turns_of_one_process() {
    let mut machine = Machine::with_rate(100, 1);
    // Each of the fifty is a process that makes one call; another process then takes its place.
    for worker in 0..50u64 {
        machine.add(Habit { owner: worker + 10, group: 777, ..Habit::of(0, USER) }, 0);
    }
    machine.add(Habit::of(1, USER), 0);
    machine.run(20 * SECOND);
    let counts = machine.by_group();
    assert_eq!(counts.values().sum::<u64>(), 2001);
    assert!(counts[&777].abs_diff(counts[&2]) <= 1, "{counts:?}");
}

#[test]
fn r131_three_hundred_groups_have_equal_turns() {
    let mut machine = Machine::with_rate(1000, 1);
    for i in 0..299u64 {
        machine.add(Habit { group: i.wrapping_mul(0x9e37_79b9_7f4a_7c15), ..Habit::of(i % 60, USER) }, 0);
    }
    for _ in 0..50 {
        machine.add(Habit { group: 5, ..Habit::of(61, USER) }, 0);
    }
    machine.run(3 * SECOND);
    let counts = machine.by_group();
    assert!(counts.values().all(|turns| (10..=11).contains(turns)), "{counts:?}");
}

#[test]
fn r131_fifo_serves_all_groups_in_order_of_arrival() {
    let draft = PolicyDraft { fairness: Fairness::Fifo, rules: &[rule(1000, 1)], ..PolicyDraft::default() };
    let mut machine = Machine::new(&draft);
    for i in 0..300u64 {
        let habit = Habit { calls: 1, lateness: i * 7919 % 90_000, ..Habit::of(i % 7 * (i % 3), USER) };
        machine.add(habit, i * MS / 3);
    }
    machine.run(SECOND);
    let order: Vec<usize> = machine.log.iter().map(|served| served.thread).collect();
    assert_eq!(order, (0..300).collect::<Vec<_>>());
}

#[test]
fn r131_after_a_change_to_fifo_no_waiting_call_is_overtaken() {
    let process = PolicyDraft { rules: &[rule(1000, 1)], ..PolicyDraft::default() };
    let fifo = PolicyDraft { fairness: Fairness::Fifo, ..process };
    let mut machine = Machine::new(&process);
    for i in 0..40u64 {
        machine.add(Habit { calls: 1, ..Habit::of(i % 2, USER) }, 0);
    }
    machine.run(5 * MS);
    let waiting = machine.waiting();
    let [process, fifo] = [process, fifo].map(|draft| Policy::new(&draft).expect("valid"));
    machine.m.change_policy(&process, &fifo, Time(5 * MS));
    for _ in 0..40 {
        machine.add(Habit { calls: 1, ..Habit::of(9, USER) }, 6 * MS);
    }
    machine.run(SECOND);
    let served = &machine.log[40 - waiting.len()..40];
    assert!(served.iter().all(|served| waiting.contains(&served.thread)));
    assert_eq!(machine.log.len(), 80);
}

#[test]
fn r106_a_user_call_passes_five_hundred_background_calls_and_a_webhook_passes_the_user() {
    let mut machine = Machine::with_rate(100, 1);
    for i in 0..500u64 {
        machine.add(Habit { calls: 1, ..Habit::of(i % 20, BACKGROUND) }, 0);
    }
    machine.run(55 * MS);
    let done = machine.log.len();
    let user = machine.add(Habit { calls: 1, ..Habit::of(30, USER) }, 56 * MS);
    let webhook = machine.add(Habit { calls: 1, ..Habit::of(31, WEBHOOK) }, 57 * MS);
    machine.run(10 * SECOND);
    let order: Vec<usize> = machine.log[done..].iter().map(|served| served.thread).collect();
    assert_eq!(order[..2], [webhook, user]);
    assert_eq!(machine.log[done].at, 60 * MS);
    assert_eq!(machine.log.len(), 502);
}

#[test]
fn r107_background_calls_progress_and_never_use_the_reserve() {
    let reserved = RuleDraft { reserve: 5, ..rule(100, 20) };
    let mut machine = Machine::new(&PolicyDraft { rules: &[reserved], ..PolicyDraft::default() });
    for slot in 0..10 {
        machine.add(Habit::of(slot, BACKGROUND), 0);
    }
    for i in 1..100 {
        machine.run(i * SECOND / 10);
        let now = Time(machine.now);
        let left = decide::remaining(&machine.m, Priority::User, [true; MAX_UNITS], now);
        assert!(left >= Some(5), "{left:?}");
    }
    assert_eq!(machine.log.len(), 15 + 990);
}

/// Twenty users that call without a pause, and some background calls.
fn flooded(draft: &PolicyDraft<'_>, call: u64) -> Machine {
    let mut machine = Machine::new(draft);
    for slot in 0..20 {
        machine.add(Habit { call, ..Habit::of(slot, USER) }, 0);
    }
    for slot in 20..24 {
        machine.add(Habit { call, ..Habit::of(slot, BACKGROUND) }, 0);
    }
    machine
}

#[test]
fn r143_background_calls_get_their_share_under_a_flood_of_users() {
    let share = PolicyDraft { background_share: 200_000, ..PolicyDraft::default() };
    let rated = [rule(1000, 1)];
    let tokens = PolicyDraft { rules: &rated, ..share };
    let permits = PolicyDraft { concurrency: Some(4), ..share };
    let reserved = [RuleDraft { reserve: 5, ..rule(1000, 20) }];
    let reserve = PolicyDraft { rules: &reserved, ..share };
    for (draft, call) in [
        (tokens, 0),
        (permits, 5 * MS),
        (reserve, 0),
        (PolicyDraft { concurrency: Some(4), ..tokens }, 2 * MS),
    ] {
        let mut machine = flooded(&draft, call);
        // Before the first background call waited, background calls were owed nothing.
        machine.run(SECOND);
        let (start, before) = (machine.log.len() as u64, machine.grants_of(Priority::Background));
        for tenth in 11..100 {
            machine.run(tenth * SECOND / 10);
            let all = machine.log.len() as u64 - start;
            let background = machine.grants_of(Priority::Background) - before;
            assert!((5 * background).abs_diff(all) <= 5 + 4, "{background} of {all}: {draft:?}");
        }
        assert!(machine.log.len() > 5000);
    }
}

#[test]
fn r143_r145_a_share_that_cannot_be_used_delays_no_call() {
    // A long call holds the only permit that background calls may have.
    let draft = PolicyDraft {
        background_share: 500_000,
        concurrency: Some(3),
        concurrency_background: Some(1),
        ..PolicyDraft::default()
    };
    let mut machine = Machine::new(&draft);
    machine.add(Habit { call: 3600 * SECOND, ..Habit::of(0, BACKGROUND) }, 0);
    machine.add(Habit { call: MS, ..Habit::of(1, BACKGROUND) }, 0);
    for slot in 2..10 {
        machine.add(Habit { call: 10 * MS, ..Habit::of(slot, USER) }, 0);
    }
    machine.run(10 * SECOND);
    // Two permits, a hundred calls per second each.
    let users = machine.grants_of(Priority::User);
    assert!(users >= 1990, "{users}");
}

#[test]
fn r143_an_unused_share_is_not_saved_up() {
    let draft = PolicyDraft { background_share: 200_000, rules: &[rule(1000, 1)], ..PolicyDraft::default() };
    let mut machine = flooded(&draft, 0);
    machine.run(SECOND);
    let stop = |machine: &mut Machine, stopped| {
        machine.threads[20..].iter_mut().for_each(|thread| thread.stopped = stopped);
    };
    stop(&mut machine, true);
    machine.run(60 * SECOND);
    stop(&mut machine, false);
    let before = machine.grants_of(Priority::Background);
    machine.run(62 * SECOND);
    let background = machine.grants_of(Priority::Background) - before;
    assert!(background.abs_diff(400) <= 5, "{background} of 2000");
}

#[test]
fn r131_no_call_starves_under_an_endless_flood_of_newcomers() {
    for priority in Priority::ALL {
        let request = AcquireRequest::one(priority);
        let mut machine = Machine::with_rate(100, 1);
        // Each newcomer is its own group. About twenty wait, and another comes whenever one is served.
        for i in 0..1020u64 {
            let at = i.saturating_sub(20) * 10 * MS;
            machine.add(Habit { calls: 1, group: 1000 + i, ..Habit::of(i % 50, request) }, at);
        }
        let came = 505 * MS;
        let three: Vec<usize> =
            (0..3).map(|_| machine.add(Habit { calls: 1, ..Habit::of(60, request) }, came)).collect();
        machine.run(20 * SECOND);
        assert_eq!(machine.log.len(), 1023);
        for (nth, thread) in three.into_iter().enumerate() {
            let at = machine.log.iter().position(|served| served.thread == thread).expect("served");
            let overtook = machine.log[..at].iter().filter(|s| s.came > came && s.thread < 1020).count();
            // No newcomer overtakes the group's first call. Each further call may be overtaken by four times as
            // many newcomers as calls wait.
            assert!(overtook <= nth * 4 * 24, "{nth}: {overtook}");
        }
    }
}

#[test]
fn r131_a_call_that_does_not_wait_overtakes_no_waiting_call_of_its_priority_or_above() {
    let mut machine = Machine::with_rate(100, 1);
    for i in 0..5 {
        machine.add(Habit { calls: 1, ..Habit::of(i, USER) }, 0);
    }
    // The first waiting call is due at 10 ms. At that time there is room for one call, and a call waits for it.
    machine.run(MS);
    let at = Time(10 * MS);
    for request in [BACKGROUND, USER] {
        let refusal = decide::acquire(&mut machine.m, 40, &request, at).expect_err("others wait");
        assert_eq!((refusal.reason, refusal.rule), (Reason::Queued, None));
        assert_eq!(refusal.retry_at, Some(Time(50 * MS)), "behind all four");
    }
    assert!(decide::acquire(&mut machine.m, 40, &WEBHOOK, at).is_ok());
    machine.run(SECOND);
    assert_eq!(machine.threads.iter().map(|thread| thread.grants).sum::<u64>(), 5);
}

#[test]
fn r131_a_call_that_needs_nearly_all_units_is_not_starved_by_small_calls() {
    let mut machine = Machine::with_rate(1000, 1000);
    for slot in 0..10 {
        for _ in 0..8 {
            machine.add(Habit::of(slot, USER), 0);
        }
    }
    machine.run(SECOND);
    let large = machine
        .add(Habit { calls: 3, ..Habit::of(20, AcquireRequest::requests(900, Priority::User)) }, SECOND);
    // Newcomers would take each unit as soon as it is available.
    for i in 0..900u64 {
        machine.add(Habit { calls: 1, group: 1000 + i, ..Habit::of(30, USER) }, SECOND + (i + 1) * MS);
    }
    machine.run(60 * SECOND);
    assert_eq!(machine.threads[large].grants, 3);
    let times: Vec<u64> = machine.log.iter().filter(|s| s.thread == large).map(|s| s.at).collect();
    // It saves up for 0.9 s. Then the ten others have 900 turns each before its next turn.
    assert!(times[0] <= 2 * SECOND, "{times:?}");
    assert!(times[1] - times[0] <= 12 * SECOND, "{times:?}");
    assert!(times[2] - times[1] <= 11 * SECOND, "{times:?}");
}

#[test]
fn r130_permits_alone_are_shared_and_always_in_use() {
    let mut machine = Machine::new(&PolicyDraft { concurrency: Some(4), ..PolicyDraft::default() });
    uneven(&mut machine, |slot| Habit { call: 8 * MS, lateness: 20_000, ..Habit::of(slot, USER) });
    machine.run(10 * SECOND);
    // 4 permits, 8 ms per call, and a wake-up each.
    assert!(machine.log.len() >= 4980, "{}", machine.log.len());
    // The time at which a permit comes back is unknown, so each of the 68 threads also checks five times per
    // second.
    assert!(machine.looks <= machine.log.len() as u64 + 68 * 5 * 10, "{} looks", machine.looks);
    let counts = machine.by_group();
    let (least, most) = (counts.values().min(), counts.values().max());
    assert!(most <= least.map(|least| least + 10).as_ref(), "{counts:?}");
}

#[test]
fn r130_calls_for_tokens_and_for_permits_share_one_queue() {
    let draft = PolicyDraft { concurrency: Some(2), rules: &[rule(100, 1)], ..PolicyDraft::default() };
    let mut machine = Machine::new(&draft);
    for slot in 0..6 {
        machine.add(Habit { call: if slot == 0 { 300 * MS } else { 2 * MS }, ..Habit::of(slot, USER) }, 0);
    }
    machine.run(20 * SECOND);
    // One permit is enough for the rate.
    assert_eq!(machine.log.len(), 2001);
}

#[test]
fn r128_a_call_for_another_unit_passes_a_blocked_head() {
    let tokens = RuleDraft { unit: Some("tokens"), ..rule(10, 10) };
    let mut machine =
        Machine::new(&PolicyDraft { rules: &[rule(1000, 10), tokens], ..PolicyDraft::default() });
    let tokens = |n| AcquireRequest { cost: [0, n, 0, 0], priority: Priority::User };
    machine.add(Habit { calls: 1, ..Habit::of(0, tokens(10)) }, 0);
    machine.add(Habit { calls: 1, ..Habit::of(1, tokens(10)) }, 1);
    let passes = machine.add(Habit { calls: 1, ..Habit::of(2, USER) }, 2);
    let behind = machine.add(Habit { calls: 1, ..Habit::of(3, tokens(1)) }, 3);
    machine.run(5 * SECOND);
    let at = |thread| machine.log.iter().find(|s| s.thread == thread).map(|s| s.at);
    assert_eq!(at(passes), Some(2));
    assert_eq!(at(1), Some(SECOND));
    assert_eq!(at(behind), Some(SECOND + SECOND / 10));
}

#[test]
fn r128_a_queue_head_blocked_on_another_unit_reserves_no_permit() {
    let tokens = RuleDraft { unit: Some("tokens"), ..rule(10, 10) };
    let mut machine = Machine::new(&PolicyDraft {
        rules: &[rule(1000, 10), tokens],
        concurrency: Some(1),
        ..PolicyDraft::default()
    });
    let tokens = |n| AcquireRequest { cost: [0, n, 0, 0], priority: Priority::User };
    machine.add(Habit { calls: 1, ..Habit::of(0, tokens(10)) }, 0);
    let head = machine.add(Habit { calls: 1, ..Habit::of(1, tokens(10)) }, 1);
    let passes = machine.add(Habit { call: 10 * MS, ..Habit::of(2, USER) }, 2);
    machine.run(SECOND / 2);
    let turns = machine.log.iter().filter(|s| s.thread == passes).count();
    assert_eq!(turns, 50, "the permit is free, and the head has no use for it");
    machine.run(2 * SECOND);
    let at = machine.log.iter().find(|s| s.thread == head).map(|s| s.at).unwrap();
    assert!((SECOND..=SECOND + 10 * MS).contains(&at), "then it is first: {at}");
}

#[test]
fn r131_a_stopped_head_delays_others_by_the_grace_at_most_and_is_first_again() {
    let mut machine = Machine::with_rate(1000, 1);
    for slot in 0..8 {
        machine.add(Habit::of(slot, USER), 0);
    }
    machine.run(100 * MS);
    let stopped = machine.waiting()[0];
    machine.threads[stopped].stopped = true;
    machine.run(2000 * MS);
    let lost = 2001 - machine.log.len() as u64;
    assert!(lost <= 1 + GRACE.0 / MS, "{lost} turns lost");
    machine.threads[stopped].stopped = false;
    let served = machine.log.len();
    machine.run(2010 * MS);
    let first = machine.log[served..].iter().position(|s| s.thread == stopped);
    assert!(first.is_some_and(|at| at <= 1), "{first:?}");
}

#[test]
fn r131_a_caller_that_is_always_late_still_gets_its_turns() {
    for late in [11 * MS, 15 * MS, 50 * MS] {
        let mut machine = Machine::with_rate(100, 100);
        for slot in 0..8 {
            let lateness = if slot == 0 { late } else { 60_000 };
            machine.add(Habit { lateness, ..Habit::of(slot, USER) }, 0);
        }
        machine.run(10 * SECOND);
        let counts = machine.by_group();
        assert!(machine.log.len() >= 1098);
        assert!(counts.values().all(|turns| turns.abs_diff(1100 / 8) <= 1), "{late}: {counts:?}");
    }
}
