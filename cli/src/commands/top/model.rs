//! Turns observations at two moments into rates per second.

use super::programs::{self, Counted, User};
use crate::poller::Observation;
use crate::ui::limiter::severity::{self, Severity};
use shmlimit::Snapshot;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// The number of samples that are kept: the columns of a wide screen.
const HISTORY: usize = 240;
/// How long a removed limiter stays visible.
const REMOVED_VISIBLE_FOR: Duration = Duration::from_secs(10);
/// Number of polls over which rates of single processes are averaged. A single poll often sees only one call or none.
const RATE_SAMPLES: usize = 5;

/// The observed limiters.
#[derive(Default)]
pub struct Model {
    pub tracks: BTreeMap<String, Track>,
    /// Why no limiter can be observed.
    pub error: Option<String>,
}

/// One limiter over time.
#[derive(Default)]
pub struct Track {
    pub seen: Option<Box<Snapshot>>,
    /// Why the latest poll failed.
    pub error: Option<String>,
    /// The samples, the newest last.
    pub history: VecDeque<Sample>,
    pub users: Vec<User>,
    at: Duration,
    counts: VecDeque<Counted>,
}

/// Rates between two polls, per second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sample {
    pub grants: f64,
    pub refusals: f64,
    /// The ratio of errors among the outcomes that count, 0 to 1.
    pub errors: f64,
}

impl Model {
    /// Adds the observations of one poll.
    pub fn update(&mut self, at: Duration, observations: Vec<Observation>) {
        self.error = None;
        let there: Vec<String> = observations.iter().map(|(name, _)| name.clone()).collect();
        for (name, seen) in observations {
            let track = self.tracks.entry(name).or_default();
            match seen {
                Ok(snapshot) => track.observed(at, snapshot),
                Err(error) => track.lost(at, error),
            }
        }
        for (name, track) in &mut self.tracks {
            if !there.contains(name) && track.error.as_deref() != Some(REMOVED) {
                track.lost(at, REMOVED.to_owned());
            }
        }
        self.tracks
            .retain(|name, track| there.contains(name) || at.saturating_sub(track.at) < REMOVED_VISIBLE_FOR);
    }

    /// Notes that a poll failed for all limiters.
    pub fn fail(&mut self, error: String) {
        self.error = Some(error);
    }
}

pub const REMOVED: &str = "it was removed";

impl Track {
    fn observed(&mut self, at: Duration, snapshot: Snapshot) {
        let before = self.seen.take().filter(|_| self.error.is_none());
        let seconds = at.saturating_sub(self.at).as_secs_f64();
        let counts = &snapshot.counts;
        let sample = before.filter(|_| seconds > 0.0).map(|before| Sample {
            // The counts of a replaced limiter start again at 0.
            grants: counts.granted.saturating_sub(before.counts.granted) as f64 / seconds,
            refusals: counts.refused.saturating_sub(before.counts.refused) as f64 / seconds,
            errors: snapshot.condition.error_ratio,
        });
        if let Some(sample) = sample {
            self.history.push_back(sample);
        } else {
            self.counts.clear();
        }
        if self.history.len() > HISTORY {
            self.history.pop_front();
        }
        let users = programs::of(&snapshot);
        self.counts.push_back(programs::counted(at, &users, counts.granted));
        if self.counts.len() > RATE_SAMPLES + 1 {
            self.counts.pop_front();
        }
        self.users = programs::shares(users, &self.counts);
        self.error = None;
        self.at = at;
        self.seen = Some(Box::new(snapshot));
    }

    fn lost(&mut self, at: Duration, error: String) {
        self.error = Some(error);
        self.users.clear();
        self.at = at;
    }

    /// Returns the newest sample.
    pub fn rate(&self) -> Sample {
        self.history.back().copied().filter(|_| self.error.is_none()).unwrap_or_default()
    }

    /// Returns the limiter's state in one word.
    pub fn verdict(&self) -> (&'static str, Severity) {
        match (&self.error, &self.seen) {
            (Some(error), _) if error == REMOVED => ("removed", Severity::Blocked),
            (Some(_), _) => ("unreadable", Severity::Blocked),
            (None, Some(seen)) => severity::assess(seen),
            (None, None) => ("", Severity::Normal),
        }
    }

    /// Returns the urgency, for sorting: blocked or slow first, then late, refused and waiting calls.
    pub fn trouble(&self) -> (Severity, bool, bool, bool) {
        let late = self.seen.as_ref().is_some_and(|seen| seen.queue.iter().any(|one| one.late));
        (self.verdict().1, late, self.rate().refusals > 0.0, self.waiting() > 0)
    }

    pub fn waiting(&self) -> usize {
        self.seen.as_ref().map_or(0, |seen| seen.queue.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shmlimit::{Limiter, Request, config::ConfigSource};

    fn limiter(directory: &tempfile::TempDir) -> Limiter {
        let source = ConfigSource::default().setting("rate", "1000/day");
        Limiter::builder("web").directory(directory.path()).config(source).open().unwrap()
    }

    fn see(model: &mut Model, secs: u64, limiter: &Limiter) {
        let observation = ("web".to_owned(), limiter.snapshot().map_err(|error| error.to_string()));
        model.update(Duration::from_secs(secs), vec![observation]);
    }

    fn take(limiter: &Limiter, calls: usize) {
        (0..calls).for_each(|_| limiter.try_acquire(&Request::new()).unwrap().release().unwrap());
    }

    #[test]
    fn rates_are_differences_by_time() {
        let directory = tempfile::tempdir().unwrap();
        let (limiter, mut model) = (limiter(&directory), Model::default());
        take(&limiter, 50);
        see(&mut model, 0, &limiter);
        assert!(model.tracks["web"].history.is_empty(), "one poll gives no rate");
        assert_eq!(model.tracks["web"].users[0].rate, 0.0);
        take(&limiter, 30);
        see(&mut model, 2, &limiter);
        let track = &model.tracks["web"];
        assert_eq!(track.rate(), Sample { grants: 15.0, refusals: 0.0, errors: 0.0 });
        let user = &track.users[0];
        assert_eq!((user.rate, user.share, user.granted), (15.0, 1.0, 80));
    }

    #[test]
    fn processes_that_exited_are_still_counted() {
        let directory = tempfile::tempdir().unwrap();
        let (first, mut model) = (limiter(&directory), Model::default());
        see(&mut model, 0, &first);
        take(&first, 5);
        let second = limiter(&directory);
        take(&second, 15);
        drop(second);
        see(&mut model, 1, &first);
        let users = &model.tracks["web"].users;
        assert_eq!(
            users.iter().map(|user| (user.pid.is_some(), user.share)).collect::<Vec<_>>(),
            [(true, 0.25), (false, 0.75)]
        );
    }

    #[test]
    fn a_process_that_is_attached_twice_is_one_user() {
        let directory = tempfile::tempdir().unwrap();
        let (first, second, mut model) = (limiter(&directory), limiter(&directory), Model::default());
        take(&first, 3);
        see(&mut model, 0, &first);
        take(&first, 5);
        take(&second, 7);
        see(&mut model, 4, &first);
        let users = &model.tracks["web"].users;
        assert_eq!(users.len(), 1);
        assert_eq!((users[0].rate, users[0].share, users[0].granted), (3.0, 1.0, 15));
    }

    #[test]
    fn one_that_is_removed_is_shown_for_a_while_and_one_that_comes_back_starts_afresh() {
        let directory = tempfile::tempdir().unwrap();
        let (limiter, mut model) = (limiter(&directory), Model::default());
        see(&mut model, 0, &limiter);
        take(&limiter, 10);
        model.update(Duration::from_secs(1), Vec::new());
        assert_eq!(model.tracks["web"].verdict().0, "removed");
        assert_eq!(model.tracks["web"].rate(), Sample::default());
        see(&mut model, 2, &limiter);
        assert_eq!(model.tracks["web"].verdict().0, "ready");
        assert!(model.tracks["web"].history.is_empty());
        model.update(Duration::from_secs(3), Vec::new());
        model.update(Duration::from_secs(12), Vec::new());
        assert!(!model.tracks.is_empty());
        model.update(Duration::from_secs(14), Vec::new());
        assert!(model.tracks.is_empty());
    }

    #[test]
    fn one_that_cannot_be_read_says_why_and_goes_on() {
        let mut model = Model::default();
        let bad = |model: &mut Model, at| {
            model.update(Duration::from_secs(at), vec![("bad".to_owned(), Err("is damaged".to_owned()))]);
        };
        (0..100).for_each(|at| bad(&mut model, at));
        assert_eq!(model.tracks["bad"].verdict(), ("unreadable", Severity::Blocked));
        assert_eq!(model.tracks["bad"].error.as_deref(), Some("is damaged"));
    }

    #[test]
    fn no_more_is_remembered_than_a_screen_shows() {
        let directory = tempfile::tempdir().unwrap();
        let (limiter, mut model) = (limiter(&directory), Model::default());
        (0..2 * HISTORY as u64).for_each(|at| see(&mut model, at, &limiter));
        assert_eq!(model.tracks["web"].history.len(), HISTORY);
        assert!(model.tracks["web"].counts.len() <= RATE_SAMPLES + 1);
    }
}
