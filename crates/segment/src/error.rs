//! What can go wrong, where, and what to do about it.
//!
//! A refusal ("not now") is not an error: the library has `Refusal` for it.

use shmlimit_kernel::policy::PolicyError;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An error of a layer above this crate, which only the user of that layer can name.
pub type BoxedError = Box<dyn std::error::Error + Send + Sync>;

/// A failure. Every message says what happened, which file or key, and the way out; nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A limiter name that cannot be a file name everywhere.
    #[error("bad limiter name {name:?}: {why}; use 1 to 64 of A-Z a-z 0-9 . _ - and no leading dot")]
    BadName {
        /// The name given.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// There is no such limiter, and no preset of that name to make it from.
    #[error("no limiter {name:?} in {directory}; make it with: {}", tool(.directory, "init", .name, "--rate 35/s"))]
    UnknownLimiter {
        /// The name asked for.
        name: String,
        /// Where it was looked for.
        directory: PathBuf,
    },
    /// A limiter that should be made exists already.
    #[error(
        "limiter {name:?} exists already in {directory}; to start it afresh: {}",
        tool(.directory, "init", .name, "--replace")
    )]
    AlreadyExists {
        /// Its name.
        name: String,
        /// Where it is.
        directory: PathBuf,
    },
    /// The directory cannot be used or cannot be trusted.
    #[error("directory {path}: {problem}; {remedy}")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
        /// What to do.
        remedy: String,
    },
    /// The file in the segment's place is not one this user may trust: a link, a pipe, somebody else's.
    #[error("{path} is not safe to use: {problem}; remove it, or choose another directory with --dir")]
    UnsafeFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A file that is no segment of this layout. Not one byte of it was written.
    #[error("{path} was left alone: {problem}; {}", remedy.replace("REMOVE", &removal(.path)))]
    Foreign {
        /// The file.
        path: PathBuf,
        /// How it differs.
        problem: String,
        /// What to do; REMOVE stands for the command that removes it.
        remedy: &'static str,
        /// Whether it is a segment all the same, of another version or build, that may be replaced.
        segment: bool,
    },
    /// The segment's configuration was damaged.
    #[error("{path} is damaged: {problem}; remove it with: {}, and make it again", removal(.path))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// Locks and mappings are not to be trusted across a network.
    #[error(
        "{path} is on a {kind} file system, where shared memory cannot be trusted; choose a local directory with --dir, or allow it with --allow-network-fs"
    )]
    NetworkFileSystem {
        /// The directory.
        path: PathBuf,
        /// Which kind.
        kind: &'static str,
    },
    /// Living participants cannot be told from exited ones: the file system loses their locks, or this process may not
    /// look at them.
    #[error("{path}: living processes cannot be told from exited ones: {problem}; {remedy}")]
    Liveness {
        /// The segment, or the directory.
        path: PathBuf,
        /// Why not.
        problem: String,
        /// What to do.
        remedy: String,
    },
    /// The lock of the segment was not free in time: its holder does not go on, or too many processes want it.
    #[error("{path} is busy: {}", busy(*.pid, .program, .waited, *.stopped))]
    Busy {
        /// The segment.
        path: PathBuf,
        /// The process id of a holder that has stopped, in its own pid namespace; 0 if none has.
        pid: u32,
        /// That holder's program name.
        program: String,
        /// How long this caller has waited.
        waited: Duration,
        /// Whether one and the same acquisition has held the lock for a second: its process is stopped or starved. Else
        /// others took turns, and a later try may succeed.
        stopped: bool,
    },
    /// Every place for a participant is taken by a living one.
    #[error(
        "{path} has no free slot: {limit} processes are attached, which is the limit; share one handle per process, or end some"
    )]
    SlotsFull {
        /// The segment.
        path: PathBuf,
        /// How many there are.
        limit: usize,
    },
    /// Settings given explicitly differ from those of the limiter that is there (R144).
    #[error(
        "limiter {name:?} is configured otherwise:\n{differences}\nleave the settings out to use it as it is, or remove it with: {}, and open it again",
        tool(.directory, "rm", .name, "--force")
    )]
    ConfigMismatch {
        /// The limiter.
        name: String,
        /// Where it is.
        directory: PathBuf,
        /// One line a difference: key, what is there, what was asked for.
        differences: String,
        /// Whether it could have these settings without being made afresh (`OnMismatch::Update`).
        updatable: bool,
    },
    /// A change that does not fit the segment as it was made.
    #[error(
        "limiter {name:?} cannot take this change while it is used: {problem}; {}",
        afresh(.directory, .name, "change that there")
    )]
    DoesNotFit {
        /// The limiter.
        name: String,
        /// Where it is.
        directory: PathBuf,
        /// What does not fit.
        problem: String,
    },
    /// A configuration that makes no sense.
    #[error(transparent)]
    Policy(Box<PolicyError>),
    /// A configuration file that cannot be carried out. The cause is a `ConfigError` of the library.
    #[error(transparent)]
    Config(BoxedError),
    /// A variable of the environment that means nothing, or does not fit. The cause is an `environment::EnvError` of the
    /// library.
    #[error(transparent)]
    Environment(BoxedError),
    /// A status that no server answers with.
    #[error("{status} is no HTTP status; 100 to 599 are")]
    BadStatus {
        /// What was given.
        status: u16,
    },
    /// An argument that is out of its range.
    #[error("cannot {what}: {problem}")]
    BadValue {
        /// What was asked for.
        what: &'static str,
        /// What is wrong with it, and what to do.
        problem: String,
    },
    /// A state that the limiter's breaker does not have.
    #[error("limiter {name:?} cannot be forced to {state:?}: it has {breaker}; {allowed}")]
    NoSuchState {
        /// The limiter.
        name: String,
        /// What was asked for.
        state: &'static str,
        /// What kind of breaker it has.
        breaker: &'static str,
        /// What it can be forced to.
        allowed: String,
    },
    /// A cost in a unit that no rule of the limiter counts.
    #[error("limiter {name:?} does not count {unit:?}; it counts: {known}")]
    UnknownUnit {
        /// The limiter.
        name: String,
        /// The unit asked for.
        unit: String,
        /// Those there are.
        known: String,
    },
    /// The segment was deleted or replaced, time after time, while it was being opened.
    #[error("{path} keeps being replaced while it is opened; find out who does that")]
    Unsettled {
        /// The segment.
        path: PathBuf,
    },
    /// This operating system cannot keep a promise that sharing a limiter rests on.
    #[error(
        "limiters cannot be shared on {}: it lacks {missing}; use Linux or Windows",
        std::env::consts::OS
    )]
    Unsupported {
        /// What the system lacks.
        missing: &'static str,
    },
    /// The operating system said no.
    #[error("cannot {action} {path}: {source}{}", hint(.source, .path))]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl Error {
    /// A short name that never changes, the same in every language.
    pub const fn code(&self) -> &'static str {
        match self {
            Error::BadName { .. } => "bad_name",
            Error::UnknownLimiter { .. } => "unknown_limiter",
            Error::AlreadyExists { .. } => "already_exists",
            Error::Directory { .. } => "directory",
            Error::UnsafeFile { .. } => "unsafe_file",
            Error::Foreign { .. } => "foreign",
            Error::Damaged { .. } => "damaged",
            Error::NetworkFileSystem { .. } => "network_file_system",
            Error::Liveness { .. } => "liveness",
            Error::Busy { .. } => "busy",
            Error::SlotsFull { .. } => "slots_full",
            Error::ConfigMismatch { .. } => "config_mismatch",
            Error::DoesNotFit { .. } => "does_not_fit",
            Error::Policy(_) => "policy",
            Error::Config(_) => "config",
            Error::Environment(_) => "environment",
            Error::BadStatus { .. } => "bad_status",
            Error::BadValue { .. } => "bad_value",
            Error::NoSuchState { .. } => "no_such_state",
            Error::UnknownUnit { .. } => "unknown_unit",
            Error::Unsettled { .. } => "unsettled",
            Error::Unsupported { .. } => "unsupported",
            Error::Io { .. } => "io",
        }
    }

    /// The operating system's number for it, if it was that which said no.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Error::Io { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }

    /// Turns an error of the operating system into one that says what was tried, on which file.
    pub fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::Io { action, path, source }
    }
}

impl From<PolicyError> for Error {
    fn from(error: PolicyError) -> Error {
        Error::Policy(Box::new(error))
    }
}

impl From<Box<Error>> for Error {
    fn from(error: Box<Error>) -> Error {
        *error
    }
}

/// A command of the tool, as a shell reads it.
pub fn tool(directory: &Path, verb: &str, name: &str, options: &str) -> String {
    let directory = quoted(&directory.display().to_string());
    // What looks like an option goes behind all of them.
    match name.starts_with('-') {
        true => format!("shmlimit --dir {directory} {verb} {options} -- {name}"),
        false => format!("shmlimit --dir {directory} {verb} {name} {options}"),
    }
}

/// How to start a limiter afresh with other settings.
pub fn afresh(directory: &Path, name: &str, change: &str) -> String {
    // A file of that name would look like an option.
    let file = format!("{}.settings.toml", name.trim_start_matches('-'));
    format!(
        "write its settings to a file with: {} > {file}\n{change}, and start it afresh with: {}",
        tool(directory, "status", name, "--toml"),
        tool(directory, "init", name, &format!("--config {file} --replace"))
    )
}

fn removal(segment: &Path) -> String {
    let name = segment.file_stem().map_or_else(|| "NAME".to_owned(), |name| name.display().to_string());
    tool(segment.parent().unwrap_or(Path::new(".")), "rm", &name, "--force")
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "._-/+:@%,=".contains(c) || c == '\\' && cfg!(windows);
    match word.chars().all(plain) && !word.is_empty() {
        true => word.to_owned(),
        // What the shells of Windows understand.
        false if cfg!(windows) => format!("\"{word}\""),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Who holds the lock, and the way on. No advice about process 0, because a signal to it goes to the caller's own group,
/// nor about this process, which could not act on it.
fn busy(pid: u32, program: &str, waited: &Duration, stopped: bool) -> String {
    let waited = waited.as_millis();
    match pid {
        _ if !stopped => {
            format!("other calls held the lock in turn while this one waited {waited} ms; try again")
        }
        own if own == std::process::id() => format!(
            "another thread of this process holds the lock, and this call has waited {waited} ms; is that thread stopped, for \
             example by a debugger?"
        ),
        0 => format!(
            "process 0 ({program}) holds the lock, and this call has waited {waited} ms; is it stopped?"
        ),
        // Nothing that every Windows has lets a stopped process go on.
        pid if cfg!(windows) => format!(
            "process {pid} ({program}) has held the lock for {waited} ms; is it stopped? If it is, end it with: taskkill /F /PID \
             {pid}"
        ),
        pid => format!(
            "process {pid} ({program}) has held the lock for {waited} ms; is it stopped? It goes on with: kill -CONT {pid}"
        ),
    }
}

/// What Windows says of a file with the mark that forbids writing, and of one that cannot be cut or overwritten because it
/// is mapped. No other system has errors of these numbers.
const FILE_READ_ONLY: i32 = 6009;
const USER_MAPPED_FILE: i32 = 1224;

fn hint(source: &io::Error, path: &Path) -> String {
    match source.raw_os_error() {
        Some(FILE_READ_ONLY) => {
            return format!("; it is marked read-only, take that off with: attrib -r \"{}\"", path.display());
        }
        Some(USER_MAPPED_FILE) => {
            return "; programs have it mapped, end them first (shmlimit status shows them)".to_owned();
        }
        _ => {}
    }
    let hint = match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space, or choose another directory with --dir"
        }
        io::ErrorKind::FileTooLarge => {
            "raise the limit on the size of files that this process may write (ulimit -f, LimitFSIZE= of systemd)"
        }
        io::ErrorKind::ReadOnlyFilesystem => "choose a writable directory with --dir",
        // Windows does not say who may, nor whether it is the file or the directory.
        io::ErrorKind::PermissionDenied if cfg!(windows) => {
            let path = path.display();
            return format!(
                "; see who may use it with: icacls \"{path}\", or choose a directory of your own with --dir"
            );
        }
        io::ErrorKind::PermissionDenied => "choose a directory of your own with --dir",
        io::ErrorKind::WouldBlock => "somebody is making or removing a limiter there, try again",
        io::ErrorKind::ResourceBusy if cfg!(windows) => {
            "find it in the Resource Monitor (resmon), and end it or keep it off this file"
        }
        _ => return String::new(),
    };
    format!("; {hint}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_windows_says_of_marked_and_mapped_files_comes_with_the_way_out() {
        let text = |code| Error::io("open", "tmdb.shm")(io::Error::from_raw_os_error(code)).to_string();
        assert!(text(FILE_READ_ONLY).ends_with("attrib -r \"tmdb.shm\""), "{}", text(FILE_READ_ONLY));
        assert!(text(USER_MAPPED_FILE).contains("end them first"), "{}", text(USER_MAPPED_FILE));
    }
}
