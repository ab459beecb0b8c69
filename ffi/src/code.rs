//! The codes that functions return. The meaning of a published code never changes.

use crate::guard::guard;
use std::ffi::{CStr, c_char};

/// The function did its work. For an acquire: the call is granted.
pub const SHMLIMIT_OK: i32 = 0;
/// Not now: shmlimit_answer says why, and when to ask again. Nothing was taken.
pub const SHMLIMIT_REFUSED: i32 = 1;
/// The request's `stop` function ended the wait. The call has left the queue. Nothing was taken.
pub const SHMLIMIT_STOPPED: i32 = 2;
/// Only from shmlimit_pending_step(): sleep, then step again.
pub const SHMLIMIT_SLEEP: i32 = 3;

/// A pointer that must not be NULL is NULL.
pub const SHMLIMIT_NULL_POINTER: i32 = 16;
/// No version of this library has this `size` of the struct. Set it to sizeof the struct.
pub const SHMLIMIT_WRONG_SIZE: i32 = 17;
/// A text is not UTF-8.
pub const SHMLIMIT_NOT_UTF8: i32 = 18;
/// An argument or a field is out of its range, or unknown to this version.
pub const SHMLIMIT_BAD_VALUE: i32 = 19;
/// The limiter or test clock is closed, or was never opened.
pub const SHMLIMIT_CLOSED: i32 = 20;
/// The grant has ended (released, cancelled or recorded), or never existed.
pub const SHMLIMIT_GRANT_DONE: i32 = 21;
/// The wait has ended, never existed, or another thread is stepping it.
pub const SHMLIMIT_PENDING_DONE: i32 = 22;
/// A bug of this library. Please report it.
pub const SHMLIMIT_PANICKED: i32 = 23;
/// More handles are open than this library can number.
pub const SHMLIMIT_TOO_MANY: i32 = 24;

/// The name of a limiter is not a valid file name on every system.
pub const SHMLIMIT_BAD_NAME: i32 = 32;
/// The limiter does not exist, and no preset has its name.
pub const SHMLIMIT_UNKNOWN_LIMITER: i32 = 33;
/// SHMLIMIT_OPEN_CREATE: the limiter already exists.
pub const SHMLIMIT_ALREADY_EXISTS: i32 = 34;
/// The directory of the limiters cannot be used, or is not safe to use.
pub const SHMLIMIT_DIRECTORY: i32 = 35;
/// The limiter's file belongs to a user, or has permissions, that this user cannot trust.
pub const SHMLIMIT_UNSAFE_FILE: i32 = 36;
/// The file is not a limiter of this layout version. It was not changed.
pub const SHMLIMIT_FOREIGN: i32 = 37;
/// The configuration in the limiter's file is damaged.
pub const SHMLIMIT_DAMAGED: i32 = 38;
/// The directory is on a network file system, where locks and shared memory are not reliable.
pub const SHMLIMIT_NETWORK_FILE_SYSTEM: i32 = 39;
/// A process that is stopped, or gets no processor time, holds the limiter's lock. Try again.
pub const SHMLIMIT_BUSY: i32 = 40;
/// All slots of the limiter are in use by processes.
pub const SHMLIMIT_SLOTS_FULL: i32 = 41;
/// The limiter exists with other settings than the options ask for. See `on_mismatch`.
pub const SHMLIMIT_CONFIG_MISMATCH: i32 = 42;
/// An existing limiter cannot change its settings to these. Only a new one can have them.
pub const SHMLIMIT_DOES_NOT_FIT: i32 = 43;
/// The configuration contradicts itself.
pub const SHMLIMIT_POLICY: i32 = 44;
/// The configuration text or a setting is not valid.
pub const SHMLIMIT_CONFIG: i32 = 45;
/// An environment variable has a value that is not valid, or does not fit the limiter.
pub const SHMLIMIT_ENVIRONMENT: i32 = 46;
/// The HTTP status of an outcome is not between 100 and 599.
pub const SHMLIMIT_BAD_STATUS: i32 = 47;
/// The limiter's breaker has no state of this name.
pub const SHMLIMIT_NO_SUCH_STATE: i32 = 48;
/// A cost is in a unit that no rule of the limiter counts.
pub const SHMLIMIT_UNKNOWN_UNIT: i32 = 49;
/// Other programs deleted or replaced the limiter each time it was being opened.
pub const SHMLIMIT_REPLACED: i32 = 50;
/// A call of the operating system failed. shmlimit_last_errno() returns its error number.
pub const SHMLIMIT_IO: i32 = 51;
/// This operating system lacks something that a shared limiter needs.
pub const SHMLIMIT_UNSUPPORTED: i32 = 52;
/// The library cannot tell which processes are alive: the file system drops locks, or the process may not examine
/// locks.
pub const SHMLIMIT_LIVENESS: i32 = 53;
/// Programs use the limiter, so shmlimit_remove() did not remove it. shmlimit_last_error() names them.
pub const SHMLIMIT_IN_USE: i32 = 54;

/// An error that this version of the C ABI has no number for.
pub const SHMLIMIT_OTHER: i32 = 99;

/// All codes with their names. (A macro could define both at once, but cbindgen does not expand macros.)
const CODES: [(i32, &CStr); 37] = [
    (SHMLIMIT_OK, c"ok"),
    (SHMLIMIT_REFUSED, c"refused"),
    (SHMLIMIT_STOPPED, c"stopped"),
    (SHMLIMIT_SLEEP, c"sleep"),
    (SHMLIMIT_NULL_POINTER, c"null_pointer"),
    (SHMLIMIT_WRONG_SIZE, c"wrong_size"),
    (SHMLIMIT_NOT_UTF8, c"not_utf8"),
    (SHMLIMIT_BAD_VALUE, c"bad_value"),
    (SHMLIMIT_CLOSED, c"closed"),
    (SHMLIMIT_GRANT_DONE, c"grant_done"),
    (SHMLIMIT_PENDING_DONE, c"pending_done"),
    (SHMLIMIT_PANICKED, c"panicked"),
    (SHMLIMIT_TOO_MANY, c"too_many"),
    (SHMLIMIT_BAD_NAME, c"bad_name"),
    (SHMLIMIT_UNKNOWN_LIMITER, c"unknown_limiter"),
    (SHMLIMIT_ALREADY_EXISTS, c"already_exists"),
    (SHMLIMIT_DIRECTORY, c"directory"),
    (SHMLIMIT_UNSAFE_FILE, c"unsafe_file"),
    (SHMLIMIT_FOREIGN, c"foreign"),
    (SHMLIMIT_DAMAGED, c"damaged"),
    (SHMLIMIT_NETWORK_FILE_SYSTEM, c"network_file_system"),
    (SHMLIMIT_BUSY, c"busy"),
    (SHMLIMIT_SLOTS_FULL, c"slots_full"),
    (SHMLIMIT_CONFIG_MISMATCH, c"config_mismatch"),
    (SHMLIMIT_DOES_NOT_FIT, c"does_not_fit"),
    (SHMLIMIT_POLICY, c"policy"),
    (SHMLIMIT_CONFIG, c"config"),
    (SHMLIMIT_ENVIRONMENT, c"environment"),
    (SHMLIMIT_BAD_STATUS, c"bad_status"),
    (SHMLIMIT_NO_SUCH_STATE, c"no_such_state"),
    (SHMLIMIT_UNKNOWN_UNIT, c"unknown_unit"),
    (SHMLIMIT_REPLACED, c"replaced"),
    (SHMLIMIT_IO, c"io"),
    (SHMLIMIT_UNSUPPORTED, c"unsupported"),
    (SHMLIMIT_LIVENESS, c"liveness"),
    (SHMLIMIT_IN_USE, c"in_use"),
    (SHMLIMIT_OTHER, c"other"),
];

/// The code of the library's error with this name.
pub(crate) fn number_of(name: &str) -> i32 {
    let found = CODES.iter().find(|(_, known)| known.to_bytes() == name.as_bytes());
    found.map_or(SHMLIMIT_OTHER, |(number, _)| *number)
}

/// The name of a result, such as "config_mismatch", or "unknown" for any other number.
///
/// Never NULL. Static: do not free it.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn shmlimit_code_name(code: i32) -> *const c_char {
    guard(c"unknown".as_ptr(), || {
        let found = CODES.iter().find(|(number, _)| *number == code);
        found.map_or(c"unknown", |(_, name)| name).as_ptr()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_names_are_unique() {
        for (i, (number, name)) in CODES.iter().enumerate() {
            assert!(CODES[i + 1..].iter().all(|(other, same)| other != number && same != name), "{name:?}");
        }
    }

    #[test]
    fn a_name_leads_to_its_code() {
        assert_eq!(number_of("busy"), SHMLIMIT_BUSY);
        assert_eq!(number_of("what"), SHMLIMIT_OTHER);
    }
}
