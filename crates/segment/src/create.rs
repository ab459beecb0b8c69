//! Making and opening segments: a file appears whole or not at all.

use super::attendance::{self, Before, Generation};
use super::directory::{Directory, Passage};
use super::inherit::{self, Inherited};
use super::journal;
use super::layout::{self, UNSET_BEFORE, header};
use super::memory::{Reader, inverted};
use super::recover::{self, Unverified, Verified};
use super::trial;
use super::words::Words;
use crate::error::Error;
use crate::paths::LimiterName;
use crate::sys::{self, Clock, SharedMap, UnnamedFile};
use shmlimit_kernel::decide;
use shmlimit_kernel::memory::{LocalMemory, Past};
use shmlimit_kernel::pause::PAUSE_WORDS;
use shmlimit_kernel::policy::Policy;
use shmlimit_kernel::sheet::{PAUSE_AT, SHEET_WORDS};
use shmlimit_kernel::state::{Memory, View};
use shmlimit_kernel::time::Time;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// What a new segment starts with.
#[derive(Debug, Clone)]
pub struct Seed {
    /// Its policy.
    pub policy: Policy,
    /// What it has seen already: nothing, unless it continues a segment that was deleted under its users.
    past: Past,
    /// The clock that refers to, as an offset to the machine's.
    clock_offset: u64,
    /// What is known of the wall clock: see `wall.rs`.
    wall: [u64; layout::WALL_WORDS],
    /// The latest time in what it has seen, if that is not over yet.
    latest: u64,
    /// Permits that are out of segments which were deleted.
    inherited: Vec<Inherited>,
}

impl Seed {
    /// A fresh limiter: full buckets.
    pub fn fresh(policy: Policy) -> Seed {
        let past = LocalMemory::new(&policy).into_past();
        let wall = [0; layout::WALL_WORDS];
        Seed { policy, past, clock_offset: 0, wall, latest: 0, inherited: Vec::new() }
    }

    /// A limiter of which others may still use an older segment, for as long as `place` at most: nothing is left to be had
    /// until then, and from then on it fills as an empty one does. All permits count as out for as long as one of them may
    /// hold any.
    pub fn used_up(policy: Policy, place: Duration) -> Result<Seed, Error> {
        let fresh = Seed::fresh(policy);
        let now = Clock::discover().map_err(Error::io("read the clock for", Path::new("a limiter")))?.now();
        let mut empty = LocalMemory::starting_at(&policy, sys::wall_now().wrapping_sub(now));
        let place = u64::try_from(place.as_nanos()).unwrap_or(u64::MAX);
        let latest = now.saturating_add(place);
        decide::reset(&mut empty, Some(&policy), Time(latest));
        // A log with entries after the latest decision would be taken for damage, and so would a decision far ahead.
        let latest = if place < recover::SKEW { latest } else { 0 };
        let inherited = Inherited::unknown(&policy, Time(now)).into_iter().collect();
        Ok(Seed { past: empty.into_past(), latest, inherited, ..fresh })
    }

    /// Goes on where a segment was deleted under its users; `Err` says what is wrong with its policy.
    ///
    /// Without the lock: if its owner is dead, nobody can prove it any more, because pulses are felt through the
    /// file's name. What such an owner left half done is lost, and nothing is handed out in its place.
    pub fn after(words: &Words, clock: Clock) -> Result<Seed, String> {
        let clock_offset = words.load(layout::CLOCK_OFFSET);
        let wall = words.load_array(layout::LATEST_TIME);
        let read = |words: &Words| (recover::policy(words), past(words), inherit::from(words));
        if let Some((policy, past, inherited)) = journal::read(words, read) {
            return Ok(Seed { policy: policy?, past, clock_offset, wall, latest: 0, inherited });
        }
        let policy = recover::policy(words)?;
        // Which calendar window is used up depends on the wall clock.
        let epoch = words.load(layout::ANCHOR_WALL).wrapping_sub(words.load(layout::ANCHOR_TIME));
        let mut empty = LocalMemory::starting_at(&policy, epoch);
        // A pause that makes sense goes on (R148).
        empty.set_sheet(PAUSE_AT, words.load_array::<PAUSE_WORDS>(layout::sheet_word(PAUSE_AT)));
        decide::reset(&mut empty, Some(&policy), Time(clock.now().wrapping_add(clock_offset)));
        // What a transaction leaves half done is about the permits of its owner, who is dead.
        let inherited = inherit::from(words);
        Ok(Seed { policy, past: empty.into_past(), clock_offset, wall, latest: 0, inherited })
    }
}

#[cfg(test)]
impl Seed {
    /// What one of its rules has seen.
    pub(super) fn rule(&self, rule: usize) -> shmlimit_kernel::RuleState {
        self.past.rules[rule]
    }
}

/// What a segment has seen: all that outlives its participants.
fn past(words: &Words) -> Past {
    let cells = words.cells();
    let load = |word| cells.at_any(word).load(Ordering::Relaxed);
    Past {
        rules: std::array::from_fn(|i| Reader(cells).rule(i)),
        hot: cells.load_array(layout::HOT),
        sheet: (0..SHEET_WORDS).map(|at| cells.load(layout::sheet_word(at))).collect(),
        logs: (layout::WORDS..cells.len()).map(load).collect(),
    }
}

/// What became of a segment that should be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Creation {
    /// It was made.
    Made,
    /// There is one.
    There,
    /// There is none, and none was wanted.
    Unwanted,
}

/// Makes the segment of a limiter, unless there is one. Says whether it was made.
#[cfg(test)]
pub fn create(
    directory: &Directory,
    name: &LimiterName,
    policy: Policy,
    place: Duration,
) -> Result<bool, Error> {
    create_noting(directory, name, policy, place, &mut false)
}

/// Makes the segment of a limiter, unless there is one. Says whether it was made, and notes if so with nothing to give.
///
/// If the file was deleted by hand while programs use it, they bring it back, as it was, when they notice: within `place`
/// if they make calls. Those that make none cannot be asked what was used, so a new one has nothing to give then.
pub fn create_noting(
    directory: &Directory,
    name: &LimiterName,
    policy: Policy,
    place: Duration,
    used_up: &mut bool,
) -> Result<bool, Error> {
    let path = directory.path().join(name.file_name());
    let began = Instant::now();
    let is_missing = path.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    // Users that are not seen at the gate: they could not open it, or it was deleted too.
    let mapped = is_missing && sys::is_deleted_in_use(&path);
    // One that is seen once may be on its way out: it opened the file just before that was removed.
    let mut seen = 0;
    let mut starts_used_up = false;
    loop {
        let late = began.elapsed() >= place.saturating_add(place / 8);
        let created = create_with(directory, name, |before, _| {
            seen += u32::from(before == Before::InUse);
            let in_use = (before == Before::InUse || seen > 1 || mapped) && before != Before::Removed;
            starts_used_up = in_use && late;
            match in_use {
                true if late => Seed::used_up(policy, place).map(Some),
                true => Ok(None),
                false => Ok(Some(Seed::fresh(policy))),
            }
        })?;
        match created {
            Creation::Unwanted => std::thread::sleep(Duration::from_millis(5)),
            created => {
                let made = created == Creation::Made;
                *used_up = made && starts_used_up;
                return Ok(made);
            }
        }
    }
}

/// Makes a segment from what `seed` says under the creation lock, if there is none and `seed` wants one. `seed` is told
/// what was there before, and the generation of the name.
pub fn create_with(
    directory: &Directory,
    name: &LimiterName,
    seed: impl FnOnce(Before, Generation) -> Result<Option<Seed>, Error>,
) -> Result<Creation, Error> {
    let file_name = name.file_name();
    directory.through_gate(|passage| match sys::facts_at(&passage.directory, &file_name) {
        Ok(_) => Ok(Creation::There),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            match seed(Before::ask(passage, name)?, passage.generation(name)?)? {
                Some(seed) => make(directory, passage, name, &seed),
                None => Ok(Creation::Unwanted),
            }
        }
        Err(error) => Err(Error::io("examine", directory.path().join(&file_name))(error)),
    })
}

/// Makes the segment of a limiter in place of the one there may be. Its users notice and go over to the new one.
pub fn replace(
    directory: &Directory,
    name: &LimiterName,
    seed: &Seed,
    retire: impl FnOnce() -> Result<(), Error>,
) -> Result<(), Error> {
    let file_name = name.file_name();
    let path = directory.path().join(&file_name);
    directory.through_gate(|passage| {
        // All that can fail for want of room or permission first: until then nothing has happened to the old one.
        let next = passage.next_generation(name)?;
        let new = prepare(directory, &passage.directory, &path, seed, next)?;
        attendance::announce(passage, name, next)?;
        // Retired before it loses its name: whoever is killed in between leaves a segment that nobody grants from.
        retire()?;
        new.replace(&passage.directory, &file_name).map_err(Error::io("replace", &path))
    })
}

/// Removes the segment of a limiter, if `retire` says so. Says whether it was there and is gone.
pub fn remove(
    directory: &Directory,
    name: &LimiterName,
    retire: impl FnOnce() -> Result<bool, Error>,
) -> Result<bool, Error> {
    let file_name = name.file_name();
    directory.through_gate(|passage| {
        if !retire()? {
            return Ok(false);
        }
        attendance::note_removal(passage, directory, name)?;
        match sys::remove_at(&passage.directory, &file_name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Error::io("remove", directory.path().join(&file_name))(error)),
            Ok(()) => Ok(true),
        }
    })
}

/// Removes a segment that was retired but not removed, because somebody was killed in [`replace`] or [`remove`]. The
/// policy of one that was to be replaced lives on where no other is wanted.
pub fn clear_retired(directory: &Directory, name: &LimiterName, wanted: Option<Policy>) -> Result<(), Error> {
    let file_name = name.file_name();
    directory.through_gate(|passage| {
        let Some(old) =
            open(directory, name)?.filter(|old| layout::is_retired(old.words.load(layout::RETIRED)))
        else {
            return Ok(());
        };
        let removed = old.words.load(layout::RETIRED) == layout::REMOVED;
        let policy = recover::policy(&old.words).ok().filter(|_| !removed);
        let path = directory.path().join(&file_name);
        match wanted.or(policy) {
            Some(policy) => {
                let next = passage.next_generation(name)?;
                let new = prepare(directory, &passage.directory, &path, &Seed::fresh(policy), next)?;
                attendance::announce(passage, name, next)?;
                new.replace(&passage.directory, &file_name).map_err(Error::io("replace", &path))
            }
            None => {
                attendance::note_removal(passage, directory, name)?;
                sys::remove_at(&passage.directory, &file_name).map_err(Error::io("remove", &path))
            }
        }
    })
}

fn make(
    directory: &Directory,
    passage: &Passage,
    name: &LimiterName,
    seed: &Seed,
) -> Result<Creation, Error> {
    let file_name = name.file_name();
    let path = directory.path().join(&file_name);
    let next = passage.next_generation(name)?;
    let new = prepare(directory, &passage.directory, &path, seed, next)?;
    attendance::announce(passage, name, next)?;
    match new.link(&passage.directory, &file_name) {
        Ok(()) => Ok(Creation::Made),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(Creation::There),
        Err(error) => Err(Error::io("make", path)(error)),
    }
}

/// A whole segment that has no name yet.
fn prepare(
    directory: &Directory,
    handle: &File,
    path: &Path,
    seed: &Seed,
    generation: u64,
) -> Result<UnnamedFile, Error> {
    let make_error = || Error::io("make", path);
    let size = layout::size_for(&seed.policy);
    let file = sys::unnamed_file(handle, directory.shared_with(), size as u64).map_err(make_error())?;
    // Before it has a name: where no process can be seen to live, nothing should be left behind.
    if !file.keeps_locks().map_err(make_error())? {
        return Err(trial::locks_are_lost(path, file.file()));
    }
    let map = SharedMap::new(file.file(), size).map_err(make_error())?;
    let words = Words::new(map).ok_or_else(|| make_error()(io::ErrorKind::InvalidData.into()))?;
    fill(&words, seed, generation).map_err(make_error())?;
    Ok(file)
}

/// Writes a whole segment into a file that nobody else can see yet.
fn fill(words: &Words, seed: &Seed, generation: u64) -> io::Result<()> {
    let now = Clock::discover()?.now().wrapping_add(seed.clock_offset);
    words.store(header::MAGIC, layout::MAGIC);
    words.store(header::FORMAT, u64::from(layout::LAYOUT_VERSION) << 32 | u64::from(layout::BYTE_ORDER));
    words.store(header::HASH, layout::layout_hash());
    words.store(header::SIZE, words.cells().len() as u64 * 8);
    words.store(header::CREATED, sys::wall_now());
    words.store(header::GENERATION, generation);
    words.store(header::CHECKSUM, layout::checksum((0..header::CHECKSUM).map(|word| words.load(word))));
    words.store(layout::CLOCK_OFFSET, seed.clock_offset);
    words.store(layout::RETIRED, layout::LIVE);
    for (i, word) in sys::boot_id()?.into_iter().enumerate() {
        words.store(layout::BOOT + i, word);
    }
    for (i, word) in seed.wall.into_iter().enumerate() {
        words.store(layout::LATEST_TIME + i, word);
    }
    set_clocks(words, now, sys::wall_now());
    words.store(layout::CORE, now.max(seed.latest));
    inherit::put(words, &seed.inherited);
    let policy = seed.policy.encode();
    let put = |first: usize, values: &mut dyn Iterator<Item = u64>| {
        for (word, value) in (first..words.cells().len()).zip(values) {
            words.cells().at_any(word).store(value, Ordering::Relaxed);
        }
    };
    let Past { rules, hot, sheet, logs } = &seed.past;
    put(layout::RULES, &mut rules.iter().flat_map(|state| inverted(state.0)));
    put(layout::HOT, &mut hot.iter().copied());
    put(layout::POLICY, &mut policy.into_iter());
    put(layout::WORDS, &mut logs.iter().copied());
    for (at, word) in sheet.iter().enumerate() {
        words.store(layout::sheet_word(at), *word);
    }
    words.store(layout::POLICY_CHECKSUM, layout::checksum(policy));
    Ok(())
}

/// Notes in a new segment when it begins.
pub(super) fn set_clocks(words: &Words, now: u64, wall: u64) {
    words.store(layout::CORE, now);
    words.store(layout::ANCHOR_TIME, now);
    words.store(layout::ANCHOR_WALL, wall);
    if words.load(layout::LATEST_TIME) == 0 {
        if wall < UNSET_BEFORE {
            // Made before the machine's clock was set: nothing is known of the day until it is.
            words.store(layout::OFF_UNKNOWN, 1);
        } else {
            words.store(layout::LATEST_TIME, now.max(1));
            words.store(layout::LATEST_WALL, wall);
        }
    }
}

/// Whether there is a file of that name once nobody makes, replaces or removes one. Where replacing takes two steps, a
/// single look may come between them. Creates nothing: a process that replaces has created the gate before.
pub fn is_there(directory: &Directory, name: &LimiterName) -> Result<bool, Error> {
    let file_name = name.file_name();
    if !sys::REPLACES_IN_TWO_STEPS {
        return Ok(false);
    }
    let there = directory
        .through_existing_gate(|passage| Ok(sys::facts_at(&passage.directory, &file_name).is_ok()))?;
    Ok(there.unwrap_or(false))
}

/// Opens the segment of a limiter; `None` if there is none. Reads only (P4), trusts nothing (P5).
pub fn open(directory: &Directory, name: &LimiterName) -> Result<Option<Verified>, Error> {
    for _ in 1..OPENED {
        match open_once(directory, name) {
            // Replaced or deleted since it was opened: look again.
            Err(Error::Unsettled { .. }) => {}
            opened => return opened,
        }
    }
    open_once(directory, name)
}

/// How often a file that is replaced again and again is opened.
const OPENED: u32 = 64;

fn open_once(directory: &Directory, name: &LimiterName) -> Result<Option<Verified>, Error> {
    let file_name = name.file_name();
    let path = directory.path().join(&file_name);
    let handle = directory.handle()?;
    let file = match sys::open_file_at(&handle, &file_name) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // A device, a socket or a link cannot be opened so; say what it is rather than what open said.
        Err(error) => {
            if let Ok(facts) = sys::facts_at(&handle, &file_name) {
                directory.check_file(&path, &facts)?;
            }
            return Err(Error::io("open", path)(error));
        }
    };
    let facts = sys::facts(&file).map_err(Error::io("examine", &path))?;
    if facts.links == 0 {
        return Err(Error::Unsettled { path });
    }
    directory.check_file(&path, &facts)?;
    Unverified::map(path, file, &facts)?.verify().map(Some)
}
