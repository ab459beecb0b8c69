//! The sliding log at its largest, going round, and with its ring full.

use std::collections::VecDeque;

use shmlimit_kernel::*;
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;

/// xorshift64*: the same traffic each time.
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
    // No more room than the limit needs, so that it goes round soon.
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

/// Runs calls of up to `most` units against a log that is nearly always full, and takes one of `back` of them back, any
/// time later. Returns how many instants were charged.
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
                // Permits are another matter, and fewer.
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
        // Those that are too old give nothing back; keep the young ones in reach.
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
fn r31_r137_a_log_of_100_000_goes_round_with_random_refunds() {
    let instants = storm(100_000, 10 * SECOND, 500_000, 0x5eed, 3, 4);
    // There is room for 121 000 and some.
    assert!(instants > 250_000, "{instants}: twice round");
}

#[test]
fn r31_small_logs_go_round_too() {
    for (limit, seed) in [(10, 1), (17, 2), (40, 3), (250, 4), (1_000, 5)] {
        storm(limit, SECOND, 30_000, seed, 3, 4);
        // Nearly all places in use: blocks of this round and the one before overlap.
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

/// Keeps the oldest call, so that taken back calls behind it leave empty places until there is no room.
#[test]
fn r129_a_full_ring_is_stricter_never_laxer_and_recovers() {
    let mut m = log(3, 1_000_000);
    take(&mut m, 1, 0).unwrap();
    let mut last = take(&mut m, 1, 1).unwrap();
    let mut refused = 0;
    for now in 2..2_000 {
        // One is kept, and the latest: two of three.
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
fn r129_calls_taken_back_in_order_leave_no_trace_however_many() {
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
fn r129_a_settlement_below_zero_is_made_up_for_when_it_is_too_old() {
    let mut m = log(10, SECOND);
    let ticket = take(&mut m, 5, 0).unwrap();
    decide::settle(&mut m, &ticket, [u64::MAX, 0, 0, 0], Time(7));
    assert_eq!(take(&mut m, 1, 8).unwrap_err().retry_at, Some(Time(SECOND + 7)));
    assert_eq!(left(&m, SECOND + 6), 0);
    assert_eq!(left(&m, SECOND + 7), 10);
    assert!(decide::sane(&m));
}

#[test]
fn r129_calls_taken_back_at_once_leave_no_trace_however_many() {
    let mut m = log(3, 1_000_000);
    take(&mut m, 1, 0).unwrap();
    for now in 1..2_000 {
        let ticket = take(&mut m, 1, now).unwrap();
        decide::cancel(&mut m, 0, &ticket, Time(now));
        assert_eq!(m.rule(0).0[..2], [0, 1], "no place stays taken");
    }
    assert_eq!(left(&m, 2_000), 2);
}
