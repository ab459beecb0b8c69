//! Whole operations of the oracle: the layers in their order (R130), outcomes, and the advice after them (R68 to
//! R77).

use super::bucket::Room;
use super::machine::{Flight, Machine};
use super::policy::Numbers;
use shmlimit_kernel::backoff::WaitSource;
use shmlimit_kernel::breaker::BreakerState;
use shmlimit_kernel::outcome::OutcomeClass;
use shmlimit_kernel::policy::BreakerKind;
use shmlimit_kernel::{Priority, Reason};

/// Reason of a refusal, its rule, and when to try again.
pub type Refused = (Reason, Option<u8>, Option<u64>);

/// Result of a recorded outcome: samples, errors, 429s in a row; wait source, ceiling, whether it was drawn,
/// whether to retry; whether it closed the gate.
pub type Advice = (u32, u64, u32, Option<WaitSource>, u64, bool, bool, bool);

impl Machine {
    pub fn now(&self, t: u64) -> u64 {
        t.max(self.seen)
    }

    /// Everything that an acquire does before it decides.
    pub fn prepare(&mut self, now: u64) {
        self.tick(now);
        if let Some(pace) = &mut self.pace {
            pace.evaluate(now);
        }
    }

    /// The refusal, if there is one. Call `prepare` first.
    fn check(&self, cost: u64, priority: Priority, now: u64) -> Option<Refused> {
        let background = priority == Priority::Background;
        let mut rate: Option<(u8, Room, u64)> = None;
        if cost > 0 {
            for (i, bucket) in self.buckets.iter().enumerate() {
                let room = bucket.check(cost, background, now);
                let wait = match room {
                    Room::Now => continue,
                    Room::At(time) => time,
                    Room::Never => u64::MAX,
                };
                if rate.is_none_or(|(_, _, longest)| wait > longest) {
                    rate = Some((i as u8, room, wait));
                }
            }
        }
        if let Some((rule, Room::Never, _)) = rate {
            return Some((Reason::CostExceedsLimit, Some(rule), None));
        }
        if let Some(until) = self.paused {
            return Some((Reason::Paused, None, (until < u64::MAX).then_some(until)));
        }
        let auto = self.numbers.breaker.auto_recover.0;
        match self.state {
            BreakerState::Sleep => return Some((Reason::Sleep, None, self.until)),
            BreakerState::Open => return Some((Reason::Open, None, self.until)),
            BreakerState::CacheOnly => {
                let until = (auto > 0).then(|| self.cache_only_until(auto));
                return Some((Reason::CacheOnly, None, until));
            }
            _ => {}
        }
        if self.gate > now {
            return Some((Reason::RetryAfter, None, Some(self.gate)));
        }
        if cost == 0 {
            return None;
        }
        let live = self.flights.iter().filter(|flight| !flight.written_off);
        let (all, low) =
            (live.clone().count() as u32, live.filter(|flight| flight.background).count() as u32);
        let no_permit = self.concurrency().is_some_and(|most| all >= most);
        if no_permit || (background && self.numbers.background.is_some_and(|most| low >= most)) {
            return Some((Reason::Concurrency, None, None));
        }
        let (paced, window) = self.pace.as_ref().map_or((0, None), |pace| pace.open_at(now));
        let longest = rate.map_or(now, |(_, _, wait)| wait);
        if paced > longest {
            return Some((Reason::Adaptive, window, Some(paced)));
        }
        rate.map(|(rule, _, wait)| (Reason::Rate, Some(rule), Some(wait)))
    }

    pub fn acquire(&mut self, id: usize, cost: u64, priority: Priority, now: u64) -> Result<(), Refused> {
        self.prepare(now);
        if let Some(refused) = self.check(cost, priority, now) {
            return Err(refused);
        }
        if cost > 0 {
            for bucket in &mut self.buckets {
                bucket.charge(cost, now);
            }
            let background = priority == Priority::Background;
            self.flights.push(Flight { id, background, written_off: false });
            if let Some(pace) = &mut self.pace {
                pace.admit(now);
            }
            if self.state == BreakerState::HalfOpen {
                self.sent(now);
            }
            self.seen = now;
        }
        Ok(())
    }

    pub fn end(&mut self, id: usize) -> Flight {
        let position = self.flights.iter().position(|flight| flight.id == id).unwrap();
        self.flights.remove(position)
    }

    /// R129: charges more than was estimated, below zero if necessary.
    pub fn charge(&mut self, more: u64, now: u64) {
        self.buckets.iter_mut().for_each(|bucket| bucket.charge(more, now));
    }

    pub fn record(
        &mut self,
        class: OutcomeClass,
        retry_after: Option<u64>,
        attempt: Option<u32>,
        priority: Priority,
        granted: Option<u64>,
        now: u64,
    ) -> Advice {
        let backoff = self.numbers.backoff;
        self.seen = now;
        let target = matches!(class, OutcomeClass::Throttled | OutcomeClass::Server | OutcomeClass::Net);
        let wait = retry_after
            .filter(|_| target)
            .map(|said| said.max(backoff.min_sleep.0).min(backoff.retry_after_max.0));
        let gate = self.gate;
        if let Some(wait) = wait {
            self.gate = gate.max(now + wait);
        }
        match class {
            OutcomeClass::Ok => self.run = 0,
            OutcomeClass::Ignored => {}
            _ => self.run += 1,
        }
        let counts = class != OutcomeClass::Ignored && (class != OutcomeClass::Net || self.numbers.count_net);
        let (samples, errors, consec429) = if counts && !self.is_late(granted) {
            self.evaluate(class, wait, now)
        } else {
            let (samples, errors) = self.counted(now);
            (samples, errors, self.consec429)
        };
        let closed = self.gate > gate;
        if !target {
            return (samples, errors, consec429, None, 0, false, false, closed);
        }
        let n = attempt.unwrap_or(self.run).max(1);
        let background = priority == Priority::Background;
        let retry = n <= if background { backoff.retries_background } else { backoff.retries_user };
        let (source, ceiling, drawn) = match wait {
            Some(wait) => (WaitSource::RetryAfter, wait, false),
            None => {
                let ceiling = Numbers::grown(backoff.base.0, backoff.factor, n, backoff.cap.0);
                (WaitSource::Backoff, ceiling, self.numbers.jitter)
            }
        };
        (samples, errors, consec429, Some(source), ceiling, drawn, retry, closed)
    }

    pub fn remaining(&self, priority: Priority, now: u64) -> Option<u64> {
        let background = priority == Priority::Background;
        self.buckets.iter().map(|bucket| bucket.remaining(background, now)).min()
    }

    /// The rate that is displayed: 0 while every call is blocked.
    pub fn shown_rate(&self) -> u64 {
        match self.numbers.kind {
            BreakerKind::Fsm if self.blocked() => 0,
            _ => self.current_rate(),
        }
    }
}
