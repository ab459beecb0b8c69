//! Names and places: which file holds a limiter.

use crate::error::Error;
use crate::sys;
use std::path::{Path, PathBuf};

/// The file of the creation lock, under which segments are created and removed. It is never deleted.
///
/// ```
/// # use shmlimit_segment as shmlimit;
/// use shmlimit::paths::{CREATION_LOCK, LimiterName};
///
/// assert!(LimiterName::of_file(CREATION_LOCK).is_none());
/// ```
pub const CREATION_LOCK: &str = "ratelimit.lock";
const SUFFIX: &str = ".shm";
const NOTE: &str = ".removed";
const LONGEST_NAME: usize = 64;
/// Names that mean devices on Windows, even with an extension. Names of ports also have a digit.
const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];
const PORTS: [&str; 2] = ["com", "lpt"];

/// A limiter name that is a safe file name on every platform. On Windows `tmdb` and `TMDB` are one file, and
/// therefore one limiter.
///
/// ```
/// # use shmlimit_segment as shmlimit;
/// use shmlimit::paths::LimiterName;
///
/// let name = LimiterName::new("tmdb")?;
/// assert_eq!(name.file_name(), "tmdb.shm");
/// # Ok::<(), shmlimit::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimiterName(String);

impl LimiterName {
    /// Checks a name (`[A-Za-z0-9._-]`, no leading dot, at most 64).
    ///
    /// ```
    /// # use shmlimit_segment as shmlimit;
    /// use shmlimit::paths::LimiterName;
    ///
    /// assert!(LimiterName::new("tmdb").is_ok());
    /// assert!(LimiterName::new("../tmdb").is_err());
    /// ```
    pub fn new(name: &str) -> Result<LimiterName, Error> {
        let bad = |why| Err(Error::BadName { name: name.to_owned(), why });
        match name {
            "" => bad("it is empty"),
            _ if name.len() > LONGEST_NAME => bad("it is longer than 64 characters"),
            _ if name.starts_with('.') => bad("it begins with a dot"),
            _ if !name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-')) => {
                bad("it has a character that is not allowed")
            }
            _ if is_device(name) => bad("it is the name of a device on Windows"),
            _ => Ok(LimiterName(name.to_owned())),
        }
    }

    /// The name itself.
    ///
    /// ```
    /// # use shmlimit_segment as shmlimit;
    /// assert_eq!(shmlimit::paths::LimiterName::new("tmdb").unwrap().as_str(), "tmdb");
    /// ```
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of its segment in the directory.
    ///
    /// ```
    /// # use shmlimit_segment as shmlimit;
    /// assert_eq!(shmlimit::paths::LimiterName::new("tmdb").unwrap().file_name(), "tmdb.shm");
    /// ```
    pub fn file_name(&self) -> String {
        format!("{}{SUFFIX}", self.0)
    }

    /// The file name of the note that the limiter was removed on purpose while programs had it open.
    pub(crate) fn note_name(&self) -> String {
        format!(".{}{NOTE}", self.0)
    }

    /// Whether a file name is the name of such a note.
    ///
    /// ```
    /// # use shmlimit_segment as shmlimit;
    /// use shmlimit::paths::LimiterName;
    ///
    /// assert!(LimiterName::is_note(".tmdb.removed") && !LimiterName::is_note("tmdb.shm"));
    /// ```
    pub fn is_note(file_name: &str) -> bool {
        let name = file_name.strip_prefix('.').and_then(|name| name.strip_suffix(NOTE));
        name.is_some_and(|name| LimiterName::new(name).is_ok())
    }

    /// The limiter that a file name belongs to.
    ///
    /// ```
    /// # use shmlimit_segment as shmlimit;
    /// assert_eq!(shmlimit::paths::LimiterName::of_file("tmdb.shm").unwrap().as_str(), "tmdb");
    /// ```
    pub fn of_file(file_name: &str) -> Option<LimiterName> {
        LimiterName::new(file_name.strip_suffix(SUFFIX)?).ok()
    }
}

fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let is_port = |port| matches!(stem.strip_prefix(port).map(str::as_bytes), Some([b'0'..=b'9']));
    DEVICES.contains(&stem.as_str()) || PORTS.into_iter().any(is_port)
}

/// A directory in which limiters may live, and whether the user chose it.
///
/// ```
/// # use shmlimit_segment as shmlimit;
/// use shmlimit::paths::Candidate;
///
/// let candidate = Candidate { path: "/srv/limits".into(), chosen: true, made: true };
/// assert_eq!(candidate, Candidate::chosen("/srv/limits"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The directory.
    pub path: PathBuf,
    /// Whether the user chose it. A chosen directory is used or refused. A default may be created, or be passed
    /// over for the next one.
    pub chosen: bool,
    /// Whether it is created if it is missing. A default without this flag is used only if it exists.
    pub made: bool,
}

impl Candidate {
    /// A directory that the user chose.
    ///
    /// ```
    /// # use shmlimit_segment as shmlimit;
    /// assert!(shmlimit::paths::Candidate::chosen("/srv/limits").chosen);
    /// ```
    pub fn chosen(path: impl Into<PathBuf>) -> Candidate {
        Candidate { path: path.into(), chosen: true, made: true }
    }
}

/// The directories in which limiters may live, best first: the chosen directory (`--dir`, `SHMLIMIT_DIR`,
/// `ANIVAULT_DIR`), otherwise the defaults. The defaults depend only on the user and the machine's file systems, so
/// that a login shell and cron agree.
///
/// ```
/// # use shmlimit_segment as shmlimit;
/// use shmlimit::paths::{Candidate, candidates};
/// use std::path::Path;
///
/// assert_eq!(candidates(Some(Path::new("/srv/limits"))), [Candidate::chosen("/srv/limits")]);
/// ```
pub fn candidates(explicit: Option<&Path>) -> Vec<Candidate> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let chosen =
        explicit.map(PathBuf::from).or_else(|| variable("SHMLIMIT_DIR")).or_else(|| variable("ANIVAULT_DIR"));
    match chosen {
        Some(path) => vec![Candidate::chosen(path)],
        None => {
            let default = |sys::DefaultDirectory { path, made }| Candidate { path, chosen: false, made };
            sys::default_directories().into_iter().map(default).collect()
        }
    }
}

/// Directories that earlier versions used by default for this user. Limiters that remain there are found only if
/// one of these directories is chosen.
///
/// ```
/// # use shmlimit_segment as shmlimit;
/// for directory in shmlimit::paths::former_defaults() {
///     println!("limiters of earlier versions: {}", directory.display());
/// }
/// ```
pub fn former_defaults() -> Vec<PathBuf> {
    sys::former_directories()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_file_names() {
        for good in ["tmdb", "a", "A-1_b.c", "a.", "console", "com", "com10", "x.con", &"x".repeat(64)] {
            assert_eq!(LimiterName::new(good).unwrap().as_str(), good);
        }
        for bad in ["", ".", "..", ".hidden", "a/b", "a\\b", "a b", "é", "a\0", "a:b", &"x".repeat(65)] {
            assert!(matches!(LimiterName::new(bad), Err(Error::BadName { .. })), "{bad:?}");
        }
        for device in ["con", "NUL", "Aux.x", "prn", "com1", "LPT9.txt"] {
            assert!(LimiterName::new(device).unwrap_err().to_string().contains("device"), "{device:?}");
        }
    }

    #[test]
    fn limiter_name_is_recovered_from_its_file_name() {
        let name = LimiterName::new("tmdb").unwrap();
        assert!(LimiterName::is_note(&name.note_name()) && !LimiterName::is_note(&name.file_name()));
        assert!(!LimiterName::is_note("..removed") && !LimiterName::is_note("tmdb.removed"));
        assert_eq!(LimiterName::of_file(&name.note_name()), None);
        assert_eq!(LimiterName::of_file(&name.file_name()), Some(name));
        assert_eq!(LimiterName::of_file(CREATION_LOCK), None);
        assert_eq!(LimiterName::of_file(".shm"), None);
    }

    #[test]
    fn former_default_directories_are_not_current_defaults() {
        let defaults: Vec<PathBuf> = sys::default_directories().into_iter().map(|one| one.path).collect();
        assert!(former_defaults().iter().all(|former| former.is_absolute() && !defaults.contains(former)));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn default_directories_contain_the_program_name() {
        let uid = nix::unistd::geteuid();
        let expected = [
            "/var/run/shmlimit".to_owned(),
            format!("/var/tmp/shmlimit-{uid}"),
            format!("/dev/shm/shmlimit-{uid}"),
        ];
        let defaults = sys::default_directories().into_iter().map(|one| one.path);
        assert!(defaults.eq(expected.map(PathBuf::from)));
    }
}
