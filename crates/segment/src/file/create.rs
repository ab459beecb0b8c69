//! Creates, replaces and removes the file of a limiter. The file appears whole or not at all.

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

/// The result of an attempt to create a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Creation {
    /// It was created.
    Made,
    /// It exists already.
    There,
    /// It does not exist, and the caller did not want one.
    Unwanted,
}

/// Creates the segment of a limiter, unless it exists. Returns whether it was created.
#[cfg(test)]
pub fn create(
    directory: &Directory,
    name: &LimiterName,
    policy: Policy,
    place: Duration,
) -> Result<bool, Error> {
    create_noting(directory, name, policy, place, &mut false)
}

/// Creates the segment of a limiter, unless it exists. Returns whether it was created, and sets `used_up` if it was
/// created with an empty budget.
///
/// If the file was deleted by hand while programs use it, they restore it as it was when they notice. They notice
/// within `place` if they make calls. Programs that make no calls cannot be asked what was used, so in that case a
/// new segment has nothing to give.
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
    // These users are not visible in the creation lock: they could not open it, or it was deleted too.
    let mapped = is_missing && sys::is_deleted_in_use(&path);
    // A user that is seen once may be about to leave: it opened the file just before the file was removed.
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

/// Creates a segment under the creation lock, if there is none and `seed` wants one. `seed` receives what was there
/// before and the generation of the name, and returns the initial state.
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

/// Creates the segment of a limiter in place of the existing one, if any. Users of the old segment notice and move
/// to the new one.
pub fn replace(
    directory: &Directory,
    name: &LimiterName,
    seed: &InitialState,
    retire: impl FnOnce() -> Result<(), Error>,
) -> Result<(), Error> {
    let file_name = name.file_name();
    let path = directory.path().join(&file_name);
    directory.with_creation_lock(|locked| {
        // First do everything that can fail for lack of space or permission: until then, nothing has happened to
        // the old segment.
        let next = locked.next_generation(name)?;
        let new = prepare(directory, &locked.directory, &path, seed, next)?;
        users::begin_generation(locked, name, next)?;
        // Retire the old segment before it loses its name: a process killed in between leaves a segment from which
        // no process grants.
        retire()?;
        new.replace(&locked.directory, &file_name).map_err(Error::io("replace", &path))
    })
}

/// Removes the segment of a limiter, if `retire` agrees. Returns whether the segment existed and is gone.
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

/// Removes a segment that was retired but not removed, because a process was killed in [`replace`] or [`remove`]. A
/// segment that was to be replaced passes its policy on, unless the caller wants another policy.
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
        Err(error) => Err(Error::io("create", path)(error)),
    }
}

/// Makes a whole segment that has no name yet.
fn prepare(
    directory: &Directory,
    handle: &File,
    path: &Path,
    seed: &InitialState,
    generation: u64,
) -> Result<UnnamedFile, Error> {
    let make_error = || Error::io("create", path);
    let size = layout::size_for(&seed.policy);
    let file = sys::unnamed_file(handle, directory.shared_with(), size as u64).map_err(make_error())?;
    // Check this before the file has a name: nothing should be left behind where liveness cannot be tested.
    if !file.keeps_locks().map_err(make_error())? {
        return Err(self_test::locks_are_lost(path, file.file()));
    }
    let map = SharedMap::new(file.file(), size).map_err(make_error())?;
    let words = Words::new(map).ok_or_else(|| make_error()(io::ErrorKind::InvalidData.into()))?;
    fill(&words, seed, generation, &directory.clock).map_err(make_error())?;
    Ok(file)
}
