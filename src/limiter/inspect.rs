//! Inspects a limiter's file from outside, without attaching, locking or changing anything.

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

/// How long one acquisition must hold the lock before it is reported: as long as callers wait for the lock. A
/// holder that only waits for a processor needs less, even on an overloaded machine.
const STUCK_AFTER: Duration = Duration::from_secs(1);
/// Time between two reads.
const READ_INTERVAL: Duration = Duration::from_millis(5);
/// How often a limiter that changes all the time is read.
const READ_TRIES: u32 = 20;

/// A limiter's file as an observer sees it, without attaching.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
/// let seen = shmlimit::Limiter::builder("api").directory(directory.path()).inspect()?.unwrap();
/// assert!(!seen.unsound && !seen.unfinished && seen.lost_permits == 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Inspection {
    /// The path of the file.
    pub path: PathBuf,
    /// Its owner.
    pub owner: Account,
    /// Time since it was created.
    pub age: Duration,
    /// The effective policy. `None` during a change, including a change that a dead process left unfinished.
    pub policy: Option<Policy>,
    /// Whether the segment was replaced or removed, but its file still exists, because a process was killed in
    /// between. Opening the limiter repairs that.
    pub retired: bool,
    /// Whether it was last used in another boot of the machine. Opening it continues its clock.
    pub other_boot: bool,
    /// The process that has held the lock for a second or more, or died with it.
    pub lock: Option<LockHolder>,
    /// Whether a process died in the middle of a change. The next process that opens the limiter undoes the change.
    pub unfinished: bool,
    /// Whether the state is one that no use of the limiter produces. The next process that opens the limiter resets
    /// it to a used-up state.
    pub unsound: bool,
    /// How often the state was reset.
    pub resets: u64,
    /// The attached processes, dead or alive.
    pub attached: Vec<Attached>,
    /// Permits without an attached owner.
    pub lost_permits: u32,
    /// Calls in the queue without an attached owner.
    pub lost_waiters: usize,
    /// How far the wall clock was moved since the limiter was last used; zero if it was last used in another boot.
    pub wall_clock_set_by: Duration,
    /// The current pause, if an operator has paused the limiter.
    pub paused: Option<PauseSnapshot>,
    /// The condition of the server. `None` if the file was changing all the time.
    pub condition: Option<Condition>,
}

/// The process that holds the lock of a segment.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
/// let seen = shmlimit::Limiter::builder("api").directory(directory.path()).inspect()?.unwrap();
/// if let Some(holder) = seen.lock {
///     println!("{} ({}) holds the lock", holder.program, holder.pid);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LockHolder {
    /// Process id, in its own pid namespace; 0 if unknown.
    pub pid: u32,
    /// Its program name.
    pub program: String,
    /// Whether it is alive: it is stopped or starved. If it is dead, the next process that needs the lock takes
    /// over.
    pub alive: bool,
}

/// One attached process.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
/// let seen = shmlimit::Limiter::builder("api").directory(directory.path()).inspect()?.unwrap();
/// assert!(seen.attached[0].alive && seen.attached[0].held == 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Attached {
    /// Process id, in its own pid namespace.
    pub pid: u32,
    /// Its program name.
    pub program: String,
    /// Whether it is alive.
    pub alive: bool,
    /// Permits it holds.
    pub held: u32,
    /// How long it has held at least one permit.
    pub held_for: Option<Duration>,
    /// Number of its calls in the queue.
    pub waiting: usize,
}

impl Builder {
    /// Inspects the limiter without attaching, without waiting for other processes, and without changing a byte.
    /// `None` if the limiter does not exist. Fails if the file cannot be used.
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
        let (name, directory) = self.locate(false)?;
        let Some(verified) = file::open(&directory, &name)? else { return Ok(None) };
        let path = directory.path().join(name.file_name());
        let handle = directory.handle()?;
        let facts = sys::facts_at(&handle, &name.file_name()).map_err(Error::io("examine", &path))?;
        Inspection::of(&verified, &facts, path).map(Some)
    }
}

impl super::Limiter {
    /// Reclaims the slots, permits and queue places of all dead processes. Calls that need them do this anyway, so
    /// this is for maintenance. Returns the number of dead processes.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// assert_eq!(limiter.reclaim_dead()?, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
            // No process works on the state any more. The unfinished change is read as it is.
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
            // A process that leaves removes its name first. If the name is still present without a liveness lock,
            // the process is dead.
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
            // A clock that restarted with the machine is corrected when the limiter is opened. It is not damage.
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

/// Values that must be read at one moment to be consistent.
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

/// Whether a change is in progress while no process holds the lock. Only damage causes this.
fn is_abandoned(words: &Words) -> bool {
    let look = || {
        let free = lock::owner(words.lock().load(Ordering::Relaxed)).is_none();
        (free, words.load(layout::VERSION))
    };
    let first = look();
    std::thread::sleep(READ_INTERVAL);
    first.0 && first.1 & 1 != 0 && look() == first
}

/// The process that holds the lock for long or is dead: the same acquisition at every read.
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
    // A slot number that does not exist is caused only by damage.
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
    // The process may have released the lock before it died. Then it is not the holder.
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
