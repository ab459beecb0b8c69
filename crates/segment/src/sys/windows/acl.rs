//! Security descriptors: reads which accounts may do what with a file, and writes descriptors.

use std::fmt;
use std::fs::File;
use std::io;
use std::ptr::NonNull;

use windows_sys::Win32::Foundation::{
    ERROR_INSUFFICIENT_BUFFER, GENERIC_ALL, GENERIC_READ, GENERIC_WRITE, LocalFree,
};
use windows_sys::Win32::Security::Authorization::{
    ConvertStringSecurityDescriptorToSecurityDescriptorW, SDDL_REVISION_1,
};
use windows_sys::Win32::Security::{
    ACE_HEADER, ACL, DACL_SECURITY_INFORMATION, GetAce, GetKernelObjectSecurity,
    GetSecurityDescriptorControl, GetSecurityDescriptorDacl, GetSecurityDescriptorOwner, INHERIT_ONLY_ACE,
    OWNER_SECURITY_INFORMATION, PROTECTED_DACL_SECURITY_INFORMATION, PSECURITY_DESCRIPTOR, SE_DACL_PROTECTED,
    SECURITY_ATTRIBUTES, SetKernelObjectSecurity,
};
use windows_sys::Win32::Storage::FileSystem::{
    DELETE, FILE_APPEND_DATA, FILE_DELETE_CHILD, FILE_READ_DATA, FILE_WRITE_ATTRIBUTES, FILE_WRITE_DATA,
    WRITE_DAC, WRITE_OWNER,
};

use super::native::{check, raw, wide};
use super::sid::Account;

/// Rights with which an account can change a file, put files into a directory, or turn an empty directory into a
/// link to another (for which the right to change its attributes is enough), or with which it can give itself such
/// a right.
const CHANGES: u32 = FILE_WRITE_DATA
    | FILE_APPEND_DATA
    | FILE_DELETE_CHILD
    | FILE_WRITE_ATTRIBUTES
    | DELETE
    | WRITE_DAC
    | WRITE_OWNER
    | GENERIC_WRITE
    | GENERIC_ALL;
const READS: u32 = FILE_READ_DATA | GENERIC_READ | GENERIC_ALL;

/// Kinds of entries that grant rights, with the identifier directly after the mask: `ACCESS_ALLOWED_ACE_TYPE`, and
/// `ACCESS_ALLOWED_CALLBACK_ACE_TYPE`, whose condition is assumed to hold.
const ALLOWED: u8 = 0;
const ALLOWED_IF: u8 = 9;
/// Kinds that deny rights (`…DENIED…`) or only keep a record (`…AUDIT…`, `…ALARM…`). Ignoring them errs on the safe
/// side.
const OTHERS: [u8; 11] = [1, 2, 3, 6, 7, 8, 10, 12, 13, 14, 15];

/// The owner of a file, and which accounts may do what with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rights {
    pub(super) owner: Account,
    /// Whether the list inherits nothing from the directory above, so it was written explicitly.
    pub(super) on_purpose: bool,
    pub(super) given: Vec<Right>,
}

/// The rights of one account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Right {
    pub(super) who: Account,
    pub(super) reads: bool,
    pub(super) changes: bool,
}

impl Rights {
    pub(super) fn of(file: &File) -> io::Result<Rights> {
        let what = OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION;
        let mut buffer = vec![0_u64; 64];
        loop {
            let mut needed = 0;
            let have = size_of_val(&buffer[..]) as u32;
            // SAFETY: the buffer is alive, writable, aligned and as long as said.
            let read = check(unsafe {
                GetKernelObjectSecurity(raw(file), what, buffer.as_mut_ptr().cast(), have, &mut needed)
            });
            match read {
                // SAFETY: the system has just stored a whole descriptor there.
                Ok(()) => return unsafe { Rights::at(buffer.as_mut_ptr().cast()) },
                Err(error)
                    if error.raw_os_error() == Some(ERROR_INSUFFICIENT_BUFFER as i32) && needed > have =>
                {
                    buffer.resize((needed as usize).div_ceil(8), 0);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// # Safety
    /// `descriptor` points to a whole, valid security descriptor.
    unsafe fn at(descriptor: PSECURITY_DESCRIPTOR) -> io::Result<Rights> {
        let (mut owner, mut defaulted) = (std::ptr::null_mut(), 0);
        // SAFETY: the caller guarantees the descriptor; the places for the answers are alive.
        check(unsafe { GetSecurityDescriptorOwner(descriptor, &mut owner, &mut defaulted) })?;
        let (mut control, mut revision) = (0, 0);
        // SAFETY: as above.
        check(unsafe { GetSecurityDescriptorControl(descriptor, &mut control, &mut revision) })?;
        // SAFETY: the owner lies inside the descriptor.
        let owner =
            unsafe { Account::at(owner) }.ok_or_else(|| io::Error::other("a file without an owner"))?;
        // SAFETY: the caller guarantees the descriptor.
        let given = unsafe { given(descriptor) }?;
        Ok(Rights { owner, on_purpose: control & SE_DACL_PROTECTED != 0, given })
    }
}

/// # Safety
/// `descriptor` points to a whole, valid security descriptor.
unsafe fn given(descriptor: PSECURITY_DESCRIPTOR) -> io::Result<Vec<Right>> {
    let (mut present, mut list, mut defaulted) = (0, std::ptr::null_mut(), 0);
    // SAFETY: the caller guarantees the descriptor; the places for the answers are alive.
    check(unsafe { GetSecurityDescriptorDacl(descriptor, &mut present, &mut list, &mut defaulted) })?;
    // A missing list grants everything to everyone; an empty list grants nothing to anyone.
    Ok(match present != 0 && !list.is_null() {
        // SAFETY: the list lies inside the descriptor.
        true => unsafe { entries(list) },
        false => vec![Right { who: Account::EVERYONE, reads: true, changes: true }],
    })
}

/// # Safety
/// `list` points to a whole, valid access control list.
unsafe fn entries(list: *const ACL) -> Vec<Right> {
    // SAFETY: the caller guarantees the list.
    let count = u32::from(unsafe { (*list).AceCount });
    let entry = |index| {
        let mut entry = std::ptr::null_mut();
        // SAFETY: the caller guarantees the list; the place for the answer is alive.
        check(unsafe { GetAce(list, index, &mut entry) }).ok()?;
        // SAFETY: every entry begins with a header, which contains the entry's length.
        let head: ACE_HEADER = unsafe { entry.cast::<ACE_HEADER>().read_unaligned() };
        // SAFETY: this entry occupies `AceSize` bytes of the list.
        let bytes = unsafe { std::slice::from_raw_parts(entry.cast::<u8>(), usize::from(head.AceSize)) };
        right(head, bytes)
    };
    (0..count).filter_map(entry).collect()
}

fn right(head: ACE_HEADER, bytes: &[u8]) -> Option<Right> {
    if u32::from(head.AceFlags) & INHERIT_ONLY_ACE != 0 || OTHERS.contains(&head.AceType) {
        return None;
    }
    // An entry that grants rights in an unknown format counts as a grant of everything to everyone.
    let unknown = Right { who: Account::EVERYONE, reads: true, changes: true };
    let (ALLOWED | ALLOWED_IF, Some(mask), Some(sid)) = (head.AceType, bytes.get(4..8), bytes.get(8..))
    else {
        return Some(unknown);
    };
    let mask = u32::from_le_bytes([mask[0], mask[1], mask[2], mask[3]]);
    let right = Right { who: Account::of_bytes(sid), reads: mask & READS != 0, changes: mask & CHANGES != 0 };
    (right.reads || right.changes).then_some(right)
}

/// A security descriptor that this process created.
pub(super) struct Descriptor(NonNull<core::ffi::c_void>);

// SAFETY: the descriptor is written once, when it is created, and only read afterwards.
unsafe impl Send for Descriptor {}
// SAFETY: as above.
unsafe impl Sync for Descriptor {}

impl Descriptor {
    /// Parses the text form that the system defines for descriptors (SDDL).
    pub(super) fn parse(text: &str) -> io::Result<Descriptor> {
        let mut descriptor = std::ptr::null_mut();
        // SAFETY: the text ends with a zero; the place for the answer is alive; the size is not requested.
        check(unsafe {
            ConvertStringSecurityDescriptorToSecurityDescriptorW(
                wide(text).as_ptr(),
                SDDL_REVISION_1,
                &mut descriptor,
                std::ptr::null_mut(),
            )
        })?;
        NonNull::new(descriptor).map(Descriptor).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Attributes for a call that creates an object. The new handle is not inherited. Must not be used after `self`
    /// is dropped.
    pub(super) fn attributes(&self) -> SECURITY_ATTRIBUTES {
        SECURITY_ATTRIBUTES {
            nLength: size_of::<SECURITY_ATTRIBUTES>() as u32,
            lpSecurityDescriptor: self.0.as_ptr(),
            bInheritHandle: 0,
        }
    }

    /// Replaces the list of a file, which must be open with `WRITE_DAC`, by the list of this descriptor.
    pub(super) fn apply(&self, file: &File) -> io::Result<()> {
        let what = DACL_SECURITY_INFORMATION | PROTECTED_DACL_SECURITY_INFORMATION;
        // SAFETY: handle and descriptor are alive for the whole call.
        check(unsafe { SetKernelObjectSecurity(raw(file), what, self.0.as_ptr()) })
    }

    #[cfg(test)]
    pub(super) fn rights(&self) -> Rights {
        // SAFETY: the system created the descriptor.
        unsafe { Rights::at(self.0.as_ptr()) }.unwrap()
    }

    /// The rights of a list that this process created, which does not name an owner.
    #[cfg(test)]
    pub(super) fn given(&self) -> Vec<Right> {
        // SAFETY: the system created the descriptor.
        unsafe { given(self.0.as_ptr()) }.unwrap()
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: the system allocated the descriptor for this call to free, and no other code frees it.
        unsafe { LocalFree(self.0.as_ptr()) };
    }
}

impl fmt::Debug for Descriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Descriptor")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn right(who: Account, reads: bool, changes: bool) -> Right {
        Right { who, reads, changes }
    }

    #[test]
    fn rights_are_read_from_a_descriptor() {
        let rights = Descriptor::parse("O:BAD:P(A;OICI;FA;;;SY)(A;;FR;;;WD)(D;;FA;;;AN)").unwrap().rights();
        assert_eq!((rights.owner, rights.on_purpose), (Account::ADMINISTRATORS, true));
        let (system, everyone) = (right(Account::SYSTEM, true, true), right(Account::EVERYONE, true, false));
        assert_eq!(rights.given, [system, everyone]);
    }

    #[test]
    fn inherit_only_entries_grant_nothing() {
        let rights = Descriptor::parse("O:BAD:(A;OICIIO;FA;;;WD)").unwrap().rights();
        assert_eq!((rights.given, rights.on_purpose), (vec![], false));
    }

    #[test]
    fn missing_list_grants_everything_to_everyone() {
        let rights = Descriptor::parse("O:BA").unwrap().rights();
        assert_eq!(rights.given, [right(Account::EVERYONE, true, true)]);
        assert_eq!(Descriptor::parse("O:BAD:P").unwrap().rights().given, []);
    }

    #[test]
    fn rights_that_allow_a_change_indirectly_count_as_changes() {
        for mask in ["0x2", "0x4", "0x40", "0x100", "SD", "WD", "WO", "GW", "GA"] {
            let rights = Descriptor::parse(&format!("O:BAD:(A;;{mask};;;BU)")).unwrap().rights();
            assert!(rights.given.iter().any(|right| right.changes), "{mask}");
        }
        let rights = Descriptor::parse("O:BAD:(A;;0x1200a9;;;BU)").unwrap().rights();
        assert_eq!(rights.given, [right(Account::USERS, true, false)]);
    }

    #[test]
    fn a_file_has_an_owner() {
        let file = tempfile::tempfile().unwrap();
        assert!(Rights::of(&file).is_ok());
    }
}
