//! The pulse: a byte lock of an open file, which the system gives back when its handle is closed, and all handles of a
//! process are closed when it ends, however it ends.
//!
//! The bytes lie far past the end of the file: a lock keeps others from reading and writing its range, though never from
//! a mapping, and there is nothing to read or write out there. Locks belong to the handle, and no program closes handles
//! it did not open, so holding the file is enough. Nobody can ask who holds a lock; one must try to have it. Whoever
//! only looks therefore asks for a *shared* lock: those who look at the same time do not take each other for the owner.
//!
//! A program that locks a whole file (a backup, say) locks these bytes too, and everybody would seem to live. So there is
//! one byte that no pulse uses, the witness: where it cannot be had either, it is the file that is locked, and that is an
//! error. For the time being nobody can join then, and nobody counts as dead.

use std::fs::File;
use std::io;
use std::sync::Mutex;

use windows_sys::Win32::Foundation::ERROR_LOCK_VIOLATION;

use super::byte_lock::{Kind, try_lock_byte, unlock_byte};
use super::native::patiently;

/// Far past the end of any segment, where no other lock can meet ours, and still within a signed 64-bit offset.
pub const FIRST_PULSE: i64 = 1 << 62;

/// Before the first pulse.
const WITNESS: u64 = FIRST_PULSE.cast_unsigned() - 1;

/// The lock of a slot for as long as this process lives; see the contract.
#[derive(Debug)]
pub(crate) struct Pulse(#[expect(dead_code, reason = "its drop gives the lock back")] TakenPulse);

impl Pulse {
    pub(crate) fn hold(fresh: File, slot: u32) -> io::Result<Option<Pulse>> {
        let taken = patiently(|| try_lock(&fresh, pulse(slot), Kind::Exclusive))?;
        Ok(taken.then_some(Pulse(TakenPulse { file: fresh, slot })))
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
        Ok(try_lock(&fresh, pulse(slot), Kind::Exclusive)?.then_some(TakenPulse { file: fresh, slot }))
    }
}

impl Drop for TakenPulse {
    fn drop(&mut self) {
        // Closing is enough in the end, but the system does not say when that end is.
        unlock(&self.file, pulse(self.slot));
    }
}

pub(crate) fn pulse_is_held(file: &File, slot: u32) -> io::Result<bool> {
    let free = try_lock(file, pulse(slot), Kind::Shared)?;
    if free {
        unlock(file, pulse(slot));
    }
    Ok(!free)
}

const fn pulse(slot: u32) -> u64 {
    FIRST_PULSE.cast_unsigned() + slot as u64
}

/// Whether it could be had; an error if somebody has the whole file.
fn try_lock(file: &File, byte: u64, kind: Kind) -> io::Result<bool> {
    if try_lock_byte(file, byte, kind)? {
        return Ok(true);
    }
    if !try_lock_byte(file, WITNESS, Kind::Shared)? {
        return Err(io::Error::from_raw_os_error(ERROR_LOCK_VIOLATION as i32));
    }
    unlock(file, WITNESS);
    Ok(false)
}

/// Without a word: where there is no such lock, nothing is to be given back.
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
        assert!(try_lock(&one, pulse(3), Kind::Shared).unwrap(), "one is looking");
        assert!(!pulse_is_held(&other, 3).unwrap());
        unlock(&one, pulse(3));
    }

    #[test]
    fn those_who_find_a_pulse_held_do_not_take_each_other_for_one_who_has_the_whole_file() {
        let (_path, open) = file();
        let (one, other) = (open(), open());
        let _pulse = Pulse::hold(open(), 3).unwrap().unwrap();
        assert!(try_lock_byte(&one, WITNESS, Kind::Shared).unwrap(), "one is looking");
        assert!(pulse_is_held(&other, 3).unwrap());
    }

    #[test]
    fn a_lock_of_the_whole_file_is_no_pulse_and_is_told() {
        let (_path, open) = file();
        let mine = Pulse::hold(open(), 5).unwrap().unwrap();
        drop(mine);
        let program = open();
        fs4::FileExt::try_lock(&program).unwrap();
        let kind = |error: io::Error| error.kind();
        assert!(pulse_is_held(&open(), 0).is_err() && TakenPulse::take(open(), 0).is_err());
        assert_eq!(Pulse::hold(open(), 0).map_err(kind).unwrap_err(), io::ErrorKind::ResourceBusy);
        drop(program);
        assert!(!pulse_is_held(&open(), 0).unwrap());
    }

    #[test]
    fn pulses_keep_nobody_from_the_content() {
        use std::io::{Read, Write};
        let (_path, open) = file();
        let _pulses: Vec<_> = (0..512).map(|slot| Pulse::hold(open(), slot).unwrap().unwrap()).collect();
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
