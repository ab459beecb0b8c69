//! Removing a limiter.

use super::builder::Builder;
use super::opening::open_once;
use shmlimit_segment::Error;
use shmlimit_segment::file::create;
use shmlimit_segment::program_name;

/// What became of a limiter that should be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Removal {
    /// It is gone. Programs that had it open are told that there is no such limiter.
    Removed,
    /// There was none.
    Absent,
    /// It was left alone: these programs use it (process id and name).
    InUse(Vec<(u32, String)>),
}

impl Builder {
    /// Removes the limiter, unless programs have it open. With `force` also then: they are told that there is no such
    /// limiter, until somebody makes it again, and then go over to that one.
    ///
    /// A damaged segment, or one of another version, is removed only with `force`, because nobody can tell who uses it.
    /// What is no segment at all is left alone in any case.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// use shmlimit::{Limiter, Removal};
    ///
    /// let tmdb = Limiter::builder("tmdb").directory(directory.path());
    /// let handle = tmdb.clone().open()?;
    /// assert!(matches!(tmdb.clone().remove(false)?, Removal::InUse(_)));
    /// drop(handle);
    /// assert_eq!(tmdb.remove(false)?, Removal::Removed);
    /// # Ok(()) }
    /// ```
    pub fn remove(self, force: bool) -> Result<Removal, Error> {
        let (name, directory) = self.place(false)?;
        let (mut opened, mut users, mut there) = (None, Vec::new(), true);
        let removed = create::remove(&directory, &name, || {
            match open_once(&directory, &name, self.bounds.as_operator()) {
                Ok(Some(segment)) => {
                    let segment = opened.insert(segment);
                    let attachment = segment.attachment()?;
                    let others = || segment.others(&attachment);
                    let marked = segment.retire_for_good(|| Ok(force || others()?.is_empty()))?;
                    if !marked {
                        users = others()?;
                    }
                    Ok(marked)
                }
                Ok(None) => {
                    there = false;
                    Ok(false)
                }
                // Somebody was killed while removing or replacing it.
                Err(Error::Unsettled { .. }) => Ok(true),
                Err(Error::Foreign { segment: true, .. } | Error::Damaged { .. }) if force => Ok(true),
                Err(error) => Err(error),
            }
        })?;
        // Those who wait learn it now rather than by their own time.
        if let Some(segment) = opened.as_ref().filter(|_| removed) {
            segment.wake_all(segment.sleepers());
        }
        Ok(match (removed, there) {
            (true, _) => Removal::Removed,
            (false, false) => Removal::Absent,
            (false, true) => {
                Removal::InUse(users.iter().map(|one| (one.pid, program_name(&one.program))).collect())
            }
        })
    }
}
