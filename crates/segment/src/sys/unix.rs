//! Unix systems other than Linux: everything that needs no segment works, and opening a segment fails with the
//! reason.
//!
//! A promise that holds only on some machines is worthless, so nothing here is a weaker imitation. The types of the
//! contract have no values. The compiler therefore knows that code which needs one of them never runs, and that
//! code cannot be wrong.

#[cfg(feature = "tool")]
compile_error!(
    "shmlimit: the command-line tool is for Linux and Windows, where limiters can be shared. On this Unix build the \
     library alone: cargo build --package shmlimit (docs/platforms.md)."
);

use std::convert::Infallible;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::{Duration, SystemTime};

use crate::sys::{DefaultDirectory, Distrust, FileFacts, FileSystem, Hold};

/// A file is never replaced here.
pub const REPLACES_IN_TWO_STEPS: bool = false;
/// The mechanisms that shared limiters need and that this system lacks.
pub const MISSING: Option<&str> = Some(
    "a lock that tells the death of a process whatever happens to its descriptors (Linux: byte locks of an open file \
     description that a mapping keeps alive), sleeping at a word of a file that other processes map (shared futexes), \
     and memory that every forked child finds wiped (MADV_WIPEONFORK)",
);

/// The result of a function that cannot be reached, because no directory can be opened.
fn unsupported<T>() -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Types of the contract that have no values, with methods that cannot be called.
macro_rules! impossible {
    ($($(#[$traits:meta])? $name:ident {
        $($visibility:vis fn $method:ident($this:ident: $receiver:ty $(, $arg:ident: $type:ty)*) $(-> $result:ty)?;)*
    })*) => { $(
        /// Not available on this system; see the contract.
        #[derive(Debug)]
        $(#[$traits])?
        pub struct $name(Infallible);

        impl $name {
            $($visibility fn $method($this: $receiver $(, $arg: $type)*) $(-> $result)? {
                match $this.0 {}
            })*
        }
    )* };
}

impossible! {
    #[derive(Clone, Copy, PartialEq, Eq)]
    Account {
        pub fn name(self: &Self) -> String;
    }
    #[derive(Clone, Copy, PartialEq, Eq)]
    Access {
        pub fn owner(self: &Self) -> Account;
        pub fn is_mine(self: &Self) -> bool;
        pub fn directory_is_open_to_me(self: &Self, _shared_with: Option<Account>) -> bool;
        pub fn trusted(self: &Self, _chosen: bool) -> Result<Option<Account>, Distrust>;
        pub fn danger(self: &Self, _owner: Account, _shared_with: Option<Account>) -> Option<String>;
        pub fn permission_mismatch(self: &Self, _owner: Account, _shared_with: Option<Account>) -> Option<String>;
    }
    #[derive(Clone, Copy)]
    Parker {
        pub fn wait(self: Self, _word: &AtomicU32, _expected: u32, _timeout: Duration);
        pub fn wait_in_time(self: Self, _word: &AtomicU32, _expected: u32, _timeout: Duration);
        pub fn wake(self: Self, _word: &AtomicU32) -> bool;
    }
    ForkWords {
        pub fn word(self: &Self, _index: usize) -> &AtomicU64;
        pub fn liveness_lock(self: &Self) -> &LivenessCell;
        pub fn user_lock(self: &Self) -> &LivenessCell;
    }
    LivenessLock {}
    LivenessCell {
        pub fn take(self: &Self) -> Option<LivenessLock>;
        pub fn put(self: &Self, _liveness_lock: LivenessLock) -> Option<LivenessLock>;
    }
    SharedMap {
        pub fn base(self: &Self) -> NonNull<u64>;
        pub(crate) fn len(self: &Self) -> usize;
        pub fn forget_pages(self: &Self);
        pub fn replace(self: &Self, _words: &[(usize, u64)]) -> io::Result<SharedMap>;
        pub fn is_of_deleted_file(self: &Self) -> bool;
    }
    TakenLivenessLock {}
    UnnamedFile {
        pub fn file(self: &Self) -> &File;
        pub fn keeps_locks(self: &Self) -> io::Result<bool>;
        pub fn link(self: Self, _dir: &File, _name: &str) -> io::Result<()>;
        pub fn replace(self: Self, _dir: &File, _name: &str) -> io::Result<()>;
    }
}

/// Functions of the contract that fail, including associated functions of its types.
macro_rules! unsupported {
    ($($(impl $owner:ident)? { $(fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty;)* })*) => {
        $(unsupported!(@ $($owner)? { $(pub fn $name($($arg: $type),*) -> io::Result<$result> { unsupported() })* });)*
    };
    (@ { $($functions:item)* }) => { $($functions)* };
    (@ $owner:ident { $($functions:item)* }) => { impl $owner { $($functions)* } };
}

unsupported! {
    {
        fn boot_id() -> [u64; 2];
        fn has_users(_creation_lock: &File, _numbers: std::ops::Range<u64>) -> bool;
        fn try_lock_creation(_creation_lock: &File) -> bool;
        fn liveness_lock_is_held(_file: &File, _slot: u32) -> bool;
        fn facts(_file: &File) -> FileFacts;
        fn facts_at(_dir: &File, _name: &str) -> FileFacts;
        fn open_directory(_path: &Path) -> File;
        fn open_file_at(_dir: &File, _name: &str) -> File;
        fn open_or_create_at(_dir: &File, _name: &str, _shared_with: Option<Account>) -> File;
        fn remove_at(_dir: &File, _name: &str) -> ();
        fn unlink_at(_dir: &File, _name: &str) -> ();
        fn unnamed_file(_dir: &File, _shared_with: Option<Account>, _len: u64) -> UnnamedFile;
        fn file_system(_file: &File) -> FileSystem;
        fn make_directory(_path: &Path) -> ();
        fn share_directory(_handle: &File, _group: Account) -> ();
        fn give_access(_file: &File, _owner: Account, _shared_with: Option<Account>) -> ();
    }
    impl Account { fn group(_name: &str) -> Option<Account>; }
    impl Clock { fn discover() -> Clock; }
    impl ForkWords { fn new() -> ForkWords; }
    impl LivenessLock {
        fn hold(_fresh: File, _slot: u32, _probe: &File) -> Hold;
        fn register_user(_creation_lock: File, _number: u64) -> Option<LivenessLock>;
    }
    impl SharedMap { fn new(_file: &File, _len: usize) -> SharedMap; }
    impl TakenLivenessLock { fn take(_fresh: File, _slot: u32) -> Option<TakenLivenessLock>; }
}

/// The first byte of the liveness locks, the same number as on every system.
pub const FIRST_LIVENESS_BYTE: i64 = 1 << 62;

/// The contract promises that dropping releases the lock.
impl Drop for LivenessLock {
    fn drop(&mut self) {
        match self.0 {}
    }
}

impl Drop for TakenLivenessLock {
    fn drop(&mut self) {
        match self.0 {}
    }
}

impl Parker {
    pub fn new(_facts: &FileFacts, map: &SharedMap) -> Parker {
        match map.0 {}
    }
}

impl fmt::Display for Account {
    fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {}
    }
}

impl fmt::Display for Access {
    fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {}
    }
}

/// A clock that no process can discover, because `discover` fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock;

impl Clock {
    pub fn now(&self) -> u64 {
        self.correct(Clock::read())
    }

    pub fn read() -> u64 {
        0
    }

    pub fn correct(&self, read: u64) -> u64 {
        read
    }

    pub fn now_coarse(&self) -> u64 {
        self.now()
    }

    pub fn to_words(self) -> [u64; 2] {
        [0; 2]
    }

    pub fn from_words(_words: [u64; 2]) -> Clock {
        Clock
    }
}

pub fn wall_now() -> u64 {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

pub fn program_name() -> [u8; 16] {
    [0; 16]
}

pub fn unlock_creation(_creation_lock: &File) {}

pub fn is_deleted_in_use(_path: &Path) -> bool {
    false
}

pub fn former_directories() -> Vec<std::path::PathBuf> {
    Vec::new()
}

pub fn default_directories() -> Vec<DefaultDirectory> {
    Vec::new()
}

pub fn why_closed(_path: &Path) -> Option<Distrust> {
    None
}
