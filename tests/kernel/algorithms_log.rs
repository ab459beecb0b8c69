//! The sliding log at its largest size, when it wraps around, and when its ring is full.

use std::collections::VecDeque;

use shmlimit_kernel::*;
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;

/// xorshift64*: the same traffic in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % n
    }
}

fn log(limit: u64, period: u64) -> LocalMemory {
    // The room is exactly the limit, so the log wraps around soon.
    let rule = RuleDraft::new(Algorithm::SlidingLog, limit, Duration::from_nanos(period));
    let rules = [RuleDraft { log_room: Some(limit), ..rule }];
    LocalMemory::new(&Policy::new(&PolicyDraft { rules: &rules, ..PolicyDraft::default() }).expect("valid"))
}

fn take(m: &mut LocalMemory, cost: u64, now: u64) -> Result<Ticket, Refusal> {
    decide::acquire(m, 0, &AcquireRequest::requests(cost, Priority::User), Time(now))
}

fn left(m: &LocalMemory, now: u64) -> u64 {
    decide::remaining(m, Priority::User, [true; MAX_UNITS], Time(now)).expect("a rule")
}

/// Every instant with its units, oldest first.
#[derive(Default)]
struct Entries {
    list: VecDeque<(u64, u64)>,
    total: u64,
}

impl Entries {
    fn expire(&mut self, now: u64, period: u64) {
        while let Some((_, units)) = self.list.front().filter(|(at, _)| *at + period <= now) {
            self.total -= units;
            self.list.pop_front();
        }
    }

    fn add(&mut self, now: u64, units: u64) {
        self.list.push_back((now, units));
        self.total += units;
    }

    fn remove(&mut self, at: u64, units: u64) {
        let first = self.list.partition_point(|entry| entry.0 < at);
        let same = self.list.iter_mut().skip(first).take_while(|entry| entry.0 == at);
        let mut units = units;
        for entry in same {
            let taken = entry.1.min(units);
            entry.1 -= taken;
            units -= taken;
            self.total -= taken;
        }
    }

    fn time_of_unit(&self, k: u64) -> u64 {
        let mut sum = 0;
        let reached = |(_, units): &&(u64, u64)| {
            sum += units;
            sum >= k
        };
        self.list.iter().find(reached).expect("so many").0
    }
}

/// Runs calls of up to `most` units against a log that is nearly always full. Cancels about one of `back` calls, at
/// any later time. Returns the number of charged instants.
fn storm(limit: u64, period: u64, rounds: u64, seed: u64, most: u64, back: u64) -> u64 {
    let mut random = Random(seed);
    let mut m = log(limit, period);
    let (mut entries, mut tickets) = (Entries::default(), Vec::new());
    let (mut now, mut instants) = (0, 0);
    for round in 0..rounds {
        now += random.below(3 * period / limit);
        entries.expire(now, period);
        let cost = 1 + random.below(most);
        match take(&mut m, cost, now) {
            Ok(ticket) => {
                assert!(entries.total + cost <= limit, "round {round}");
                instants += u64::from(entries.list.back().is_none_or(|(at, _)| *at < now));
                entries.add(now, cost);
                // The test does not limit permits; releasing the permit keeps them available.
                decide::release(&mut m, 0, &ticket);
                tickets.push(ticket);
            }
            Err(refusal) => {
                assert!(entries.total + cost > limit, "round {round}");
                if round % 64 == 0 {
                    let wanted = entries.time_of_unit(entries.total + cost - limit) + period;
                    assert_eq!(refusal.retry_at, Some(Time(wanted)), "round {round}");
                }
            }
        }
        if random.below(back) == 0 && !tickets.is_empty() {
            let ticket = tickets.swap_remove(random.below(tickets.len() as u64) as usize);
            decide::settle(&mut m, &ticket, [0; MAX_UNITS], Time(now));
            entries.remove(ticket.granted_at.0, ticket.cost[0]);
        }
        // Tickets that are too old give nothing back. Keep the recent ones.
        if tickets.len() > limit as usize {
            tickets.drain(..limit as usize / 2);
        }
        assert_eq!(left(&m, now), limit - entries.total, "round {round}");
        assert!(round % 16 > 0 || decide::sane(&m), "round {round}: sums of blocks");
    }
    assert!(decide::sane(&m));
    instants
}

#[test]
fn r31_r137_a_log_of_100_000_wraps_around_with_random_refunds() {
    let instants = storm(100_000, 10 * SECOND, 500_000, 0x5eed, 3, 4);
    // The log has room for about 121 000 entries.
    assert!(instants > 250_000, "{instants}: twice round");
}

#[test]
fn r31_small_logs_wrap_around_too() {
    for (limit, seed) in [(10, 1), (17, 2), (40, 3), (250, 4), (1_000, 5)] {
        storm(limit, SECOND, 30_000, seed, 3, 4);
        // Nearly all places are in use: blocks of this round and of the previous one overlap.
        storm(limit, SECOND, 30_000, seed, 1, 16);
    }
}

#[test]
fn r137_a_larger_log_is_an_error_that_names_the_limit() {
    let rules = [RuleDraft::new(Algorithm::SlidingLog, 100_001, Duration::from_nanos(SECOND))];
    let error = Policy::new(&PolicyDraft { rules: &rules, ..PolicyDraft::default() }).unwrap_err();
    assert_eq!(error.to_string(), "rules.0.limit = 100001: must be from 1 to 100000");
}

#[test]
fn r33_no_interval_has_more_than_the_limit() {
    let (limit, period) = (25, 1_000);
    let mut random = Random(9);
    let mut m = log(limit, period);
    let (mut granted, mut now) = (Vec::new(), 0);
    for _ in 0..20_000 {
        now += random.below(60);
        let cost = 1 + random.below(4);
        if take(&mut m, cost, now).is_ok() {
            granted.push((now, cost));
        }
    }
    for (i, (first, _)) in granted.iter().enumerate() {
        let within = granted[i..].iter().take_while(|(at, _)| *at < first + period);
        assert!(within.map(|(_, units)| units).sum::<u64>() <= limit);
    }
    assert!(granted.len() > 3_000);
}

/// Keeps the oldest call, so cancelled calls behind it leave empty places until the ring has no room.
#[test]
fn r129_a_full_ring_is_stricter_never_laxer_and_recovers() {
    let mut m = log(3, 1_000_000);
    take(&mut m, 1, 0).unwrap();
    let mut last = take(&mut m, 1, 1).unwrap();
    let mut refused = 0;
    for now in 2..2_000 {
        // The oldest call and the latest one are kept: two of three.
        match take(&mut m, 1, now) {
            Ok(ticket) => {
                decide::cancel(&mut m, 0, &last, Time(now));
                last = ticket;
            }
            Err(_) => refused += 1,
        }
        assert!(left(&m, now) <= 1, "{now}");
        assert!(decide::sane(&m));
    }
    assert!(refused > 0, "the ring was full");
    assert_eq!(left(&m, 1_000_000), 1, "the first call is out, those of the newest run are not");
    assert_eq!(left(&m, 1_002_000), 3);
}

#[test]
fn r129_any_number_of_calls_cancelled_in_order_leaves_no_trace() {
    let mut m = log(3, 1_000_000);
    let mut last = take(&mut m, 1, 0).unwrap();
    for now in 1..2_000 {
        let ticket = take(&mut m, 1, now).unwrap();
        decide::cancel(&mut m, 0, &last, Time(now));
        last = ticket;
        assert_eq!(left(&m, now), 2, "{now}");
    }
}

#[test]
fn r129_a_settlement_below_zero_expires_from_a_log_with_its_entry() {
    let mut m = log(10, SECOND);
    let ticket = take(&mut m, 5, 0).unwrap();
    decide::settle(&mut m, &ticket, [u64::MAX, 0, 0, 0], Time(7));
    assert_eq!(take(&mut m, 1, 8).unwrap_err().retry_at, Some(Time(SECOND + 7)));
    assert_eq!(left(&m, SECOND + 6), 0);
    assert_eq!(left(&m, SECOND + 7), 10);
    assert!(decide::sane(&m));
}

#[test]
fn r129_any_number_of_calls_cancelled_at_once_leaves_no_trace() {
    let mut m = log(3, 1_000_000);
    take(&mut m, 1, 0).unwrap();
    for now in 1..2_000 {
        let ticket = take(&mut m, 1, now).unwrap();
        decide::cancel(&mut m, 0, &ticket, Time(now));
        assert_eq!(m.rule(0).0[..2], [0, 1], "no place stays taken");
    }
    assert_eq!(left(&m, 2_000), 2);
}
