//! Deleting, removing, replacing, opening, forking and killing in any order. A limiter never grants more than its
//! limit, unless it was started afresh on purpose, or no process that used it is left.

use crate::participants::{Action, LIMIT, Participant};
use crate::util::mounts::{bind, with_own_mounts};
use crate::util::respawn::in_own_process;
use crate::util::{builder, counted, directory, segment_path, take};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};
use shmlimit::{Algorithm, Limiter, Policy, PolicyDraft, Request, RuleDraft};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

fn policy() -> Policy {
    counted(LIMIT as u64, None)
}

/// Two participants in this process, two in children.
const PARTICIPANTS: usize = 4;
const HERE: usize = 2;

#[derive(Clone, Copy, Debug)]
enum Event {
    /// The file is deleted by hand.
    Delete,
    Act(usize, Action),
    /// A child is killed, and a new child is forked in its place, perhaps with the handle of a participant in this
    /// process.
    Fork(usize, Option<usize>),
    /// A child is killed before this step of an action.
    Kill(usize, Action, usize),
}

/// The history of one limiter, and how much was granted since it was last allowed to start afresh.
struct Scenario {
    directories: [PathBuf; 2],
    participants: Vec<Participant>,
    /// The participants that use the limiter. A forked child uses it once it has used the handle that it inherited.
    uses: [bool; PARTICIPANTS],
    granted: usize,
}

impl Scenario {
    fn new(directories: [&Path; 2]) -> Scenario {
        let directories = directories.map(Path::to_owned);
        let participant = |index| match index {
            0..HERE => Participant::here(&directories[index % 2], policy()),
            _ => Participant::forked(&directories[index % 2], policy(), None),
        };
        Scenario {
            participants: (0..PARTICIPANTS).map(participant).collect(),
            uses: [false; PARTICIPANTS],
            granted: 0,
            directories,
        }
    }

    fn apply(&mut self, event: Event) {
        match event {
            Event::Delete => drop(std::fs::remove_file(segment_path(&self.directories[0]))),
            Event::Act(participant, action) => self.perform(participant, action),
            Event::Fork(participant, parent) => self.fork(participant, parent),
            Event::Kill(participant, action, step) => {
                self.participants[participant].kill_in(action, step);
                self.fork(participant, None);
                // The killed action may have been completed.
                if matches!(action, Action::Replace | Action::Remove(_)) {
                    self.granted = 0;
                }
            }
        }
        if !self.uses.contains(&true) && !segment_path(&self.directories[0]).exists() {
            self.granted = 0;
        }
    }

    fn perform(&mut self, participant: usize, action: Action) {
        let done = self.participants[participant].perform(action);
        match action {
            Action::Take(_) => {
                self.granted += done;
                self.uses[participant] |= done > 0;
            }
            Action::Open | Action::Init => self.uses[participant] |= done > 0,
            Action::Replace => (self.uses[participant], self.granted) = (true, 0),
            Action::Remove(_) if done > 0 => self.granted = 0,
            Action::Remove(_) => {}
            Action::Close => self.uses[participant] = false,
        }
    }

    fn fork(&mut self, participant: usize, parent: Option<usize>) {
        let directory = &self.directories[participant % 2];
        self.participants[participant] =
            Participant::forked(directory, policy(), parent.map(|parent| &self.participants[parent]));
        self.uses[participant] = false;
    }
}

/// Runs all events. Then the file is deleted once more, and every participant asks for the whole limit.
fn check(directories: [&Path; 2], events: &[Event]) -> Result<(), TestCaseError> {
    let mut scenario = Scenario::new(directories);
    let all = (0..PARTICIPANTS).map(|participant| Event::Act(participant, Action::Take(LIMIT as u8)));
    for event in events.iter().copied().chain([Event::Delete]).chain(all) {
        scenario.apply(event);
        prop_assert!(scenario.granted <= LIMIT, "{} granted at {event:?}", scenario.granted);
    }
    Ok(())
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let participant = 0..PARTICIPANTS;
    let child = HERE..PARTICIPANTS;
    let making =
        prop_oneof![Just(Action::Open), Just(Action::Init), Just(Action::Replace), Just(Action::Remove(1))];
    let killed_in = prop_oneof![(1..6_u8).prop_map(Action::Take), making];
    let perform = |action| {
        (participant.clone(), action).prop_map(|(participant, action)| Event::Act(participant, action))
    };
    let event = prop_oneof![
        5 => perform((1..6_u8).prop_map(Action::Take).boxed()),
        4 => Just(Event::Delete),
        3 => perform(Just(Action::Open).boxed()),
        1 => perform(Just(Action::Init).boxed()),
        2 => perform(Just(Action::Replace).boxed()),
        2 => perform((0..2_u8).prop_map(Action::Remove).boxed()),
        1 => perform(Just(Action::Close).boxed()),
        1 => (child.clone(), prop::option::of(0..HERE)).prop_map(|(participant, from)| Event::Fork(participant, from)),
        2 => (child, killed_in, 0..8_usize)
            .prop_map(|(participant, action, step)| Event::Kill(participant, action, step)),
    ];
    // A limiter is open from the beginning.
    (participant.clone(), prop::collection::vec(event, 1..24)).prop_map(|(first, mut events)| {
        events.insert(0, Event::Act(first, Action::Open));
        events
    })
}

/// The ways in which a segment ends.
fn ends() -> [Event; 4] {
    [
        Event::Delete,
        Event::Act(3, Action::Remove(0)),
        Event::Act(3, Action::Remove(1)),
        Event::Act(3, Action::Replace),
    ]
}

/// The events that may follow an end. Participants 0 and 2 have used the limiter from the beginning; 3 is the
/// newcomer.
fn sequels() -> [&'static [Event]; 6] {
    const SPEND: Action = Action::Take(6);
    [
        &[],
        &[Event::Act(0, SPEND)],
        &[Event::Act(2, SPEND)],
        &[Event::Act(3, Action::Open), Event::Act(3, SPEND)],
        &[Event::Act(3, Action::Open), Event::Act(3, SPEND), Event::Fork(3, None)],
        &[Event::Fork(2, Some(0)), Event::Act(2, SPEND)],
    ]
}

#[test]
fn every_order_of_three_ends_and_the_events_between_them_keeps_the_limit() {
    in_own_process!();
    let rounds: Vec<Vec<Event>> =
        ends().into_iter().flat_map(|end| sequels().map(|sequel| [&[end], sequel].concat())).collect();
    let beginning =
        vec![Event::Act(0, Action::Open), Event::Act(2, Action::Open), Event::Act(2, Action::Take(1))];
    for (first, second) in rounds.iter().flat_map(|first| rounds.iter().map(move |second| (first, second))) {
        let home = directory();
        let events = [beginning.clone(), first.clone(), second.clone()].concat();
        check([home.path(), home.path()], &events).unwrap_or_else(|failure| panic!("{events:?}: {failure}"));
    }
}

#[test]
fn a_kill_between_any_two_steps_of_creating_or_removing_keeps_the_limit() {
    in_own_process!();
    let actions = [Action::Take(1), Action::Open, Action::Init, Action::Replace, Action::Remove(1)];
    for (action, step) in actions.into_iter().flat_map(|action| (0..10).map(move |step| (action, step))) {
        for deleted in [false, true] {
            let home = directory();
            let mut events = vec![Event::Act(0, Action::Open), Event::Act(2, Action::Open)];
            events.extend(deleted.then_some(Event::Delete));
            events.extend([
                Event::Kill(2, action, step),
                Event::Act(3, Action::Open),
                Event::Act(3, Action::Take(6)),
            ]);
            check([home.path(), home.path()], &events)
                .unwrap_or_else(|failure| panic!("{events:?}: {failure}"));
        }
    }
}

/// An idle handle has a segment that was deleted. Newcomers spend what the limiter refills over time. With
/// `killed_at`, the first newcomer is killed at this step of creating the successor. Then the successor is deleted
/// too, and the idle handle is used.
fn spend_with_time(killed_at: Option<usize>) {
    const WINDOW: Duration = Duration::from_millis(300);
    let rule =
        RuleDraft::new(Algorithm::SlidingLog, LIMIT as u64, Duration::from_millis(WINDOW.as_millis() as u64));
    let policy = Policy::new(&PolicyDraft { rules: &[rule], ..PolicyDraft::default() }).unwrap();
    let home = directory();
    let idle = builder(home.path()).policy(policy).create().unwrap();
    std::fs::remove_file(segment_path(home.path())).unwrap();
    if let Some(step) = killed_at {
        Participant::forked(home.path(), policy, None).kill_in(Action::Open, step);
    }
    let newcomer = builder(home.path()).policy(policy).open().unwrap();
    // The earliest and the latest time at which each call was granted.
    let mut grants = Vec::new();
    for _ in 0..LIMIT {
        let asked = Instant::now();
        std::mem::forget(newcomer.acquire(&Request::new()).unwrap());
        grants.push((asked, Instant::now()));
    }
    drop(newcomer);
    std::fs::remove_file(segment_path(home.path())).unwrap();
    for _ in 0..LIMIT {
        let asked = Instant::now();
        if take(&idle) {
            grants.push((asked, Instant::now()));
        }
    }
    for (first, last) in grants.iter().zip(grants.iter().skip(LIMIT)) {
        let within = last.1 - first.0;
        assert!(within >= WINDOW, "{} grants within {within:?}, killed at {killed_at:?}", LIMIT + 1);
    }
}

#[test]
fn an_idle_handle_does_not_restore_what_newcomers_spent_later() {
    in_own_process!();
    spend_with_time(None);
}

#[test]
fn an_idle_handle_restores_nothing_if_a_newcomer_was_killed_while_creating_the_successor() {
    in_own_process!();
    (0..8).for_each(|step| spend_with_time(Some(step)));
}

/// Only the creation of a segment of the same limiter asks for a generation; other limiters have no effect.
#[test]
fn a_handle_continues_its_deleted_limiter_while_other_limiters_are_created() {
    in_own_process!();
    let home = directory();
    let policy = policy();
    let limiter = builder(home.path()).policy(policy).create().unwrap();
    for left in (0..LIMIT).rev() {
        std::fs::remove_file(segment_path(home.path())).unwrap();
        let other = Limiter::builder(&format!("other{left}")).directory(home.path());
        drop(other.policy(policy).create().unwrap());
        assert!(take(&limiter));
        assert_eq!(limiter.snapshot().unwrap().rules[0].remaining, left as u64);
    }
    assert!(std::fs::metadata(home.path().join("ratelimit.lock")).unwrap().len() <= 256 * 1024);
}

/// The same events in every run, unless `PROPTEST_RNG_SEED` or `PROPTEST_CASES` is set.
fn runner() -> TestRunner {
    let usual = ProptestConfig::default();
    let rng_seed = if usual.rng_seed == RngSeed::Random { RngSeed::Fixed(1) } else { usual.rng_seed };
    let cases = usual.cases.min(if std::env::var_os("PROPTEST_CASES").is_some() { u32::MAX } else { 128 });
    TestRunner::new(ProptestConfig { cases, rng_seed, failure_persistence: None, ..usual })
}

#[test]
fn no_order_of_deletions_removals_and_kills_grants_more_than_the_limit() {
    in_own_process!();
    let run = |events: Vec<Event>| {
        let home = directory();
        check([home.path(), home.path()], &events)
    };
    runner().run(&events(), run).unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn no_order_grants_more_than_the_limit_if_participants_use_two_paths() {
    in_own_process!();
    with_own_mounts(|directory| {
        let mut count = 0;
        let mut runner = runner();
        let run = |events: Vec<Event>| {
            count += 1;
            let [here, there] = ["here", "there"].map(|name| directory.join(format!("{name}{count}")));
            for path in [&here, &there] {
                std::fs::create_dir(path).unwrap();
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).unwrap();
            }
            bind(&here, &there).unwrap();
            check([&here, &there], &events)
        };
        let run = std::cell::RefCell::new(run);
        runner
            .run(&events(), |events| (run.borrow_mut())(events))
            .unwrap_or_else(|failure| panic!("{failure}"));
        Ok(())
    });
}
