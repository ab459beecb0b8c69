//! The pulse: a byte lock of an open file, which the system gives back when its handle is closed, and all handles of a
//! process are closed when it ends, however it ends.
//!
//! The bytes lie far past the end of the file: a lock keeps others from reading and writing its range, though never from
//! a mapping, and there is nothing to read or write out there. Locks belong to the handle, and no program closes handles
//! it did not open, so holding the file is enough. Nobody can ask who holds a lock; one must try to have it. Whoever
//! only looks therefore asks for a *shared* lock: those who look at the same time do not take each other for the owner.

use std::fs::File;
use std::io;
use std::sync::Mutex;

use windows_sys::Win32::Foundation::{ERROR_IO_PENDING, ERROR_LOCK_VIOLATION};
use windows_sys::Win32::Storage::FileSystem::{
    LOCK_FILE_FLAGS, LOCKFILE_EXCLUSIVE_LOCK, LOCKFILE_FAIL_IMMEDIATELY, LockFileEx, UnlockFileEx,
};
use windows_sys::Win32::System::IO::OVERLAPPED;

use super::native::{check, raw};

/// Far past the end of any segment, where no other lock can meet ours, and still within a signed 64-bit offset.
pub const FIRST_PULSE: i64 = 1 << 62;

/// The lock of a slot for as long as this process lives; see the contract.
#[derive(Debug)]
pub(crate) struct Pulse(#[expect(dead_code, reason = "its drop gives the lock back")] TakenPulse);

impl Pulse {
    pub(crate) fn hold(fresh: File, slot: u32) -> io::Result<Option<Pulse>> {
        Ok(TakenPulse::take(fresh, slot)?.map(Pulse))
    }
}

/// A place for this process's pulse.
#[derive(Debug, Default)]
pub(crate) struct PulseCell(Mutex<Option<Pulse>>);

impl PulseCell {
    /// Returns what was in it before.
    pub(crate) fn put(&self, pulse: Pulse) -> Option<Pulse> {
        self.exchange(Some(pulse))
    }

    fn exchange(&self, pulse: Option<Pulse>) -> Option<Pulse> {
        let mut cell = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        std::mem::replace(&mut *cell, pulse)
    }
}

/// The lock of a slot whose owner seems dead, held for a short time; see the contract.
#[derive(Debug)]
pub(crate) struct TakenPulse {
    file: File,
    slot: u32,
}

impl TakenPulse {
    pub(crate) fn take(fresh: File, slot: u32) -> io::Result<Option<TakenPulse>> {
        Ok(try_lock(&fresh, slot, LOCKFILE_EXCLUSIVE_LOCK)?.then_some(TakenPulse { file: fresh, slot }))
    }
}

impl Drop for TakenPulse {
    fn drop(&mut self) {
        // Closing is enough in the end, but the system does not say when that end is.
        unlock(&self.file, self.slot);
    }
}

pub(crate) fn pulse_is_held(file: &File, slot: u32) -> io::Result<bool> {
    let free = try_lock(file, slot, 0)?;
    if free {
        unlock(file, slot);
    }
    Ok(!free)
}

fn try_lock(file: &File, slot: u32, kind: LOCK_FILE_FLAGS) -> io::Result<bool> {
    let mut range = range(slot);
    let flags = kind | LOCKFILE_FAIL_IMMEDIATELY;
    // SAFETY: the handle is open, not overlapped, and `range` is alive for the whole call.
    match check(unsafe { LockFileEx(raw(file), flags, 0, 1, 0, &mut range) }) {
        Ok(()) => Ok(true),
        Err(error) if error.raw_os_error() == Some(ERROR_LOCK_VIOLATION as i32) => Ok(false),
        // Some file systems say so of a lock that somebody else has.
        Err(error) if error.raw_os_error() == Some(ERROR_IO_PENDING as i32) => Ok(false),
        Err(error) => Err(error),
    }
}

fn unlock(file: &File, slot: u32) {
    let mut range = range(slot);
    // SAFETY: as in `try_lock`. It can only fail if there is no such lock.
    unsafe { UnlockFileEx(raw(file), 0, 1, 0, &mut range) };
}

fn range(slot: u32) -> OVERLAPPED {
    let start = FIRST_PULSE + i64::from(slot);
    let mut range = OVERLAPPED::default();
    range.Anonymous.Anonymous.Offset = start as u32;
    range.Anonymous.Anonymous.OffsetHigh = (start >> 32) as u32;
    range
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> (tempfile::TempPath, impl Fn() -> File) {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let open = path.to_path_buf();
        (path, move || File::options().read(true).write(true).open(&open).unwrap())
    }

    #[test]
    fn one_holds_a_slot_and_others_see_it() {
        let (_path, open) = file();
        let pulse = Pulse::hold(open(), 7).unwrap().unwrap();
        assert!(Pulse::hold(open(), 7).unwrap().is_none(), "held already");
        assert!(TakenPulse::take(open(), 7).unwrap().is_none(), "its owner lives");
        assert!(pulse_is_held(&open(), 7).unwrap() && !pulse_is_held(&open(), 8).unwrap());
        drop(pulse);
        assert!(!pulse_is_held(&open(), 7).unwrap());
        assert!(TakenPulse::take(open(), 7).unwrap().is_some());
    }

    #[test]
    fn those_who_look_do_not_take_each_other_for_the_owner() {
        let (_path, open) = file();
        let (one, other) = (open(), open());
        assert!(try_lock(&one, 3, 0).unwrap(), "one is looking");
        assert!(!pulse_is_held(&other, 3).unwrap());
        unlock(&one, 3);
    }

    #[test]
    fn a_lock_of_the_whole_content_is_no_pulse() {
        let (_path, open) = file();
        let reader = open();
        fs4::FileExt::try_lock(&open()).unwrap();
        assert!(!pulse_is_held(&reader, 0).unwrap());
    }
}
