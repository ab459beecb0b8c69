//! Keeps a run of any length in a fixed number of equal time buckets: when the run grows, neighbours are merged.

use shmlimit_kernel::breaker::BreakerState;

/// The maximum number of buckets.
pub const MOST: usize = 300;

/// The events in one stretch of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bucket {
    pub granted: u64,
    pub refused: u64,
    /// The maximum of calls in flight and their number at the end; `None` if no operation fell into the bucket.
    pub in_flight: Option<(u32, u32)>,
    /// The effective rate at the end of the bucket.
    pub rate: Option<f64>,
    /// The time spent in each state, in the order in which the states occurred.
    pub states: Vec<(BreakerState, u64)>,
}

impl Bucket {
    fn stay(&mut self, state: BreakerState, length: u64) {
        match self.states.iter_mut().find(|(known, _)| *known == state) {
            Some((_, sum)) => *sum = sum.saturating_add(length),
            None => self.states.push((state, length)),
        }
    }

    /// Merges this bucket with the following one.
    fn join(&mut self, next: Bucket) {
        self.granted += next.granted;
        self.refused += next.refused;
        self.in_flight = match (self.in_flight, next.in_flight) {
            (Some((most, _)), Some((later, end))) => Some((most.max(later), end)),
            (one, other) => other.or(one),
        };
        self.rate = next.rate.or(self.rate);
        for (state, length) in next.states {
            self.stay(state, length);
        }
    }
}

/// The buckets up to the latest time seen.
pub struct Buckets {
    pub origin: u64,
    /// The width of each bucket in nanoseconds.
    pub width: u64,
    pub list: Vec<Bucket>,
    pub last: u64,
}

impl Buckets {
    pub fn new(origin: u64) -> Buckets {
        Buckets { origin, width: 1, list: vec![Bucket::default()], last: origin }
    }

    /// Returns the bucket of a time, which must not be before the origin.
    pub fn at(&mut self, time: u64) -> &mut Bucket {
        self.last = self.last.max(time);
        let past = time.saturating_sub(self.origin);
        while past / self.width >= MOST as u64 {
            self.widen();
        }
        let index = (past / self.width) as usize;
        if self.list.len() <= index {
            self.list.resize(index + 1, Bucket::default());
        }
        &mut self.list[index]
    }

    fn widen(&mut self) {
        let factor = factor(self.width);
        self.width = self.width.saturating_mul(factor);
        let mut old = std::mem::take(&mut self.list).into_iter();
        while let Some(mut first) = old.next() {
            for next in old.by_ref().take(factor as usize - 1) {
                first.join(next);
            }
            self.list.push(first);
        }
    }

    /// Adds a stretch of time in one state.
    pub fn stay(&mut self, state: BreakerState, from: u64, to: u64) {
        self.at(to).stay(state, 0);
        let mut from = from.max(self.origin);
        while from < to {
            let index = (from - self.origin) / self.width;
            let end = self.origin.saturating_add((index + 1).saturating_mul(self.width)).min(to);
            self.at(from).stay(state, end - from);
            if end == from {
                break;
            }
            from = end;
        }
    }
}

/// Returns how many buckets of this width form the next wider one. All widths are round.
fn factor(width: u64) -> u64 {
    const SECOND: u64 = 1_000_000_000;
    const LADDER: [(u64, u64); 10] = [
        (10, 3),
        (30, 2),
        (60, 5),
        (300, 2),
        (600, 3),
        (1800, 2),
        (3600, 6),
        (21_600, 2),
        (43_200, 2),
        (86_400, 10),
    ];
    if let Some((_, factor)) = LADDER.iter().find(|(seconds, _)| seconds * SECOND == width) {
        return *factor;
    }
    match width {
        // 1, 2, 10, 20, 100 … up to 10 s.
        _ if width < 10 * SECOND => {
            if width.to_string().starts_with('1') {
                2
            } else {
                5
            }
        }
        _ => 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_widths_are_round() {
        let mut width = 1_u64;
        let mut seen = Vec::new();
        while width < 86_400_000_000_000 {
            width *= factor(width);
            seen.push(width);
        }
        let seconds: Vec<_> =
            seen.iter().filter(|w| **w >= 1_000_000_000).map(|w| w / 1_000_000_000).collect();
        assert_eq!(seconds, [1, 2, 10, 30, 60, 300, 600, 1800, 3600, 21_600, 43_200, 86_400]);
    }

    #[test]
    fn nothing_is_lost_when_the_run_grows_and_the_list_stays_small() {
        let mut buckets = Buckets::new(5);
        for i in 0..100_000_u64 {
            buckets.at(5 + i * 1_000_003).granted += 1;
        }
        assert!(buckets.list.len() <= MOST);
        assert_eq!(buckets.list.iter().map(|bucket| bucket.granted).sum::<u64>(), 100_000);
        assert!(buckets.width * MOST as u64 > 100_000 * 1_000_003);
        buckets.at(u64::MAX).refused += 1;
        assert!(buckets.list.len() <= MOST);
        assert_eq!(buckets.list.iter().map(|bucket| bucket.granted).sum::<u64>(), 100_000);
    }

    #[test]
    fn stretch_is_shared_among_the_buckets_it_covers() {
        let mut buckets = Buckets::new(0);
        buckets.stay(BreakerState::Normal, 0, 1_000_000);
        buckets.stay(BreakerState::Sleep, 1_000_000, 3_000_000);
        let length = |state| {
            let states = buckets.list.iter().flat_map(|bucket| &bucket.states);
            states.filter(|(known, _)| *known == state).map(|(_, length)| length).sum::<u64>()
        };
        assert_eq!((length(BreakerState::Normal), length(BreakerState::Sleep)), (1_000_000, 2_000_000));
    }

    #[test]
    fn merged_bucket_keeps_the_higher_peak_and_the_later_end() {
        let mut one = Bucket { in_flight: Some((4, 1)), rate: Some(35.0), ..Bucket::default() };
        one.join(Bucket { in_flight: Some((3, 2)), ..Bucket::default() });
        assert_eq!((one.in_flight, one.rate), (Some((4, 2)), Some(35.0)));
        one.join(Bucket::default());
        assert_eq!(one.in_flight, Some((4, 2)));
    }
}
