//! The liveness lock: a byte lock of an open file. The system releases it when its handle is closed, and it closes
//! all handles of a process when the process ends, for whatever reason.
//!
//! The bytes lie far past the end of the file. A lock prevents other handles from reading and writing its range
//! (though never through a mapping), and that range contains no data. Locks belong to the handle, and no program
//! closes handles it did not open, so keeping the file open is enough. The system does not report the holder of a
//! lock; a process must try to take it. A process that only checks a lock therefore tries a *shared* lock, so two
//! processes that check at the same time do not mistake each other for the owner.
//!
//! A program that locks a whole file (a backup, for example) also locks these bytes, and every slot would seem to
//! be alive. So one byte, the whole-file probe, is not used by any liveness lock. If it cannot be locked either,
//! another program has locked the whole file, and that is an error. Until that program releases it, no process can
//! join and no process counts as dead.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Mutex;
use std::time::Duration;

use windows_sys::Win32::Foundation::ERROR_LOCK_VIOLATION;

use super::byte_lock::{Kind, try_lock_byte, try_lock_bytes, unlock_byte, unlock_bytes};
use super::native::patiently;
use crate::sys::Hold;

/// Far past the end of any segment, where no other lock can conflict with ours, and still within a signed 64-bit
/// offset.
pub const FIRST_LIVENESS_BYTE: i64 = 1 << 62;

/// The byte before the first liveness lock, which shows whether another program has locked the whole file.
const WHOLE_FILE_PROBE: u64 = FIRST_LIVENESS_BYTE.cast_unsigned() - 1;

/// 2^60 bytes of the creation lock record which limiters are open, the same bytes as on Linux; see
/// [`LivenessLock::register_user`].
const FIRST_USER_BYTE: u64 = 1 << 60;

/// How often registration is tried, one millisecond apart. A process that checks for registered users holds the
/// lock exclusively for a shorter time.
const REGISTER_TRIES: u32 = 50;

/// The byte that a process locks to hold the creation lock. Locking the whole file would conflict with the locks of
/// registered users.
const CREATION_BYTE: u64 = 0;

/// The lock of a slot for as long as this process lives; see the contract.
#[derive(Debug)]
pub struct LivenessLock(#[expect(dead_code, reason = "its drop gives the lock back")] TakenLivenessLock);

impl LivenessLock {
    /// The handle is kept, so the lock is not lost by closing it. But other handles must see the lock.
    pub fn hold(fresh: File, slot: u32, probe: &File) -> io::Result<Hold> {
        if !patiently(|| try_lock(&fresh, liveness_lock(slot), Kind::Exclusive))? {
            return Ok(Hold::Taken);
        }
        let held = LivenessLock(TakenLivenessLock { file: fresh, byte: liveness_lock(slot) });
        Ok(if liveness_lock_is_held(probe, slot)? { Hold::Held(held) } else { Hold::Lost })
    }

    /// A mapped file cannot be deleted by hand. But it can be moved away, and it can be replaced and removed while
    /// this process is idle, so users are registered here too. `None` while another program has locked the whole
    /// file of the creation lock.
    pub fn register_user(creation_lock: File, number: u64) -> io::Result<Option<LivenessLock>> {
        let byte = user_byte(number);
        for _ in 0..REGISTER_TRIES {
            if try_lock_byte(&creation_lock, byte, Kind::Shared)? {
                return Ok(Some(LivenessLock(TakenLivenessLock { file: creation_lock, byte })));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(None)
    }
}

/// A cell for this process's liveness lock.
#[derive(Debug, Default)]
pub struct LivenessCell(Mutex<Option<LivenessLock>>);

impl LivenessCell {
    /// Stores the lock and returns the previous content.
    pub fn put(&self, liveness_lock: LivenessLock) -> Option<LivenessLock> {
        self.exchange(Some(liveness_lock))
    }

    /// Empties the cell and returns its content.
    pub fn take(&self) -> Option<LivenessLock> {
        self.exchange(None)
    }

    fn exchange(&self, liveness_lock: Option<LivenessLock>) -> Option<LivenessLock> {
        let mut cell = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        std::mem::replace(&mut *cell, liveness_lock)
    }
}

/// The lock of a slot whose owner seems to be dead, held for a short time; see the contract.
#[derive(Debug)]
pub struct TakenLivenessLock {
    file: File,
    byte: u64,
}

impl TakenLivenessLock {
    pub fn take(fresh: File, slot: u32) -> io::Result<Option<TakenLivenessLock>> {
        let byte = liveness_lock(slot);
        Ok(try_lock(&fresh, byte, Kind::Exclusive)?.then_some(TakenLivenessLock { file: fresh, byte }))
    }
}

impl Drop for TakenLivenessLock {
    fn drop(&mut self) {
        // Closing the handle would release the lock too, but the system does not guarantee when.
        unlock(&self.file, self.byte);
    }
}

pub fn liveness_lock_is_held(file: &File, slot: u32) -> io::Result<bool> {
    let free = try_lock(file, liveness_lock(slot), Kind::Shared)?;
    if free {
        unlock(file, liveness_lock(slot));
    }
    Ok(!free)
}

/// Registered users hold shared locks, and only an exclusive lock conflicts with them. The exclusive lock is
/// released at once; a process that registers in between tries again.
pub fn has_users(creation_lock: &File, numbers: Range<u64>) -> io::Result<bool> {
    if numbers.is_empty() {
        return Ok(false);
    }
    let bytes = user_byte(numbers.start)..user_byte(numbers.start) + (numbers.end - numbers.start);
    let free = try_lock_bytes(creation_lock, bytes.clone(), Kind::Exclusive)?;
    if free {
        unlock_bytes(creation_lock, bytes)?;
    }
    Ok(!free)
}

pub fn try_lock_creation(creation_lock: &File) -> io::Result<bool> {
    try_lock_byte(creation_lock, CREATION_BYTE, Kind::Exclusive)
}

pub fn unlock_creation(creation_lock: &File) {
    unlock(creation_lock, CREATION_BYTE);
}

const fn user_byte(number: u64) -> u64 {
    FIRST_USER_BYTE | number & (FIRST_USER_BYTE - 1)
}

const fn liveness_lock(slot: u32) -> u64 {
    FIRST_LIVENESS_BYTE.cast_unsigned() + slot as u64
}

/// Tries to lock a byte and returns whether it is locked now. Fails if another program has locked the whole file.
fn try_lock(file: &File, byte: u64, kind: Kind) -> io::Result<bool> {
    if try_lock_byte(file, byte, kind)? {
        return Ok(true);
    }
    if !try_lock_byte(file, WHOLE_FILE_PROBE, Kind::Shared)? {
        return Err(io::Error::from_raw_os_error(ERROR_LOCK_VIOLATION as i32));
    }
    unlock(file, WHOLE_FILE_PROBE);
    Ok(false)
}

/// Ignores errors: if there is no such lock, there is nothing to release.
fn unlock(file: &File, byte: u64) {
    let _ = unlock_byte(file, byte);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> (tempfile::TempPath, impl Fn() -> File) {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let open = path.to_path_buf();
        (path, move || File::options().read(true).write(true).open(&open).unwrap())
    }

    fn hold(fresh: File, slot: u32, probe: &File) -> Option<LivenessLock> {
        match LivenessLock::hold(fresh, slot, probe).unwrap() {
            Hold::Held(liveness_lock) => Some(liveness_lock),
            Hold::Taken => None,
            Hold::Lost => panic!("this file system loses locks"),
        }
    }

    #[test]
    fn held_slot_is_visible_to_other_handles() {
        let (_path, open) = file();
        let liveness_lock = hold(open(), 7, &open()).unwrap();
        assert!(hold(open(), 7, &open()).is_none(), "held already");
        assert!(TakenLivenessLock::take(open(), 7).unwrap().is_none(), "its owner lives");
        assert!(liveness_lock_is_held(&open(), 7).unwrap() && !liveness_lock_is_held(&open(), 8).unwrap());
        drop(liveness_lock);
        assert!(!liveness_lock_is_held(&open(), 7).unwrap());
        assert!(TakenLivenessLock::take(open(), 7).unwrap().is_some());
    }

    #[test]
    fn two_checks_at_once_do_not_mistake_each_other_for_the_owner() {
        let (_path, open) = file();
        let (one, other) = (open(), open());
        assert!(try_lock(&one, liveness_lock(3), Kind::Shared).unwrap(), "one is looking");
        assert!(!liveness_lock_is_held(&other, 3).unwrap());
        unlock(&one, liveness_lock(3));
    }

    #[test]
    fn two_checks_of_a_held_lock_do_not_report_a_whole_file_lock() {
        let (_path, open) = file();
        let (one, other) = (open(), open());
        let _liveness_lock = hold(open(), 3, &open()).unwrap();
        assert!(try_lock_byte(&one, WHOLE_FILE_PROBE, Kind::Shared).unwrap(), "one is looking");
        assert!(liveness_lock_is_held(&other, 3).unwrap());
    }

    #[test]
    fn whole_file_lock_is_an_error_and_not_a_liveness_lock() {
        let (_path, open) = file();
        let mine = hold(open(), 5, &open()).unwrap();
        drop(mine);
        let program = open();
        fs4::FileExt::try_lock(&program).unwrap();
        let kind = |error: io::Error| error.kind();
        assert!(liveness_lock_is_held(&open(), 0).is_err() && TakenLivenessLock::take(open(), 0).is_err());
        assert_eq!(
            LivenessLock::hold(open(), 0, &open()).map_err(kind).unwrap_err(),
            io::ErrorKind::ResourceBusy
        );
        drop(program);
        assert!(!liveness_lock_is_held(&open(), 0).unwrap());
    }

    #[test]
    fn user_byte_is_in_use_until_the_last_registered_user_leaves() {
        let (_path, open) = file();
        let register_user = |number| LivenessLock::register_user(open(), number).unwrap().unwrap();
        let last = (1 << 60) - 1;
        let creation_lock = open();
        assert!(try_lock_creation(&creation_lock).unwrap());
        let (one, other, third) = (register_user(7), register_user(7), register_user(last));
        assert!(has_users(&creation_lock, 7..8).unwrap() && !has_users(&creation_lock, 8..9).unwrap());
        assert!(
            has_users(&creation_lock, 0..last + 1).unwrap() && !has_users(&creation_lock, 8..last).unwrap()
        );
        assert!(!try_lock_creation(&open()).unwrap(), "one holds the creation lock");
        unlock_creation(&creation_lock);
        assert!(try_lock_creation(&open()).unwrap(), "registered users keep nobody from it");
        assert!(hold(open(), 7, &open()).is_some(), "a registered user takes no slot");
        drop(one);
        assert!(has_users(&creation_lock, 7..8).unwrap());
        drop((other, third));
        assert!(!has_users(&creation_lock, 0..last + 1).unwrap());
    }

    #[test]
    fn liveness_locks_do_not_block_reads_and_writes_of_the_content() {
        use std::io::{Read, Write};
        let (_path, open) = file();
        let _liveness_locks: Vec<_> = (0..512).map(|slot| hold(open(), slot, &open()).unwrap()).collect();
        open().write_all(&[7; 8192]).unwrap();
        let map = super::super::memory::SharedMap::new(&open(), 8192).unwrap();
        // SAFETY: the address is a live, aligned word used only atomically.
        let word = unsafe { std::sync::atomic::AtomicU64::from_ptr(map.base().as_ptr()) };
        assert_eq!(word.swap(9, std::sync::atomic::Ordering::Relaxed), 0x0707_0707_0707_0707);
        let mut bytes = [0; 8];
        open().read_exact(&mut bytes).unwrap();
        assert_eq!(u64::from_le_bytes(bytes), 9, "plain reads see what was written through the mapping");
    }
}
