//! Making and opening segments: a file appears whole or not at all.

use super::directory::Directory;
use super::journal;
use super::layout::{self, header};
use super::memory::Reader;
use super::recover::{self, Unverified, Verified};
use super::words::Words;
use crate::error::Error;
use crate::kernel::decide;
use crate::kernel::memory::{LocalMemory, Past};
use crate::kernel::policy::Policy;
use crate::kernel::sheet::SHEET_WORDS;
use crate::kernel::state::View;
use crate::kernel::time::Time;
use crate::paths::LimiterName;
use crate::sys::{self, Clock, SharedMap, UnnamedFile};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;

/// What a new segment starts with.
#[derive(Debug, Clone)]
pub struct Seed {
    /// Its policy.
    pub policy: Policy,
    /// What it has seen already: nothing, unless it continues a segment that was deleted under its users.
    past: Past,
    /// The clock that refers to, as an offset to the machine's.
    clock_offset: u64,
}

impl Seed {
    /// A fresh limiter: full buckets.
    pub fn fresh(policy: Policy) -> Seed {
        Seed { policy, past: LocalMemory::new(&policy).into_past(), clock_offset: 0 }
    }

    /// Goes on where a segment was deleted under its users; `Err` says what is wrong with its policy.
    ///
    /// Without the lock: if its owner is dead, nobody can prove it any more, because pulses are felt through the
    /// file's name. What such an owner left half done is lost, and nothing is handed out in its place.
    pub fn after(words: &Words, clock: Clock) -> Result<Seed, String> {
        let clock_offset = words.load(layout::CLOCK_OFFSET);
        if let Some((policy, past)) = journal::read(words, |words| (recover::policy(words), past(words))) {
            return Ok(Seed { policy: policy?, past, clock_offset });
        }
        let policy = recover::policy(words)?;
        // Which calendar window is used up depends on the wall clock.
        let epoch = words.load(layout::ANCHOR_WALL).wrapping_sub(words.load(layout::ANCHOR_TIME));
        let mut empty = LocalMemory::starting_at(&policy, epoch);
        decide::reset(&mut empty, Some(&policy), Time(clock.now().wrapping_add(clock_offset)));
        Ok(Seed { policy, past: empty.into_past(), clock_offset })
    }
}

#[cfg(test)]
impl Seed {
    /// What one of its rules has seen.
    pub(super) fn rule(&self, rule: usize) -> crate::kernel::RuleState {
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

/// Makes the segment of a limiter, unless there is one. Says whether it was made.
pub fn create(directory: &Directory, name: &LimiterName, seed: &Seed) -> Result<bool, Error> {
    let file_name = name.file_name();
    directory.through_gate(|handle| match sys::facts_at(handle, &file_name) {
        Ok(_) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => make(directory, handle, &file_name, seed),
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
    directory.through_gate(|handle| {
        // All that can fail for want of room or permission first: until then nothing has happened to the old one.
        let new = prepare(directory, handle, &path, seed)?;
        // Retired before it is unlinked: whoever is killed in between leaves a segment that nobody grants from.
        retire()?;
        match sys::unlink_at(handle, &file_name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io("remove", &path)(error));
            }
            _ => {}
        }
        match publish(new, handle, &path, &file_name)? {
            true => Ok(()),
            false => Err(Error::Unsettled { path }),
        }
    })
}

/// Removes the segment of a limiter, if `retire` says so. Says whether it was there and is gone.
pub fn remove(
    directory: &Directory,
    name: &LimiterName,
    retire: impl FnOnce() -> Result<bool, Error>,
) -> Result<bool, Error> {
    let file_name = name.file_name();
    directory.through_gate(|handle| {
        if !retire()? {
            return Ok(false);
        }
        match sys::unlink_at(handle, &file_name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Error::io("remove", directory.path().join(&file_name))(error)),
            Ok(()) => Ok(true),
        }
    })
}

/// Removes a segment that was retired but not removed, because somebody was killed in [`replace`] or [`remove`]. The
/// policy of one that was to be replaced lives on where no other is wanted.
pub fn clear_retired(directory: &Directory, name: &LimiterName, seed: Option<&Seed>) -> Result<(), Error> {
    let file_name = name.file_name();
    directory.through_gate(|handle| {
        let Some(old) = open(directory, name)?.filter(|old| old.words.load(layout::RETIRED) != 0) else {
            return Ok(());
        };
        let removed = old.words.load(layout::RETIRED) == layout::REMOVED;
        let policy = recover::policy(&old.words).ok().filter(|_| !removed).map(Seed::fresh);
        sys::unlink_at(handle, &file_name).map_err(Error::io("remove", directory.path().join(&file_name)))?;
        match seed.or(policy.as_ref()) {
            Some(seed) => make(directory, handle, &file_name, seed).map(drop),
            None => Ok(()),
        }
    })
}

fn make(directory: &Directory, handle: &File, file_name: &str, seed: &Seed) -> Result<bool, Error> {
    let path = directory.path().join(file_name);
    publish(prepare(directory, handle, &path, seed)?, handle, &path, file_name)
}

/// A whole segment that has no name yet.
fn prepare(directory: &Directory, handle: &File, path: &Path, seed: &Seed) -> Result<UnnamedFile, Error> {
    let make_error = || Error::io("make", path);
    let size = layout::size_for(&seed.policy);
    let file = sys::unnamed_file(handle, directory.shared_with(), size as u64).map_err(make_error())?;
    let map = SharedMap::new(file.file(), size).map_err(make_error())?;
    let words = Words::new(map).ok_or_else(|| make_error()(io::ErrorKind::InvalidData.into()))?;
    fill(&words, seed).map_err(make_error())?;
    Ok(file)
}

/// Gives it its name; says whether that was free.
fn publish(new: UnnamedFile, handle: &File, path: &Path, file_name: &str) -> Result<bool, Error> {
    match new.link(handle, file_name) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(Error::io("make", path)(error)),
    }
}

/// Writes a whole segment into a file that nobody else can see yet.
fn fill(words: &Words, seed: &Seed) -> io::Result<()> {
    let now = Clock::discover()?.now().wrapping_add(seed.clock_offset);
    words.store(header::MAGIC, layout::MAGIC);
    words.store(header::FORMAT, u64::from(layout::LAYOUT_VERSION) << 32 | u64::from(layout::BYTE_ORDER));
    words.store(header::HASH, layout::layout_hash());
    words.store(header::SIZE, words.cells().len() as u64 * 8);
    words.store(header::CREATED, sys::wall_now());
    words.store(header::CHECKSUM, layout::checksum((0..header::CHECKSUM).map(|word| words.load(word))));
    words.store(layout::CORE, now);
    words.store(layout::CLOCK_OFFSET, seed.clock_offset);
    for (i, word) in sys::boot_id()?.into_iter().enumerate() {
        words.store(layout::BOOT + i, word);
    }
    words.store(layout::ANCHOR_TIME, now);
    words.store(layout::ANCHOR_WALL, sys::wall_now());
    let policy = seed.policy.encode();
    let put = |first: usize, values: &mut dyn Iterator<Item = u64>| {
        for (word, value) in (first..words.cells().len()).zip(values) {
            words.cells().at_any(word).store(value, Ordering::Relaxed);
        }
    };
    let Past { rules, hot, sheet, logs } = &seed.past;
    put(layout::RULES, &mut rules.iter().flat_map(|state| state.0));
    put(layout::HOT, &mut hot.iter().copied());
    put(layout::POLICY, &mut policy.into_iter());
    put(layout::WORDS, &mut logs.iter().copied());
    for (at, word) in sheet.iter().enumerate() {
        words.store(layout::sheet_word(at), *word);
    }
    words.store(layout::POLICY_CHECKSUM, layout::checksum(policy));
    Ok(())
}

/// Opens the segment of a limiter; `None` if there is none. Reads only (P4), trusts nothing (P5).
pub fn open(directory: &Directory, name: &LimiterName) -> Result<Option<Verified>, Error> {
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
    directory.check_file(&path, &facts)?;
    Unverified::map(path, &file, &facts)?.verify().map(Some)
}
