//! Users and groups: security identifiers.

use std::fmt;
use std::io;
use std::os::windows::io::AsRawHandle;

use windows_sys::Win32::Foundation::{ERROR_INSUFFICIENT_BUFFER, ERROR_NONE_MAPPED, HANDLE};
use windows_sys::Win32::Security::{
    CheckTokenMembership, GetTokenInformation, LookupAccountNameW, LookupAccountSidW, PSID, TOKEN_QUERY,
    TOKEN_USER, TokenUser,
};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};

use super::native::{check, owned, wide};

/// Authorities that issue identifiers: for everyone, for users at the machine itself, for Windows, for sandboxes,
/// and for users who have authenticated.
const WORLD: u64 = 1;
const LOCAL: u64 = 2;
const WINDOWS: u64 = 5;
const PACKAGES: u64 = 15;
const AUTHENTICATION: u64 = 18;
/// Numbers that Windows issues: all local accounts, all local administrators, all users of another organization;
/// and the first number of the identifiers for one method of authentication.
const ALL_OF_A_KIND: [u32; 3] = [113, 114, 1000];
const CAME_BY: u32 = 64;

/// The longest identifier, in bytes: a header of 8 bytes and 15 numbers.
const LONGEST: usize = 8 + 4 * 15;
const LONGEST_NAME: usize = 256;

/// A user or a group of users, as the system knows it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Account {
    /// The identifier as the system stores it, followed by zeros.
    bytes: [u8; LONGEST],
}

impl Account {
    pub(super) const EVERYONE: Account = Account::well_known(1, &[0]);
    pub(super) const CREATOR_OWNER: Account = Account::well_known(3, &[0]);
    pub(super) const CREATOR_GROUP: Account = Account::well_known(3, &[1]);
    pub(super) const OWNER_RIGHTS: Account = Account::well_known(3, &[4]);
    pub(super) const SYSTEM: Account = Account::well_known(5, &[18]);
    pub(super) const ADMINISTRATORS: Account = Account::well_known(5, &[32, 544]);
    pub(super) const USERS: Account = Account::well_known(5, &[32, 545]);
    pub(super) const GUESTS: Account = Account::well_known(5, &[32, 546]);
    pub(super) const TRUSTED_INSTALLER: Account =
        Account::well_known(5, &[80, 956008885, 3418522649, 1831038044, 1853292631, 2271478464]);

    /// The account `S-1-AUTHORITY-NUMBER-…`.
    const fn well_known(authority: u8, numbers: &[u32]) -> Account {
        let mut bytes = [0; LONGEST];
        (bytes[0], bytes[1], bytes[7]) = (1, numbers.len() as u8, authority);
        let mut i = 0;
        while i < numbers.len() {
            let number = numbers[i].to_le_bytes();
            let mut j = 0;
            while j < 4 {
                bytes[8 + 4 * i + j] = number[j];
                j += 1;
            }
            i += 1;
        }
        Account { bytes }
    }

    /// The group or user with that name (`DOMAIN\name` or `name`) or identifier (`S-1-…`); `None` if this machine
    /// knows none.
    pub fn group(name: &str) -> io::Result<Option<Account>> {
        if let Some(account) = Account::parse(name) {
            return Ok(Some(account));
        }
        let name = wide(name);
        let (mut sid, mut domain, mut kind) = ([0_u32; LONGEST / 4], [0_u16; LONGEST_NAME], 0);
        let (mut length, mut domain_length) = (LONGEST as u32, LONGEST_NAME as u32);
        // SAFETY: all buffers are alive, writable and as long as stated; the buffer of the identifier has its
        // alignment.
        let found = check(unsafe {
            LookupAccountNameW(
                std::ptr::null(),
                name.as_ptr(),
                sid.as_mut_ptr().cast(),
                &mut length,
                domain.as_mut_ptr(),
                &mut domain_length,
                &mut kind,
            )
        });
        match found {
            Ok(()) => Ok(Some(Account::of_bytes(bytemuck::cast_slice(&sid)))),
            Err(error) if error.raw_os_error() == Some(ERROR_NONE_MAPPED as i32) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Its name if the system has one for it, else its identifier.
    pub fn name(&self) -> String {
        let (mut name, mut domain, mut kind) = ([0; LONGEST_NAME], [0; LONGEST_NAME], 0);
        let (mut length, mut domain_length) = (LONGEST_NAME as u32, LONGEST_NAME as u32);
        let sid = self.aligned();
        // SAFETY: the identifier is well formed; all buffers are alive, writable and as long as stated.
        let found = check(unsafe {
            LookupAccountSidW(
                std::ptr::null(),
                sid.as_ptr().cast_mut().cast(),
                name.as_mut_ptr(),
                &mut length,
                domain.as_mut_ptr(),
                &mut domain_length,
                &mut kind,
            )
        });
        if found.is_err() {
            return self.to_string();
        }
        let text = |units: &[u16], length: u32| String::from_utf16_lossy(&units[..length as usize]);
        match domain_length {
            0 => text(&name, length),
            _ => format!(r"{}\{}", text(&domain, domain_length), text(&name, length)),
        }
    }

    /// The user of this process.
    pub(super) fn me() -> io::Result<Account> {
        let mut token: HANDLE = std::ptr::null_mut();
        // SAFETY: `token` is a live place for the answer; the pseudo-handle of the process needs no closing.
        check(unsafe { OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &mut token) })?;
        // SAFETY: the call has just created the handle, and no other code knows it.
        let token = unsafe { owned(token) }?;
        let mut answer = [0_u64; (size_of::<TOKEN_USER>() + LONGEST).div_ceil(8)];
        let mut length = size_of_val(&answer) as u32;
        // SAFETY: the buffer is alive, writable, aligned and as long as stated.
        check(unsafe {
            GetTokenInformation(
                token.as_raw_handle(),
                TokenUser,
                answer.as_mut_ptr().cast(),
                length,
                &mut length,
            )
        })?;
        // SAFETY: the system has just stored a TOKEN_USER there, and its identifier lies behind it in the same
        // buffer.
        unsafe { Account::at((*answer.as_ptr().cast::<TOKEN_USER>()).User.Sid) }
            .ok_or_else(|| io::Error::from_raw_os_error(ERROR_INSUFFICIENT_BUFFER as i32))
    }

    /// Whether this process has the rights that are granted to that account. A group that the token contains only
    /// for denials, such as Administrators without elevation, does not count.
    pub(super) fn includes_me(&self) -> bool {
        let (sid, mut attachment) = (self.aligned(), 0);
        // SAFETY: the identifier is well formed and `attachment` is a live place for the answer; a null token means
        // this thread's token.
        let asked = unsafe {
            CheckTokenMembership(std::ptr::null_mut(), sid.as_ptr().cast_mut().cast(), &mut attachment)
        };
        // Wine supports this call only for groups.
        asked != 0 && attachment != 0 || Account::me().is_ok_and(|me| me == *self)
    }

    /// Whether it is a group without chosen members: users are in it because of how they reached the machine (by
    /// network, at its keyboard, as a guest). A directory is never shared with such a group on purpose.
    pub(super) fn is_anybody(&self) -> bool {
        let mut numbers = self.numbers();
        match (self.authority(), numbers.next(), numbers.next()) {
            (WORLD | LOCAL | PACKAGES | AUTHENTICATION, ..) | (WINDOWS, Some(CAME_BY), _) => true,
            // 18, 19 and 20 are users: the system and its services.
            (WINDOWS, Some(kind), None) => kind < 18 || ALL_OF_A_KIND.contains(&kind),
            _ => *self == Account::GUESTS,
        }
    }

    /// # Safety
    /// `sid` is null or points to an identifier: a header of 8 bytes, followed by as many numbers as the header
    /// states.
    pub(super) unsafe fn at(sid: PSID) -> Option<Account> {
        let first: *const u8 = sid.cast_const().cast();
        if first.is_null() {
            return None;
        }
        // SAFETY: the caller guarantees that a header is there.
        let numbers = usize::from(unsafe { first.add(1).read() });
        let length = 8 + 4 * numbers;
        // SAFETY: the caller guarantees that `length` bytes are there.
        (length <= LONGEST).then(|| Account::of_bytes(unsafe { std::slice::from_raw_parts(first, length) }))
    }

    /// Reads the identifier at the start of these bytes and ignores the rest.
    pub(super) fn of_bytes(bytes: &[u8]) -> Account {
        let mut account = Account { bytes: [0; LONGEST] };
        let length = bytes.get(1).map_or(0, |numbers| 8 + 4 * usize::from(*numbers));
        let length = length.min(bytes.len()).min(LONGEST);
        account.bytes[..length].copy_from_slice(&bytes[..length]);
        account
    }

    fn parse(text: &str) -> Option<Account> {
        let mut parts = text.strip_prefix("S-1-")?.split('-');
        let authority: u8 = parts.next()?.parse().ok()?;
        let numbers: Vec<u32> = parts.map(|part| part.parse().ok()).collect::<Option<_>>()?;
        (1..=15).contains(&numbers.len()).then(|| Account::well_known(authority, &numbers))
    }

    fn aligned(&self) -> [u32; LONGEST / 4] {
        let mut words = [0; LONGEST / 4];
        bytemuck::cast_slice_mut(&mut words).copy_from_slice(&self.bytes);
        words
    }

    fn authority(&self) -> u64 {
        self.bytes[2..8].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    }

    fn numbers(&self) -> impl Iterator<Item = u32> {
        let count = usize::from(self.bytes[1]).min(15);
        self.bytes[8..8 + 4 * count]
            .chunks_exact(4)
            .map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]))
    }
}

/// The text form, such as `S-1-5-18`.
impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "S-{}-{}", self.bytes[0], self.authority())?;
        self.numbers().try_for_each(|number| write!(f, "-{number}"))
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_formatted_and_parsed_in_the_standard_form() {
        assert_eq!(Account::SYSTEM.to_string(), "S-1-5-18");
        assert_eq!(Account::ADMINISTRATORS.to_string(), "S-1-5-32-544");
        assert_eq!(Account::group("S-1-5-32-544").unwrap(), Some(Account::ADMINISTRATORS));
        for wrong in ["S-1-5", "S-1-5-x", "S-1-5-", "S-2-5-18", "S-1-5-99999999999"] {
            assert_eq!(Account::parse(wrong), None, "{wrong}");
        }
        let me = Account::me().unwrap();
        assert_eq!(Account::group(&me.to_string()).unwrap(), Some(me));
    }

    #[test]
    fn this_process_has_a_named_user_and_belongs_to_everyone() {
        let me = Account::me().unwrap();
        assert!(me.includes_me() && Account::EVERYONE.includes_me());
        assert!(!Account::well_known(5, &[21, 1, 2, 3, 4711]).includes_me());
        assert!(!me.name().is_empty());
    }

    #[test]
    fn unknown_name_is_no_account() {
        assert_eq!(Account::group("no such group, surely").unwrap(), None);
    }
}
