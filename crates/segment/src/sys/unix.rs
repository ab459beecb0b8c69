//! Unixes other than Linux: what needs no segment works, and opening one is an error that says why.
//!
//! A promise that is kept on some machines only is none, so nothing here is a weaker imitation. The types of the contract
//! have no values: the compiler knows that nothing which needs one of them ever runs, and there is nothing to get wrong.

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

/// What sharing a limiter rests on, as far as this system has nothing that keeps the promise.
pub const REPLACES_IN_TWO_STEPS: bool = false;
pub const MISSING: Option<&str> = Some(
    "a lock that tells the death of a process whatever happens to its descriptors (Linux: byte locks of an open file \
     description that a mapping keeps alive), sleeping at a word of a file that other processes map (shared futexes), \
     and memory that every forked child finds wiped (MADV_WIPEONFORK)",
);

/// What a function says that nobody gets to call, because no directory can be opened.
fn unsupported<T>() -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Types of the contract without any value.
macro_rules! impossible {
    ($($(#[$traits:meta])? $visibility:vis $name:ident)*) => { $(
        /// Cannot be had on this system; see the contract.
        #[derive(Debug)]
        $(#[$traits])?
        $visibility struct $name(Infallible);
    )* };
}

impossible! {
    #[derive(Clone, Copy, PartialEq, Eq)] pub Account
    #[derive(Clone, Copy, PartialEq, Eq)] pub Access
    #[derive(Clone, Copy)] pub Parker
    pub ForkWords
    pub LivenessLock
    pub LivenessCell
    pub SharedMap
    pub TakenLivenessLock
    pub UnnamedFile
}

/// Nobody learns the time from it, because `discover` fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock;

impl Clock {
    pub fn discover() -> io::Result<Clock> {
        unsupported()
    }

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

pub fn boot_id() -> io::Result<[u64; 2]> {
    unsupported()
}

pub fn process_id() -> u32 {
    std::process::id()
}

pub fn program_name() -> [u8; 16] {
    [0; 16]
}

impl SharedMap {
    pub fn new(_file: &File, _len: usize) -> io::Result<SharedMap> {
        unsupported()
    }

    pub fn base(&self) -> NonNull<u64> {
        match self.0 {}
    }

    pub(crate) fn len(&self) -> usize {
        match self.0 {}
    }

    pub fn forget_pages(&self) {
        match self.0 {}
    }

    pub fn replace(&self, _words: &[(usize, u64)]) -> io::Result<SharedMap> {
        match self.0 {}
    }

    pub fn is_of_deleted_file(&self) -> bool {
        match self.0 {}
    }
}

impl Parker {
    pub fn new(_facts: &FileFacts, map: &SharedMap) -> Parker {
        match map.0 {}
    }

    pub fn wait(self, _word: &AtomicU32, _expected: u32, _timeout: Duration) {
        match self.0 {}
    }

    pub fn wait_in_time(self, _word: &AtomicU32, _expected: u32, _timeout: Duration) {
        match self.0 {}
    }

    pub fn wake(self, _word: &AtomicU32) -> bool {
        match self.0 {}
    }
}

impl ForkWords {
    pub fn new() -> io::Result<ForkWords> {
        unsupported()
    }

    pub fn word(&self, _index: usize) -> &AtomicU64 {
        match self.0 {}
    }

    pub fn liveness_lock(&self) -> &LivenessCell {
        match self.0 {}
    }

    pub fn attendance(&self) -> &LivenessCell {
        match self.0 {}
    }
}

impl LivenessCell {
    pub fn take(&self) -> Option<LivenessLock> {
        match self.0 {}
    }

    pub fn put(&self, _liveness_lock: LivenessLock) -> Option<LivenessLock> {
        match self.0 {}
    }
}

/// Where liveness locks would be, as on every system.
pub const FIRST_LIVENESS_BYTE: i64 = 1 << 62;

impl LivenessLock {
    pub fn hold(_fresh: File, _slot: u32, _probe: &File) -> io::Result<Hold> {
        unsupported()
    }

    pub fn attend(_gate: File, _place: u64) -> io::Result<Option<LivenessLock>> {
        unsupported()
    }
}

/// Giving back is dropping, as everywhere.
impl Drop for LivenessLock {
    fn drop(&mut self) {
        match self.0 {}
    }
}

impl TakenLivenessLock {
    pub fn take(_fresh: File, _slot: u32) -> io::Result<Option<TakenLivenessLock>> {
        unsupported()
    }
}

impl Drop for TakenLivenessLock {
    fn drop(&mut self) {
        match self.0 {}
    }
}

pub fn is_attended(_gate: &File, _places: std::ops::Range<u64>) -> io::Result<bool> {
    unsupported()
}

pub fn try_lock_creation(_gate: &File) -> io::Result<bool> {
    unsupported()
}

pub fn unlock_creation(_gate: &File) {}

pub fn liveness_lock_is_held(_file: &File, _slot: u32) -> io::Result<bool> {
    unsupported()
}

pub fn facts(_file: &File) -> io::Result<FileFacts> {
    unsupported()
}

pub fn facts_at(_dir: &File, _name: &str) -> io::Result<FileFacts> {
    unsupported()
}

pub fn open_directory(_path: &Path) -> io::Result<File> {
    unsupported()
}

pub fn open_file_at(_dir: &File, _name: &str) -> io::Result<File> {
    unsupported()
}

pub fn open_or_create_at(_dir: &File, _name: &str, _shared_with: Option<Account>) -> io::Result<File> {
    unsupported()
}

pub fn remove_at(_dir: &File, _name: &str) -> io::Result<()> {
    unsupported()
}

pub fn is_deleted_in_use(_path: &Path) -> bool {
    false
}

pub fn unlink_at(_dir: &File, _name: &str) -> io::Result<()> {
    unsupported()
}

pub fn unnamed_file(_dir: &File, _shared_with: Option<Account>, _len: u64) -> io::Result<UnnamedFile> {
    unsupported()
}

impl UnnamedFile {
    pub fn file(&self) -> &File {
        match self.0 {}
    }

    pub fn keeps_locks(&self) -> io::Result<bool> {
        match self.0 {}
    }

    pub fn link(self, _dir: &File, _name: &str) -> io::Result<()> {
        match self.0 {}
    }

    pub fn replace(self, _dir: &File, _name: &str) -> io::Result<()> {
        match self.0 {}
    }
}

pub fn file_system(_file: &File) -> io::Result<FileSystem> {
    unsupported()
}

impl Account {
    /// No group can share a limiter here; see the contract.
    pub fn group(_name: &str) -> io::Result<Option<Account>> {
        unsupported()
    }

    /// Its name.
    pub fn name(&self) -> String {
        match self.0 {}
    }
}

impl fmt::Display for Account {
    fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {}
    }
}

impl Access {
    pub fn owner(&self) -> Account {
        match self.0 {}
    }

    pub fn is_mine(&self) -> bool {
        match self.0 {}
    }

    pub fn directory_is_open_to_me(&self, _shared_with: Option<Account>) -> bool {
        match self.0 {}
    }

    pub fn trusted(&self, _chosen: bool) -> Result<Option<Account>, Distrust> {
        match self.0 {}
    }

    pub fn danger(&self, _owner: Account, _shared_with: Option<Account>) -> Option<String> {
        match self.0 {}
    }

    pub fn permission_mismatch(&self, _owner: Account, _shared_with: Option<Account>) -> Option<String> {
        match self.0 {}
    }
}

impl fmt::Display for Access {
    fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {}
    }
}

pub fn former_directories() -> Vec<std::path::PathBuf> {
    Vec::new()
}

pub fn default_directories() -> Vec<DefaultDirectory> {
    Vec::new()
}

pub fn make_directory(_path: &Path) -> io::Result<()> {
    unsupported()
}

pub fn share_directory(_handle: &File, _group: Account) -> io::Result<()> {
    unsupported()
}

pub fn give_access(_file: &File, _owner: Account, _shared_with: Option<Account>) -> io::Result<()> {
    unsupported()
}

pub fn why_closed(_path: &Path) -> Option<Distrust> {
    None
}
