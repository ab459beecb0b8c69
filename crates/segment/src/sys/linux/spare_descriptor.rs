//! A spare descriptor for a process that gives up its privileges after opening a limiter. Such a process may not be
//! allowed to open the file again, and without the spare it could not test the liveness locks of other processes.
//!
//! Only a process that can change its user keeps one. A daemon may close descriptors it does not know, and the
//! number may then belong to another file. So the description is marked by its file offset, which no other code
//! uses. The number is trusted only while file and offset are unchanged before and after each use.
//!
//! The number is stored in words that a fork wipes. A child has a copy of the descriptor and must not use it:
//! parent and child would share one description, and a lock that one of them takes would not exclude the other.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{IntoRawFd, RawFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use nix::unistd::{Whence, getresgid, getresuid, lseek};

use super::byte_lock::{byte_lock, liveness_byte, number_for, try_lock};
use super::files::{facts, facts_from};
use super::memory::ForkWords;
use crate::sys::FileFacts;

/// The descriptor's number plus one; 0 means none.
const NUMBER: usize = 0;
const DEVICE: usize = 1;
const INODE: usize = 2;
/// The offset that marks the description.
const OFFSET: usize = 3;
/// Whether a thread holds a lock through the descriptor.
const TAKEN: usize = 4;

/// Offsets below this are possible on every file system.
const OFFSETS: i64 = 1 << 40;

/// A spare descriptor, or none; see the contract.
#[derive(Debug, Clone, Default)]
pub struct Spare(Arc<Kept>);

#[derive(Debug, Default)]
struct Kept(OnceLock<ForkWords>);

impl Spare {
    pub fn keep(&self, file: File) {
        if may_change_user() {
            // An error is harmless: the spare is not needed as long as the file can be opened.
            let _ = self.0.keep(file);
        }
    }

    pub fn forget(&self) {
        let Some(taken) = self.0.0.get().map(|words| words.word(TAKEN)) else { return };
        // A thread that holds a lock through the spare still needs it.
        if taken.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            self.0.close();
            taken.store(0, Ordering::Release);
        }
    }

    pub fn links(&self) -> Option<u64> {
        let (number, facts) = self.0.ours()?;
        (self.0.ours()?.0 == number).then_some(facts.links)
    }

    pub fn liveness_lock_is_held(&self, slot: u32) -> Option<bool> {
        let (number, _) = self.0.ours()?;
        let mut lock = byte_lock(libc::F_WRLCK, liveness_byte(slot));
        control(number, libc::F_OFD_GETLK, &mut lock).ok()?;
        self.0.ours()?;
        Some(libc::c_int::from(lock.l_type) != libc::F_UNLCK)
    }

    /// Only one thread at a time may take a lock, because locks of one description do not exclude each other.
    pub fn take(&self, slot: u32) -> Option<TakenLivenessLock> {
        let taken = self.0.0.get()?.word(TAKEN);
        taken.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).ok()?;
        let locked = self.0.ours().is_some_and(|(number, _)| {
            control(number, libc::F_OFD_SETLK, &mut byte_lock(libc::F_WRLCK, liveness_byte(slot))).is_ok()
        });
        if locked && self.0.ours().is_some() {
            return Some(TakenLivenessLock { file: Through::Spare(self.clone()), slot });
        }
        if locked {
            self.give_back(slot);
        } else {
            taken.store(0, Ordering::Release);
        }
        None
    }

    /// Releases the lock that [`take`](Self::take) took.
    fn give_back(&self, slot: u32) {
        let Some(words) = self.0.0.get() else { return };
        if let Some((number, _)) = self.0.ours() {
            let _ = control(number, libc::F_OFD_SETLK, &mut byte_lock(libc::F_UNLCK, liveness_byte(slot)));
        }
        words.word(TAKEN).store(0, Ordering::Release);
    }
}

/// The lock of a slot whose owner seems to be dead, held through a descriptor for a short time; see the contract.
#[derive(Debug)]
pub struct TakenLivenessLock {
    file: Through,
    slot: u32,
}

/// The description that holds the lock.
#[derive(Debug)]
enum Through {
    Own(File),
    Spare(Spare),
}

impl TakenLivenessLock {
    pub fn take(fresh: File, slot: u32) -> io::Result<Option<TakenLivenessLock>> {
        Ok(try_lock(&fresh, liveness_byte(slot))?
            .then_some(TakenLivenessLock { file: Through::Own(fresh), slot }))
    }
}

impl Drop for TakenLivenessLock {
    fn drop(&mut self) {
        // Closing is not enough: a child that was forked meanwhile has the same description and would keep the
        // lock.
        match &self.file {
            Through::Own(file) => {
                let _ =
                    fcntl(file, FcntlArg::F_OFD_SETLK(&byte_lock(libc::F_UNLCK, liveness_byte(self.slot))));
            }
            Through::Spare(spare) => spare.give_back(self.slot),
        }
    }
}

impl Kept {
    fn keep(&self, file: File) -> io::Result<()> {
        let words = match self.0.get() {
            Some(words) => words,
            None => {
                let new = ForkWords::new()?;
                self.0.get_or_init(|| new)
            }
        };
        let facts = facts(&file)?;
        let offset = number_for(&file).cast_signed() & (OFFSETS - 1);
        lseek(&file, offset, Whence::SeekSet)?;
        self.close();
        for (word, value) in [(DEVICE, facts.dev), (INODE, facts.ino), (OFFSET, offset.cast_unsigned())] {
            words.word(word).store(value, Ordering::Relaxed);
        }
        words.word(NUMBER).store(file.into_raw_fd() as u64 + 1, Ordering::Release);
        Ok(())
    }

    /// The descriptor's number and its file, if the number still refers to the description that was kept.
    fn ours(&self) -> Option<(RawFd, FileFacts)> {
        let word = |index| Some(self.0.get()?.word(index).load(Ordering::Acquire));
        let number = RawFd::try_from(word(NUMBER)?.checked_sub(1)?).ok()?;
        let mut stat = MaybeUninit::<libc::stat>::uninit();
        // SAFETY: the kernel has filled the struct if the call succeeds, whatever the number now refers to.
        let facts = unsafe {
            if libc::fstat(number, stat.as_mut_ptr()) != 0 {
                return None;
            }
            facts_from(&stat.assume_init())
        };
        // SAFETY: reads the offset and changes nothing, whatever the number now refers to.
        let offset = unsafe { libc::lseek(number, 0, libc::SEEK_CUR) };
        let same = (facts.dev, facts.ino) == (word(DEVICE)?, word(INODE)?);
        (same && offset.cast_unsigned() == word(OFFSET)?).then_some((number, facts))
    }

    fn close(&self) {
        if let (Some((number, _)), Some(words)) = (self.ours(), self.0.get()) {
            words.word(NUMBER).store(0, Ordering::Release);
            // SAFETY: the description is the one that `keep` was given, so this value owns the number and may close
            // it.
            let _ = unsafe { libc::close(number) };
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.close();
    }
}

/// Performs a lock operation on a number that may no longer be a descriptor of ours; see [`Kept::ours`].
fn control(number: RawFd, operation: libc::c_int, lock: &mut libc::flock) -> io::Result<()> {
    // SAFETY: the struct is alive for the whole call; a number that is no descriptor causes an error.
    match unsafe { libc::fcntl(number, operation, lock) } {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether this process can change its user or groups: root and set-user-id programs can.
fn may_change_user() -> bool {
    let (Ok(user), Ok(group)) = (getresuid(), getresgid()) else { return true };
    user.effective.is_root()
        || user.real != user.effective
        || user.saved != user.effective
        || group.real != group.effective
        || group.saved != group.effective
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::linux::testing::in_forked_child;
    use crate::sys::liveness_lock_is_held;
    use std::os::fd::AsRawFd;

    fn file() -> (tempfile::NamedTempFile, impl Fn() -> File) {
        let named = tempfile::NamedTempFile::new().unwrap();
        named.as_file().set_len(4096).unwrap();
        let path = named.path().to_owned();
        (named, move || File::options().read(true).write(true).open(&path).unwrap())
    }

    fn number(spare: &Spare) -> RawFd {
        spare.0.ours().unwrap().0
    }

    #[test]
    fn spare_descriptor_sees_locks_and_takes_free_ones() {
        let (_named, open) = file();
        let spare = Spare::default();
        assert_eq!((spare.liveness_lock_is_held(3), spare.links()), (None, None));
        spare.0.keep(open()).unwrap();
        let held = TakenLivenessLock::take(open(), 3).unwrap().unwrap();
        assert_eq!(
            (spare.liveness_lock_is_held(3), spare.liveness_lock_is_held(4), spare.links()),
            (Some(true), Some(false), Some(1))
        );
        assert!(spare.take(3).is_none());
        drop(held);
        let taken = spare.take(3).unwrap();
        assert!(liveness_lock_is_held(&open(), 3).unwrap());
        assert!(spare.take(3).is_none() && spare.take(4).is_none(), "one thread at a time");
        drop(taken);
        assert!(!liveness_lock_is_held(&open(), 3).unwrap() && spare.take(4).is_some());
    }

    #[test]
    fn spare_descriptor_is_not_used_when_its_number_is_reused() {
        let (_named, open) = file();
        let spare = Spare::default();
        spare.0.keep(open()).unwrap();
        let number = number(&spare);
        let other = open();
        // SAFETY: both numbers are open, and the first belongs to the spare, which is built to detect such a
        // change.
        assert_eq!(unsafe { libc::dup2(other.as_raw_fd(), number) }, number);
        assert_eq!(
            (spare.liveness_lock_is_held(0), spare.links()),
            (None, None),
            "the same file, another description"
        );
        assert!(spare.take(0).is_none());
        drop(spare);
        // SAFETY: closes the copy made above: the spare must not have closed it.
        assert_eq!(unsafe { libc::close(number) }, 0);
    }

    #[test]
    fn a_forked_child_does_not_use_the_spare_descriptor_of_its_parent() {
        let (_named, open) = file();
        let spare = Spare::default();
        spare.0.keep(open()).unwrap();
        assert!(spare.liveness_lock_is_held(0).is_some());
        assert_eq!(
            in_forked_child(|| i32::from(
                spare.liveness_lock_is_held(0).is_some() || spare.take(0).is_some()
            )),
            0
        );
    }
}
