//! Lists the limiters of a directory.

use super::Limiter;
use shmlimit_segment::Error;
use shmlimit_segment::directory::{Allowances, Directory};
use shmlimit_segment::paths::{self, LimiterName};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// What [`Limiter::list`] found.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
/// let listing = shmlimit::Limiter::list(Some(directory.path()))?;
/// println!("{} limiters in {}", listing.names.len(), listing.directory.display());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listing {
    /// The directory that was listed.
    pub directory: PathBuf,
    /// The names of the limiters there, in order.
    pub names: Vec<String>,
    /// Why a better directory was not used, for people.
    pub note: Option<String>,
}

impl Limiter {
    /// The limiters in a directory (default: the usual one).
    ///
    /// A missing directory is an error, unless a better directory was not used. In that case the list is empty, and
    /// the note says why.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// assert_eq!(shmlimit::Limiter::list(Some(directory.path()))?.names, ["api"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn list(directory: Option<&Path>) -> Result<Listing, Error> {
        let candidates = paths::candidates(directory);
        let (found, note) = Directory::look(&candidates, Allowances { make: false, network: true });
        let directory = match found {
            Err(Error::Io { source, path, .. }) if note.is_some() && source.kind() == ErrorKind::NotFound => {
                return Ok(Listing { directory: path, names: Vec::new(), note });
            }
            found => found?,
        };
        let path = directory.path();
        let entries = std::fs::read_dir(path).map_err(Error::io("read directory", path))?;
        let mut names: Vec<String> = entries
            .filter_map(|entry| LimiterName::of_file(entry.ok()?.file_name().to_str()?))
            .map(|name| name.as_str().to_owned())
            .collect();
        names.sort();
        Ok(Listing { directory: path.to_owned(), names, note })
    }
}
