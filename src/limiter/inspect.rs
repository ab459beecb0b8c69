//! A look at a limiter's file from outside: nothing is attached, locked or changed.

use super::builder::Builder;
use super::fields::{Condition, PauseSnapshot};

use shmlimit_kernel::queue::WAITERS;
use shmlimit_kernel::state::View;
use shmlimit_kernel::{Policy, Time};
use shmlimit_segment::Error;
use shmlimit_segment::file::{self, Verified};
use shmlimit_segment::journal::{self, Found};
use shmlimit_segment::layout::{self, SLOTS, header};
use shmlimit_segment::memory::Reader;
use shmlimit_segment::sys::{self, Account, FileFacts};
use shmlimit_segment::words::Words;
use shmlimit_segment::{InheritedHolders, lock, program_name, sanity, slots};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long a lock must be held by one and the same acquisition before that is worth a word: as long as callers wait for
/// it. A holder that merely waits for a processor needs less, also on a machine with too much to do.
const STUCK_AFTER: Duration = Duration::from_secs(1);
/// Between two looks.
const READ_INTERVAL: Duration = Duration::from_millis(5);
/// How often a limiter that is changed all the time is looked at.
const READ_TRIES: u32 = 20;

/// A limiter's file as it is, seen without becoming a participant.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Inspection {
    /// The file.
    pub path: PathBuf,
    /// Its owner.
    pub owner: Account,
    /// How long ago it was made.
    pub age: Duration,
    /// The effective policy. `None` while it is being changed, also by one who died.
    pub policy: Option<Policy>,
    /// Replaced or removed, but its file is still there: somebody was killed meanwhile. Opening it puts that right.
    pub retired: bool,
    /// Last used in another boot of the machine. Opening it makes its clock go on.
    pub other_boot: bool,
    /// Who has held the lock for a second or more, or died with it.
    pub lock: Option<LockHolder>,
    /// Somebody died in the middle of a change. The next to open the limiter undoes it.
    pub unfinished: bool,
    /// The state is one that no use of the limiter leaves. The next to open the limiter starts it afresh, with nothing
    /// to have.
    pub unsound: bool,
    /// How often that has happened.
    pub resets: u64,
    /// Who is attached, dead or alive.
    pub attached: Vec<Attached>,
    /// Permits that nobody holds.
    pub lost_permits: u32,
    /// Calls in the queue that nobody waits for.
    pub lost_waiters: usize,
    /// How far the wall clock has been set since the limiter was last used; zero if it was used in another boot.
    pub wall_clock_set_by: Duration,
    /// The pause that is on, if an operator has paused the limiter.
    pub paused: Option<PauseSnapshot>,
    /// How the server is doing. `None` if the file was being changed all the time.
    pub condition: Option<Condition>,
}

/// Who holds the lock of a segment.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LockHolder {
    /// Process id, in its own pid namespace; 0 if it is not known.
    pub pid: u32,
    /// Its program name.
    pub program: String,
    /// It lives: stopped, or starved. Else the lock is taken from it by the next to need it.
    pub alive: bool,
}

/// One who is attached.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Attached {
    /// Process id, in its own pid namespace.
    pub pid: u32,
    /// Its program name.
    pub program: String,
    /// Whether it lives.
    pub alive: bool,
    /// Permits it holds.
    pub held: u32,
    /// Since when it has held at least one.
    pub held_for: Option<Duration>,
    /// Its calls in the queue.
    pub waiting: usize,
}

impl Builder {
    /// Looks at the limiter without becoming a participant, waits for nobody, and does not change a byte. `None` if there
    /// is none; an error if what is there cannot be used.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # use shmlimit::Limiter;
    /// let tmdb = Limiter::builder("tmdb").directory(directory.path());
    /// assert!(tmdb.clone().inspect()?.is_none());
    /// let handle = tmdb.clone().open()?;
    /// assert!(tmdb.inspect()?.is_some_and(|seen| seen.attached.len() == 1 && !seen.unsound));
    /// # drop(handle);
    /// # Ok(()) }
    /// ```
    pub fn inspect(self) -> Result<Option<Inspection>, Error> {
        let (name, directory) = self.place(false)?;
        let Some(verified) = file::open(&directory, &name)? else { return Ok(None) };
        let path = directory.path().join(name.file_name());
        let handle = directory.handle()?;
        let facts = sys::facts_at(&handle, &name.file_name()).map_err(Error::io("examine", &path))?;
        Inspection::of(&verified, &facts, path).map(Some)
    }
}

impl super::Limiter {
    /// Frees the places of all who died, gives back what they held and takes their calls out of the queue. Whoever needs
    /// something of theirs does that anyway; this is for those who tidy up. Says how many there were.
    pub fn reclaim_dead(&self) -> Result<usize, Error> {
        self.follow(|link| {
            let deadline = link.segment.deadline();
            let attachment = link.segment.attachment_within(&deadline)?;
            link.segment.reclaim_all(&attachment, &deadline)
        })
    }
}

impl Inspection {
    fn of(verified: &Verified, facts: &FileFacts, path: PathBuf) -> Result<Inspection, Error> {
        let Verified { words, backing, file: probe, clock } = verified;
        let raw = clock.first_now().map_err(Error::io("read the clock for", &path))?;
        let wall = clock.wall_at(raw);
        let boot = clock.boot_id().map_err(Error::io("find the boot identity for", &path))?;
        let holders = InheritedHolders::new(backing, words);
        let lives = |slot| holders.is_held(slot).map_or_else(|| backing.is_seen_alive(probe, slot), Ok);
        let lock = holder(verified, &lives)?;
        let now = Time(raw.wrapping_add(words.load(layout::CLOCK_OFFSET)));
        let other_boot = words.load_array(layout::BOOT) != boot;
        let contents = (0..READ_TRIES).find_map(|look| {
            if look > 0 {
                std::thread::sleep(READ_INTERVAL);
            }
            journal::read(words, |words| Contents::of(words, now, wall))
        });
        let unfinished =
            contents.is_none() && lock.as_ref().map_or_else(|| is_abandoned(words), |lock| !lock.alive);
        let whole = contents.is_some();
        let contents = match contents {
            Some(contents) => contents,
            // Nobody is at it any more; what is half done is not looked at too closely.
            None if unfinished => Contents::of(words, now, wall),
            None => Contents {
                policy: Err(String::new()),
                lost_permits: 0,
                waiters: Vec::new(),
                ..Contents::of(words, now, wall)
            },
        };
        let policy = match contents.policy {
            Err(problem) if whole => return Err(Error::Damaged { path, problem }),
            policy => policy.ok(),
        };
        let mut attached = Vec::new();
        for one in slots::all(words) {
            let alive = lives(one.slot)?;
            // Who leaves takes its name off first: one without a liveness lock whose name is still there is dead.
            let stayed =
                slots::participant(words, one.slot).is_some_and(|now| now.generation == one.generation);
            if alive || stayed {
                attached.push(Attached {
                    pid: one.pid,
                    program: program_name(&one.program),
                    alive,
                    held: one.held.total,
                    held_for: one.held_since.map(|since| Duration::from_nanos(now.since(since).0)),
                    waiting: contents.waiters.iter().filter(|slot| **slot == Some(one.slot)).count(),
                });
            }
        }
        Ok(Inspection {
            path,
            owner: facts.access.owner(),
            age: Duration::from_nanos(wall.saturating_sub(words.load(header::CREATED))),
            policy,
            retired: layout::is_retired(words.load(layout::RETIRED)),
            other_boot,
            unfinished,
            // A clock that has begun anew with the machine is put right, and no damage.
            unsound: whole && !other_boot && !contents.sound,
            lock,
            resets: words.load(layout::RESETS),
            attached,
            lost_permits: contents.lost_permits,
            lost_waiters: contents.waiters.iter().filter(|slot| slot.is_none()).count(),
            wall_clock_set_by: Duration::from_nanos(if other_boot || !whole {
                0
            } else {
                contents.wall_clock_set_by
            }),
            paused: contents.paused.filter(|_| whole),
            condition: whole.then_some(contents.condition),
        })
    }
}

/// What must be seen in one moment to fit together.
struct Contents {
    policy: Result<Policy, String>,
    sound: bool,
    lost_permits: u32,
    /// The slot of each call in the queue; `None` if it has no owner.
    waiters: Vec<Option<usize>>,
    wall_clock_set_by: u64,
    paused: Option<PauseSnapshot>,
    condition: Condition,
}

impl Contents {
    fn of(words: &Words, now: Time, wall: u64) -> Contents {
        let view = Reader(words.cells());
        let policy = sanity::policy(words);
        let is_sound = |policy| sanity::is_sound(&view, policy, Found::Whole, now);
        let unowned = (0..SLOTS).filter(|slot| !slots::is_owned(words, *slot));
        let places = |block| view.places(block).map(move |place| 64 * block + place);
        let owner = |place| {
            let entry_head = view.entry_head(place);
            slots::is_entered(words, entry_head.owner).then(|| entry_head.slot())
        };
        let later = now.max(view.core().latest);
        Contents {
            sound: policy.as_ref().is_ok_and(is_sound),
            lost_permits: unowned.map(|slot| slots::held(words, slot).total).fold(0, u32::saturating_add),
            waiters: (0..WAITERS / 64).flat_map(places).map(owner).collect(),
            wall_clock_set_by: view.wall(later).abs_diff(wall),
            paused: PauseSnapshot::current(&view, later),
            condition: Condition::of(&view, later),
            policy,
        }
    }
}

/// Whether a change is under way that nobody has the lock for: only damage leaves that.
fn is_abandoned(words: &Words) -> bool {
    let look = || {
        let free = lock::owner(words.lock().load(Ordering::Relaxed)).is_none();
        (free, words.load(layout::VERSION))
    };
    let first = look();
    std::thread::sleep(READ_INTERVAL);
    first.0 && first.1 & 1 != 0 && look() == first
}

/// Who has held the lock for long: the same acquisition, or a dead one.
fn holder(
    verified: &Verified,
    lives: &impl Fn(usize) -> Result<bool, Error>,
) -> Result<Option<LockHolder>, Error> {
    let words = &verified.words;
    let look = || {
        let word = words.lock().load(Ordering::Relaxed);
        lock::owner(word).map(|by| (by, word & !lock::WAITERS))
    };
    let Some(first) = look() else { return Ok(None) };
    // Only damage puts a slot there that cannot exist.
    let alive = || Ok::<bool, Error>(first.0 < SLOTS && lives(first.0)?);
    let began = Instant::now();
    let mut lives_on = alive()?;
    while lives_on && began.elapsed() < STUCK_AFTER {
        std::thread::sleep(READ_INTERVAL);
        lives_on = alive()?;
        if look() != Some(first) {
            return Ok(None);
        }
    }
    // Who let go of it before it died is not meant.
    if look() != Some(first) {
        return Ok(None);
    }
    let who = slots::participant(words, first.0);
    Ok(Some(LockHolder {
        pid: who.map_or(0, |one| one.pid),
        program: who.map_or_else(|| "unknown".to_owned(), |one| program_name(&one.program)),
        alive: lives_on,
    }))
}
