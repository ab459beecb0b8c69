//! Slow and direct implementation of the breakers as R42 to R66, R78, R79, R133 and R139 to R142 define them: the
//! five states, and closed, open, half open.

use super::bucket::Tokens;
use super::pace::Pace;
use super::policy::{Numbers, SECOND};
use shmlimit_kernel::breaker::{BreakerCommand, BreakerState, TransitionCause};
use shmlimit_kernel::outcome::OutcomeClass;
use shmlimit_kernel::policy::BreakerKind;

/// A call in flight.
#[derive(Clone, Debug)]
pub struct Flight {
    pub id: usize,
    pub background: bool,
    /// A probe that was given up: its permit no longer counts (R133).
    pub written_off: bool,
}

#[derive(Clone, Debug)]
pub struct Machine {
    pub numbers: Numbers,
    /// The latest time at which anything changed.
    pub seen: u64,
    pub state: BreakerState,
    since: u64,
    /// End of Sleep or Open. `None` means no timer (R63).
    pub until: Option<u64>,
    /// Whether the machine is recovering from CacheOnly by itself (R65).
    attempt: bool,
    /// The rate, if it is not the full one.
    pub rate: Option<u64>,
    /// The time of the next step of the ramp.
    pub ramp_at: Option<u64>,
    /// The rate at which the ramp began, and the steps made since.
    ramp_from: (u64, u32),
    pub outcomes: Vec<(u64, OutcomeClass)>,
    pub consec429: u32,
    successes: u32,
    agreed: u32,
    sleeps: u32,
    pub failures: u32,
    sustained: Option<u64>,
    pub gate: u64,
    /// When the pause ends; the end of time if the end is unknown. `None` means no pause.
    pub paused: Option<u64>,
    pub run: u32,
    probe_at: u64,
    pub flights: Vec<Flight>,
    pub buckets: Vec<Tokens>,
    pub pace: Option<Pace>,
    pub recent: Vec<(u64, BreakerState, BreakerState, TransitionCause)>,
    /// How often the first bucket changed its rate since the last query.
    pub changes: u32,
}

impl Machine {
    pub fn new(numbers: Numbers) -> Machine {
        let bucket =
            |rule: &super::policy::BucketNumbers| Tokens::new(rule.rate * SECOND, rule.burst, rule.reserve);
        let mut buckets: Vec<Tokens> = numbers.rules.iter().map(bucket).collect();
        if let (Some(first), BreakerKind::Fsm) = (buckets.first_mut(), numbers.kind) {
            first.rate = numbers.rate_base();
        }
        Machine {
            pace: numbers.pace.clone().map(Pace::new),
            buckets,
            numbers,
            seen: 0,
            state: BreakerState::Normal,
            since: 0,
            until: None,
            attempt: false,
            rate: None,
            paused: None,
            ramp_at: None,
            ramp_from: (0, 0),
            outcomes: Vec::new(),
            consec429: 0,
            successes: 0,
            agreed: 0,
            sleeps: 0,
            failures: 0,
            sustained: None,
            gate: 0,
            run: 0,
            probe_at: 0,
            flights: Vec::new(),
            recent: Vec::new(),
            changes: 0,
        }
    }

    pub fn blocked(&self) -> bool {
        matches!(self.state, BreakerState::Sleep | BreakerState::CacheOnly | BreakerState::Open)
    }

    /// The effective rate.
    pub fn current_rate(&self) -> u64 {
        self.rate.unwrap_or(self.numbers.rate_base())
    }

    pub fn concurrency(&self) -> Option<u32> {
        let base = self.numbers.concurrency;
        match (self.state, self.numbers.kind) {
            (BreakerState::Throttle, _) => base.map(|most| (most / 2).max(1)),
            (BreakerState::HalfOpen, BreakerKind::Consecutive) => Some(1),
            (BreakerState::HalfOpen, _) => {
                let probes = self.numbers.breaker.probe_concurrency;
                Some(base.map_or(probes, |most| most.min(probes)))
            }
            _ => base,
        }
    }

    /// Entries that count (R42).
    pub fn window(&self, now: u64) -> Vec<OutcomeClass> {
        let numbers = &self.numbers.window;
        let young = |(at, _): &&(u64, OutcomeClass)| now.saturating_sub(*at) < numbers.max_age.0;
        let mut newest: Vec<OutcomeClass> =
            self.outcomes.iter().filter(young).map(|(_, class)| *class).collect();
        newest.drain(..newest.len().saturating_sub(numbers.max_count as usize));
        newest
    }

    pub fn counted(&self, now: u64) -> (u32, u64) {
        let window = self.window(now);
        (window.len() as u32, window.iter().filter(|class| **class != OutcomeClass::Ok).count() as u64)
    }

    fn reaches(&self, part: u32, now: u64) -> bool {
        let (samples, errors) = self.counted(now);
        let enough = samples > 0 && samples >= self.numbers.window.min_samples;
        enough && errors * 1_000_000 >= u64::from(part) * u64::from(samples)
    }

    fn is_below(&self, part: u32, now: u64) -> bool {
        match self.counted(now) {
            (0, _) => part > 0,
            (samples, errors) => errors * 1_000_000 < u64::from(part) * u64::from(samples),
        }
    }

    /// Runs the timers, each at its time.
    pub fn tick(&mut self, now: u64) {
        let breaker = self.numbers.breaker;
        let mut acted = self.paused.is_some_and(|until| until <= now);
        self.paused = self.paused.filter(|until| *until > now);
        loop {
            match self.state {
                BreakerState::Sleep | BreakerState::Open if self.until.is_some_and(|until| until <= now) => {
                    let open = self.state == BreakerState::Open;
                    let cause =
                        if open { TransitionCause::ResetTimeout } else { TransitionCause::SleepExpired };
                    self.enter(BreakerState::HalfOpen, cause, self.until.unwrap());
                }
                BreakerState::CacheOnly
                    if breaker.auto_recover.0 > 0 && self.since + breaker.auto_recover.0 <= now =>
                {
                    let at = self.since + breaker.auto_recover.0;
                    self.enter(BreakerState::Sleep, TransitionCause::AutoRecover, at);
                    (self.attempt, self.until) = (true, Some(at + breaker.sleep_min.0));
                }
                BreakerState::Normal if self.ramp_at.is_some_and(|at| at <= now) => {
                    let at = self.ramp_at.unwrap();
                    let base = self.numbers.rate_base();
                    self.ramp_from.1 += 1;
                    let (from, steps) = self.ramp_from;
                    let next = Numbers::grown(from, breaker.ramp_factor, steps + 1, base);
                    let done = next >= base;
                    self.rate = (!done).then_some(next);
                    self.ramp_at = (!done).then_some(at + breaker.ramp_every.0);
                    self.drive(at);
                }
                _ => break,
            }
            acted = true;
        }
        if self.state == BreakerState::HalfOpen && now >= self.probe_at + breaker.probe_timeout.0 {
            let live = self.flights.iter().filter(|flight| !flight.written_off).count() as u32;
            if live >= self.concurrency().unwrap() {
                self.flights.iter_mut().for_each(|flight| flight.written_off = true);
                self.probe_at = now;
                acted = true;
            }
        }
        if acted {
            self.seen = self.seen.max(now);
        }
    }

    /// R54: applies the rate of the state, and the capacity that goes with it.
    pub fn drive(&mut self, at: u64) {
        let (rate, base) = (self.current_rate(), self.numbers.rate_base());
        if self.numbers.kind == BreakerKind::Fsm
            && let Some(first) = self.buckets.first_mut()
        {
            let burst = u128::from(first.full) * u128::from(rate) / u128::from(base);
            let capacity = (burst as u64).max(1);
            if (first.rate, first.capacity) != (rate, capacity) {
                first.change(at.max(self.seen), rate, capacity);
                self.changes += 1;
            }
        }
    }

    fn enter(&mut self, to: BreakerState, cause: TransitionCause, at: u64) {
        if self.state != to {
            self.recent.push((at, self.state, to, cause));
        }
        (self.state, self.since, self.until, self.ramp_at) = (to, at, None, None);
        (self.agreed, self.successes) = (0, 0);
        self.flights.iter_mut().for_each(|flight| flight.written_off = false);
        let by_itself = matches!(cause, TransitionCause::AutoRecover | TransitionCause::SleepExpired);
        self.attempt &= by_itself;
        match to {
            BreakerState::Normal => {
                (self.sleeps, self.failures, self.rate) = (0, 0, None);
                // R62: only a recovery by probes ramps up.
                let start = self.numbers.throttle_rate();
                if cause == TransitionCause::ProbeOk
                    && self.numbers.kind == BreakerKind::Fsm
                    && start < self.numbers.rate_base()
                {
                    self.rate = Some(start);
                    self.ramp_from = (start, 0);
                    self.ramp_at = Some(at + self.numbers.breaker.ramp_every.0);
                }
            }
            BreakerState::Throttle => self.rate = Some(self.numbers.throttle_rate()),
            BreakerState::HalfOpen => {
                // R60, for the five states.
                if self.numbers.kind == BreakerKind::Fsm {
                    self.outcomes.clear();
                    (self.consec429, self.sustained) = (0, None);
                }
                // A rate below that of Throttle can only be the rate of earlier probes.
                let before = self.current_rate().max(self.numbers.throttle_rate());
                self.rate = Some(self.numbers.breaker.probe_rate.0.min(before));
                self.probe_at = at;
            }
            _ => {}
        }
        self.drive(at);
    }

    /// R57, R141.
    fn sleep(&mut self, cause: TransitionCause, wait: Option<u64>, now: u64) {
        let breaker = self.numbers.breaker;
        let often = breaker.cache_only_after > 0 && self.sleeps >= breaker.cache_only_after;
        if often && cause != TransitionCause::Forced {
            return self.enter(BreakerState::CacheOnly, cause, now);
        }
        self.enter(BreakerState::Sleep, cause, now);
        self.sleeps += 1;
        let most = breaker.sleep_max.0;
        let cooldown = Numbers::grown(breaker.sleep_min.0, breaker.cooldown_factor, self.sleeps, most);
        self.until = Some(now + cooldown.max(wait.unwrap_or(0)));
    }

    /// An outcome that counts. Returns samples, errors and 429s in a row as of this evaluation.
    pub fn evaluate(&mut self, class: OutcomeClass, wait: Option<u64>, now: u64) -> (u32, u64, u32) {
        let was_empty = self.window(now).is_empty();
        self.outcomes.push((now, class));
        self.consec429 = if class == OutcomeClass::Throttled { self.consec429 + 1 } else { 0 };
        let (samples, errors) = self.counted(now);
        let evaluated = (samples, errors, self.consec429);
        match self.numbers.kind {
            BreakerKind::Fsm => self.five_states(class, wait, was_empty, now),
            BreakerKind::Consecutive => self.consecutive(class, now),
            BreakerKind::None => {}
        }
        evaluated
    }

    fn five_states(&mut self, class: OutcomeClass, wait: Option<u64>, was_empty: bool, now: u64) {
        let breaker = self.numbers.breaker;
        self.successes += u32::from(class == OutcomeClass::Ok);
        self.sustained = match self.sustained {
            _ if !self.reaches(breaker.p_sleep, now) => None,
            Some(first) if !was_empty => Some(first),
            _ => Some(now),
        };
        let agrees = match self.state {
            BreakerState::Normal => self.reaches(breaker.p_throttle, now),
            BreakerState::Throttle => {
                self.successes >= breaker.s_recover && self.is_below(breaker.p_recover, now)
            }
            _ => false,
        };
        self.agreed = if agrees { self.agreed + 1 } else { 0 };
        let confirmed = self.agreed >= breaker.hysteresis;
        let lasted = self.sustained.is_some_and(|first| now.saturating_sub(first) >= breaker.sleep_after.0);
        match self.state {
            BreakerState::Normal if self.consec429 >= breaker.n_throttle => {
                self.enter(BreakerState::Throttle, TransitionCause::Consec429, now);
            }
            BreakerState::Normal if confirmed => {
                self.enter(BreakerState::Throttle, TransitionCause::ErrorRatio, now)
            }
            BreakerState::Throttle if self.consec429 >= breaker.n_cacheonly => {
                self.sleep(TransitionCause::Consec429, wait, now);
            }
            BreakerState::Throttle if lasted => self.sleep(TransitionCause::SustainedErrors, wait, now),
            BreakerState::Throttle if confirmed => {
                self.enter(BreakerState::HalfOpen, TransitionCause::SuccessWindowOk, now)
            }
            BreakerState::HalfOpen if class == OutcomeClass::Ok => self.probed(now),
            BreakerState::HalfOpen if self.attempt => {
                self.enter(BreakerState::CacheOnly, TransitionCause::ProbeFailed, now)
            }
            BreakerState::HalfOpen => self.sleep(TransitionCause::ProbeFailed, wait, now),
            // R59: the sleep may become longer, never shorter.
            BreakerState::Sleep => {
                if let (Some(until), Some(wait)) = (self.until, wait) {
                    self.until = Some(until.max(now + wait));
                }
            }
            _ => {}
        }
    }

    /// Handles a successful probe. It may have been the last one needed.
    fn probed(&mut self, now: u64) {
        let breaker = self.numbers.breaker;
        if self.successes >= breaker.s_probe_ok && self.is_below(breaker.p_recover, now) {
            self.enter(BreakerState::Normal, TransitionCause::ProbeOk, now);
        }
    }

    fn consecutive(&mut self, class: OutcomeClass, now: u64) {
        let breaker = self.numbers.breaker;
        let fine = class == OutcomeClass::Ok;
        match self.state {
            BreakerState::Normal => {
                self.failures = if fine { 0 } else { self.failures + 1 };
                if self.failures >= breaker.failure_threshold {
                    self.open(TransitionCause::ConsecutiveFailures, now);
                }
            }
            BreakerState::HalfOpen if fine => {
                self.successes += 1;
                if self.successes >= breaker.required_successes {
                    self.enter(BreakerState::Normal, TransitionCause::ProbeOk, now);
                }
            }
            BreakerState::HalfOpen => {
                self.failures += 1;
                self.open(TransitionCause::ProbeFailed, now);
            }
            _ => {}
        }
    }

    fn open(&mut self, cause: TransitionCause, now: u64) {
        self.enter(BreakerState::Open, cause, now);
        self.until = Some(now + self.numbers.breaker.reset_timeout.0);
    }

    /// Whether an outcome of a call granted at this time is from before the current state (R140).
    pub fn is_late(&self, granted: Option<u64>) -> bool {
        self.state == BreakerState::HalfOpen && granted.is_some_and(|granted| granted < self.since)
    }

    pub fn force(&mut self, what: BreakerCommand, now: u64) {
        match what {
            BreakerCommand::Normal | BreakerCommand::Closed => {
                self.enter(BreakerState::Normal, TransitionCause::Forced, now);
                self.outcomes.clear();
                (self.consec429, self.sustained) = (0, None);
            }
            BreakerCommand::Throttle => self.enter(BreakerState::Throttle, TransitionCause::Forced, now),
            BreakerCommand::Sleep => self.sleep(TransitionCause::Forced, None, now),
            BreakerCommand::HalfOpen => self.enter(BreakerState::HalfOpen, TransitionCause::Forced, now),
            BreakerCommand::CacheOnly => self.enter(BreakerState::CacheOnly, TransitionCause::Forced, now),
            BreakerCommand::Open => self.open(TransitionCause::Forced, now),
            BreakerCommand::Offline => {
                let fsm = self.numbers.kind == BreakerKind::Fsm;
                self.enter(
                    if fsm { BreakerState::Sleep } else { BreakerState::Open },
                    TransitionCause::Forced,
                    now,
                );
            }
            BreakerCommand::Online => {
                let offline =
                    matches!(self.state, BreakerState::Sleep | BreakerState::Open) && self.until.is_none();
                if offline || self.state == BreakerState::CacheOnly {
                    self.enter(BreakerState::HalfOpen, TransitionCause::Forced, now);
                }
            }
            BreakerCommand::ClearGate => {
                self.gate = 0;
                if let Some(pace) = &mut self.pace {
                    pace.forget();
                }
            }
        }
        if what != BreakerCommand::ClearGate {
            self.seen = self.seen.max(now);
        }
    }

    /// The end of a Sleep as it is reported: not before the gate opens (R57).
    pub fn eta(&self) -> Option<u64> {
        self.until.filter(|_| self.state == BreakerState::Sleep).map(|until| until.max(self.gate))
    }

    /// When CacheOnly tries to recover by itself.
    pub fn cache_only_until(&self, auto_recover: u64) -> u64 {
        self.since + auto_recover
    }

    /// Notes that a probe was sent.
    pub fn sent(&mut self, now: u64) {
        self.probe_at = now;
    }

    /// Other numbers of the same kind (R110).
    pub fn patch(&mut self, new: Numbers, now: u64) {
        let (old_throttle, old) = (self.numbers.throttle_rate(), self.rate);
        self.numbers = new;
        let (throttle, base) = (self.numbers.throttle_rate(), self.numbers.rate_base());
        let probe = self.numbers.breaker.probe_rate.0;
        self.rate = match (self.state, old) {
            (_, None) => None,
            (BreakerState::HalfOpen, Some(rate)) => {
                Some(probe.min(if rate > old_throttle { base } else { throttle }))
            }
            (BreakerState::Normal, Some(rate)) if rate >= base => None,
            (BreakerState::Normal, Some(rate)) => Some(rate),
            (_, Some(rate)) if rate == old_throttle => Some(throttle),
            (_, Some(rate)) => Some(rate.min(base)),
        };
        if self.rate.is_none() {
            self.ramp_at = None;
        }
        self.seen = self.seen.max(now);
        for (bucket, rule) in self.buckets.iter_mut().zip(&self.numbers.rules) {
            if bucket.full != rule.burst {
                bucket.full = rule.burst;
                bucket.change(now, bucket.rate, rule.burst);
                self.changes += 1;
            }
        }
        if self.numbers.kind == BreakerKind::Fsm {
            self.drive(now);
        }
    }
}
