//! Names and places: which file holds a limiter.

use crate::error::Error;
use crate::sys;
use std::path::{Path, PathBuf};

/// The gate for making and removing segments; never deleted.
pub const GATE: &str = "ratelimit.lock";
const SUFFIX: &str = ".shm";
const LONGEST_NAME: usize = 64;

/// A limiter name that is a safe file name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimiterName(String);

impl LimiterName {
    /// Checks a name (`[A-Za-z0-9._-]`, no leading dot, at most 64).
    pub fn new(name: &str) -> Result<LimiterName, Error> {
        let bad = |why| Err(Error::BadName { name: name.to_owned(), why });
        match name {
            "" => bad("it is empty"),
            _ if name.len() > LONGEST_NAME => bad("it is too long"),
            _ if name.starts_with('.') => bad("it begins with a dot"),
            _ if !name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-')) => {
                bad("it has other characters")
            }
            _ => Ok(LimiterName(name.to_owned())),
        }
    }

    /// The name itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of its segment in the directory.
    pub fn file_name(&self) -> String {
        format!("{}{SUFFIX}", self.0)
    }

    /// The limiter a file name belongs to.
    pub fn of_file(file_name: &str) -> Option<LimiterName> {
        LimiterName::new(file_name.strip_suffix(SUFFIX)?).ok()
    }
}

/// A directory and whether somebody chose it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The directory.
    pub path: PathBuf,
    /// A chosen directory is used or refused; a default one may be made, and gives way to the next.
    pub chosen: bool,
}

/// Where limiters may live, best first: the one chosen (`--dir`, `SHMLIMIT_DIR`, `ANIVAULT_DIR`), else the
/// defaults, which depend on the user alone so that a login shell and cron agree.
pub fn places(explicit: Option<&Path>) -> Vec<Place> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let chosen =
        explicit.map(PathBuf::from).or_else(|| variable("SHMLIMIT_DIR")).or_else(|| variable("ANIVAULT_DIR"));
    match chosen {
        Some(path) => vec![Place { path, chosen: true }],
        None => sys::default_directories().into_iter().map(|path| Place { path, chosen: false }).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_file_names() {
        for good in ["tmdb", "a", "A-1_b.c", &"x".repeat(64)] {
            assert_eq!(LimiterName::new(good).unwrap().as_str(), good);
        }
        for bad in ["", ".", "..", ".hidden", "a/b", "a\\b", "a b", "é", "a\0", "a:b", &"x".repeat(65)] {
            assert!(matches!(LimiterName::new(bad), Err(Error::BadName { .. })), "{bad:?}");
        }
    }

    #[test]
    fn a_file_name_leads_back_to_its_limiter() {
        let name = LimiterName::new("tmdb").unwrap();
        assert_eq!(LimiterName::of_file(&name.file_name()), Some(name));
        assert_eq!(LimiterName::of_file(GATE), None);
        assert_eq!(LimiterName::of_file(".shm"), None);
    }
}
