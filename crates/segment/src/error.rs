//! Errors: what failed, on which file, and what to do. A refusal ("not now") is not an error but a `Refusal`.

mod hint;

use hint::hint;
use shmlimit_kernel::policy::PolicyError;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A failure. Every message says what happened, on which file or key, and what to do. Nothing was changed.
///
/// ```
/// # use shmlimit_segment as shmlimit;
/// assert_eq!(shmlimit::Error::BadStatus { status: 42 }.to_string(), "42 is not an HTTP status; use 100 to 599");
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A limiter name that cannot be a file name on every platform.
    #[error(
        "bad limiter name {name:?}: {why}; use 1 to 64 characters of A-Z a-z 0-9 . _ - without a leading dot"
    )]
    BadName {
        /// The name given.
        name: String,
        /// The problem.
        why: &'static str,
    },
    /// There is no such limiter, and no preset of that name to create it from.
    #[error("no limiter {name:?} in {directory}; create it with: {}, or give a rate when you open it", tool(.directory, "init", .name, "--rate 35/s"))]
    UnknownLimiter {
        /// The name asked for.
        name: String,
        /// The directory that was searched.
        directory: PathBuf,
    },
    /// A limiter that should be created exists already.
    #[error(
        "limiter {name:?} already exists in {directory}; to replace it: {}",
        tool(.directory, "init", .name, "--replace")
    )]
    AlreadyExists {
        /// Its name.
        name: String,
        /// Its directory.
        directory: PathBuf,
    },
    /// The directory cannot be used or cannot be trusted.
    #[error("directory {path}: {problem}; {remedy}")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The problem.
        problem: String,
        /// The remedy.
        remedy: String,
    },
    /// This user cannot trust the file in the segment's place: it is a link, a pipe, or belongs to another user.
    #[error("{path} is not safe to use: {problem}; remove it, or choose another directory with --dir")]
    UnsafeFile {
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// A file that is not a segment of this layout. Not one byte of it was written.
    #[error("{path} cannot be used and was not changed: {problem}; {}", remedy.replace("REMOVE", &removal(.path)))]
    Foreign {
        /// The file.
        path: PathBuf,
        /// How it differs.
        problem: String,
        /// The remedy. REMOVE stands for the command that removes the file.
        remedy: &'static str,
        /// Whether it is a segment of another version or build, which may be replaced.
        segment: bool,
    },
    /// The segment's configuration was damaged.
    #[error("{path} is damaged: {problem}; remove it with: {}, and create it again", removal(.path))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// The directory is on a network file system, where locks and mappings cannot be trusted.
    #[error(
        "{path} is on a {kind} file system, where shared memory cannot be trusted; choose a local directory with --dir, or allow it with --allow-network-fs"
    )]
    NetworkFileSystem {
        /// The directory.
        path: PathBuf,
        /// The kind of file system.
        kind: &'static str,
    },
    /// Living and exited participants look alike: the file system loses locks, or this process may not examine them.
    #[error("{path}: cannot tell living processes from exited ones: {problem}; {remedy}")]
    Liveness {
        /// The segment, or the directory.
        path: PathBuf,
        /// Why not.
        problem: String,
        /// The remedy.
        remedy: String,
    },
    /// The lock of the segment was not free in time: its holder is stopped, or too many processes want the lock.
    #[error("{path} is busy: {}", busy(*.pid, .program, .waited, *.stopped))]
    Busy {
        /// The segment.
        path: PathBuf,
        /// The process id of a stopped holder, in the holder's own pid namespace; 0 if no holder has stopped.
        pid: u32,
        /// The program name of that holder.
        program: String,
        /// How long this caller has waited.
        waited: Duration,
        /// Whether a single acquisition has held the lock for a second. If so, its process is stopped or starved.
        /// Otherwise other calls took turns, and a later try may succeed.
        stopped: bool,
    },
    /// Living processes own all slots.
    #[error(
        "{path} is open {limit} times, which is the limit; open a limiter only once in each process, or end some of \
         the processes"
    )]
    SlotsFull {
        /// The segment.
        path: PathBuf,
        /// The number of slots.
        limit: usize,
    },
    /// Settings given explicitly differ from those of the existing limiter (R144).
    #[error(
        "limiter {name:?} exists with other settings:\n{differences}\n{}",
        mismatch(.directory, .name, *.updatable)
    )]
    ConfigMismatch {
        /// The limiter.
        name: String,
        /// Its directory.
        directory: PathBuf,
        /// One line for each difference: the key, the limiter's value, the value asked for.
        differences: String,
        /// Whether the limiter could take these settings without being created afresh (`OnMismatch::Update`).
        updatable: bool,
    },
    /// A change that does not fit the segment as it was created.
    #[error(
        "limiter {name:?} cannot take this change while it is in use: {problem}; {}\n(in a program: open \
         the limiter with the option `replace`)",
        afresh(.directory, .name, "then make the change in that file")
    )]
    DoesNotFit {
        /// The limiter.
        name: String,
        /// Its directory.
        directory: PathBuf,
        /// The reason why it does not fit.
        problem: String,
    },
    /// A configuration that makes no sense.
    #[error(transparent)]
    Policy(Box<PolicyError>),
    /// A configuration file that cannot be used. The cause is a `ConfigError` of the library.
    #[error(transparent)]
    Config(Box<dyn std::error::Error + Send + Sync>),
    /// An environment variable that is invalid or does not fit. The cause is an `environment::EnvError`.
    #[error(transparent)]
    Environment(Box<dyn std::error::Error + Send + Sync>),
    /// A status that no server answers with.
    #[error("{status} is not an HTTP status; use 100 to 599")]
    BadStatus {
        /// The status given.
        status: u16,
    },
    /// An argument that is out of its range.
    #[error("cannot {what}: {problem}")]
    BadValue {
        /// The operation that was asked for.
        what: &'static str,
        /// The problem with the argument, and the remedy.
        problem: String,
    },
    /// A state that the limiter's breaker does not have.
    #[error("limiter {name:?} cannot be forced to {state:?}: it has {breaker}; {allowed}")]
    NoSuchState {
        /// The limiter.
        name: String,
        /// The state asked for.
        state: &'static str,
        /// The kind of breaker that the limiter has.
        breaker: &'static str,
        /// The states to which it can be forced.
        allowed: String,
    },
    /// A cost in a unit that no rule of the limiter counts.
    #[error("limiter {name:?} does not count {unit:?}; it counts: {known}")]
    UnknownUnit {
        /// The limiter.
        name: String,
        /// The unit asked for.
        unit: String,
        /// The units that it counts.
        known: String,
    },
    /// The segment was deleted or replaced again and again while it was being opened.
    #[error(
        "{path} was replaced several times while it was being opened; find the program that replaces it, and stop it"
    )]
    Replaced {
        /// The segment.
        path: PathBuf,
    },
    /// This operating system cannot keep a promise that sharing a limiter requires.
    #[error(
        "limiters cannot be shared on {}: it lacks {missing}; use Linux or Windows",
        std::env::consts::OS
    )]
    Unsupported {
        /// The feature that the system lacks.
        missing: &'static str,
    },
    /// The operating system reported an error.
    #[error("cannot {action} {path}: {source}{}", hint(.source, .path))]
    Io {
        /// The operation that failed.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl Error {
    /// Every code that [`code`](Error::code) can return.
    ///
    /// ```
    /// # use shmlimit_segment as shmlimit;
    /// assert!(shmlimit::Error::CODES.contains(&"busy"));
    /// ```
    pub const CODES: [&str; 23] = [
        "bad_name",
        "unknown_limiter",
        "already_exists",
        "directory",
        "unsafe_file",
        "foreign",
        "damaged",
        "network_file_system",
        "liveness",
        "busy",
        "slots_full",
        "config_mismatch",
        "does_not_fit",
        "policy",
        "config",
        "environment",
        "bad_status",
        "bad_value",
        "no_such_state",
        "unknown_unit",
        "replaced",
        "unsupported",
        "io",
    ];

    /// A short name that never changes. It is the same in every language.
    ///
    /// ```
    /// # use shmlimit_segment as shmlimit;
    /// assert_eq!(shmlimit::Error::BadStatus { status: 42 }.code(), "bad_status");
    /// ```
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
            Error::Replaced { .. } => "replaced",
            Error::Unsupported { .. } => "unsupported",
            Error::Io { .. } => "io",
        }
    }

    /// The error number of the operating system, if the error came from it.
    ///
    /// ```
    /// # use shmlimit_segment as shmlimit;
    /// assert_eq!(shmlimit::Error::BadStatus { status: 42 }.errno(), None);
    /// ```
    pub fn errno(&self) -> Option<i32> {
        match self {
            Error::Io { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }

    /// Turns an error of the operating system into one that names the operation and the file.
    ///
    /// ```
    /// # use shmlimit_segment as shmlimit;
    /// let read = std::fs::read_to_string("limits.toml").map_err(shmlimit::Error::io("read", "limits.toml"));
    /// ```
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

/// A command of the tool, written so that a shell can run it.
pub fn tool(directory: &Path, verb: &str, name: &str, options: &str) -> String {
    let directory = quoted(&directory.display().to_string());
    // A name that looks like an option goes after all options.
    match name.starts_with('-') {
        true => format!("shmlimit --dir {directory} {verb} {options} -- {name}"),
        false => format!("shmlimit --dir {directory} {verb} {name} {options}"),
    }
}

/// Tells how to start a limiter afresh with other settings.
pub fn afresh(directory: &Path, name: &str, change: &str) -> String {
    // A file name that begins with a hyphen would look like an option.
    let file = format!("{}.settings.toml", name.trim_start_matches('-'));
    format!(
        "write the limiter's settings to a file with: {} > {file}\n{change}, and replace the limiter with: {}",
        tool(directory, "status", name, "--toml"),
        tool(directory, "init", name, &format!("--config {file} --replace"))
    )
}

/// Tells how to open a limiter that has other settings.
fn mismatch(directory: &Path, name: &str, updatable: bool) -> String {
    match updatable {
        true => "to change it for all programs, open it with on_mismatch = update; to use it as it is, on_mismatch = \
                 adopt"
            .to_owned(),
        false => format!(
            "to use it as it is, open it with on_mismatch = adopt; to start it afresh with these settings, open it with \
             replace, or remove it with: {}, and open it again",
            tool(directory, "rm", name, "--force")
        ),
    }
}

fn removal(segment: &Path) -> String {
    let name = segment.file_stem().map_or_else(|| "NAME".to_owned(), |name| name.display().to_string());
    tool(segment.parent().unwrap_or(Path::new(".")), "rm", &name, "--force")
}

/// A word, quoted so that a shell reads it as one word.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "._-/+:@%,=".contains(c) || c == '\\' && cfg!(windows);
    match word.chars().all(plain) && !word.is_empty() {
        true => word.to_owned(),
        // The shells of Windows understand double quotes.
        false if cfg!(windows) => format!("\"{word}\""),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Says which process holds the lock, and what to do. Gives no command for process 0, because a signal to it goes
/// to the caller's own process group. If the caller's own process holds the lock, gives no command either: a stopped
/// thread's program cannot be resumed by a command to itself.
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
            "a process that could not be identified has held the lock while this call waited {waited} ms; look \
             for a stopped process that uses this limiter"
        ),
        // No command that every Windows has can resume a stopped process.
        pid if cfg!(windows) => format!(
            "process {pid} ({program}) holds the lock, and this call has waited {waited} ms; is it stopped? If it is, end it with: taskkill /F /PID \
             {pid}"
        ),
        pid => format!(
            "process {pid} ({program}) holds the lock, and this call has waited {waited} ms; is it stopped? If it is, resume it with: kill -CONT {pid}"
        ),
    }
}

#[cfg(test)]
mod tests;
