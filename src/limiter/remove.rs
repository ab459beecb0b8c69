//! Removing a limiter.

use super::builder::Builder;
use super::opening::open_once;
use shmlimit_segment::Error;
use shmlimit_segment::file::create;
use shmlimit_segment::program_name;

/// The result of removing a limiter.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// use shmlimit::{Limiter, Removal};
///
/// let removal = Limiter::builder("api").directory(directory.path()).remove(false)?;
/// assert_eq!(removal, Removal::Absent);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Removal {
    /// It was removed. Programs that had it open now get the error that the limiter does not exist.
    Removed,
    /// It did not exist.
    Absent,
    /// It was not removed, because these programs use it (process id and name).
    InUse(Vec<(u32, String)>),
}

impl Builder {
    /// Removes the limiter, unless programs have it open. With `force`, it is removed in that case too. Those
    /// programs get the error that the limiter does not exist, until a process creates it again; then they switch
    /// to the new one.
    ///
    /// A damaged segment, or one of another version, is removed only with `force`, because its users are unknown. A
    /// file that is not a segment is never removed.
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
        let (name, directory) = self.locate(false)?;
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
                // A process was killed while removing or replacing it.
                Err(Error::Replaced { .. }) => Ok(true),
                Err(Error::Foreign { segment: true, .. } | Error::Damaged { .. }) if force => Ok(true),
                Err(error) => Err(error),
            }
        })?;
        // Waiting calls are woken now, so that they do not notice it only at their own next check.
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
