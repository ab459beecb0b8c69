//! Creates, replaces and removes the file of a limiter: it appears whole or not at all.

use super::initial_state::{InitialState, fill};
use super::open;
use crate::directory::creation_lock::LockedDirectory;
use crate::directory::users::{self, Generation, PreviousLimiter};
use crate::directory::{Directory, self_test};
use crate::error::Error;
use crate::layout;
use crate::paths::LimiterName;
use crate::sanity;
use crate::sys::{self, SharedMap, UnnamedFile};
use crate::words::Words;
use shmlimit_kernel::policy::Policy;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

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
    // Users that are not seen in the creation lock: they could not open it, or it was deleted too.
    let mapped = is_missing && sys::is_deleted_in_use(&path);
    // One that is seen once may be on its way out: it opened the file just before that was removed.
    let mut seen = 0;
    let mut starts_used_up = false;
    loop {
        let late = began.elapsed() >= place.saturating_add(place / 8);
        let created = create_with(directory, name, |before, _| {
            seen += u32::from(before == PreviousLimiter::InUse);
            let in_use = (before == PreviousLimiter::InUse || seen > 1 || mapped)
                && before != PreviousLimiter::Removed;
            starts_used_up = in_use && late;
            match in_use {
                true if late => InitialState::used_up(policy, place, &directory.clock).map(Some),
                true => Ok(None),
                false => Ok(Some(InitialState::fresh(policy))),
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
    seed: impl FnOnce(PreviousLimiter, Generation) -> Result<Option<InitialState>, Error>,
) -> Result<Creation, Error> {
    let file_name = name.file_name();
    directory.with_creation_lock(|locked| match sys::facts_at(&locked.directory, &file_name) {
        Ok(_) => Ok(Creation::There),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            match seed(PreviousLimiter::of(locked, name)?, locked.generation(name)?)? {
                Some(seed) => make(directory, locked, name, &seed),
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
    seed: &InitialState,
    retire: impl FnOnce() -> Result<(), Error>,
) -> Result<(), Error> {
    let file_name = name.file_name();
    let path = directory.path().join(&file_name);
    directory.with_creation_lock(|locked| {
        // All that can fail for want of room or permission first: until then nothing has happened to the old one.
        let next = locked.next_generation(name)?;
        let new = prepare(directory, &locked.directory, &path, seed, next)?;
        users::begin_generation(locked, name, next)?;
        // Retired before it loses its name: whoever is killed in between leaves a segment that nobody grants from.
        retire()?;
        new.replace(&locked.directory, &file_name).map_err(Error::io("replace", &path))
    })
}

/// Removes the segment of a limiter, if `retire` says so. Says whether it was there and is gone.
pub fn remove(
    directory: &Directory,
    name: &LimiterName,
    retire: impl FnOnce() -> Result<bool, Error>,
) -> Result<bool, Error> {
    let file_name = name.file_name();
    directory.with_creation_lock(|locked| {
        if !retire()? {
            return Ok(false);
        }
        users::note_removal(locked, directory, name)?;
        match sys::remove_at(&locked.directory, &file_name) {
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
    directory.with_creation_lock(|locked| {
        let Some(old) =
            open(directory, name)?.filter(|old| layout::is_retired(old.words.load(layout::RETIRED)))
        else {
            return Ok(());
        };
        let removed = old.words.load(layout::RETIRED) == layout::REMOVED;
        let policy = sanity::policy(&old.words).ok().filter(|_| !removed);
        let path = directory.path().join(&file_name);
        match wanted.or(policy) {
            Some(policy) => {
                let next = locked.next_generation(name)?;
                let new = prepare(directory, &locked.directory, &path, &InitialState::fresh(policy), next)?;
                users::begin_generation(locked, name, next)?;
                new.replace(&locked.directory, &file_name).map_err(Error::io("replace", &path))
            }
            None => {
                users::note_removal(locked, directory, name)?;
                sys::remove_at(&locked.directory, &file_name).map_err(Error::io("remove", &path))
            }
        }
    })
}

fn make(
    directory: &Directory,
    locked: &LockedDirectory,
    name: &LimiterName,
    seed: &InitialState,
) -> Result<Creation, Error> {
    let file_name = name.file_name();
    let path = directory.path().join(&file_name);
    let next = locked.next_generation(name)?;
    let new = prepare(directory, &locked.directory, &path, seed, next)?;
    users::begin_generation(locked, name, next)?;
    match new.link(&locked.directory, &file_name) {
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
    seed: &InitialState,
    generation: u64,
) -> Result<UnnamedFile, Error> {
    let make_error = || Error::io("make", path);
    let size = layout::size_for(&seed.policy);
    let file = sys::unnamed_file(handle, directory.shared_with(), size as u64).map_err(make_error())?;
    // Before it has a name: where no process can be seen to live, nothing should be left behind.
    if !file.keeps_locks().map_err(make_error())? {
        return Err(self_test::locks_are_lost(path, file.file()));
    }
    let map = SharedMap::new(file.file(), size).map_err(make_error())?;
    let words = Words::new(map).ok_or_else(|| make_error()(io::ErrorKind::InvalidData.into()))?;
    fill(&words, seed, generation, &directory.clock).map_err(make_error())?;
    Ok(file)
}
