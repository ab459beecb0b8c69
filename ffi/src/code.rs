//! The numbers that functions return. A number once given never changes its meaning.

use crate::guard::guard;
use std::ffi::{CStr, c_char};

/// Done; of an acquire: granted.
pub const SHMLIMIT_OK: i32 = 0;
/// Not now: shmlimit_answer says why, and when to ask again. Nothing was taken.
pub const SHMLIMIT_REFUSED: i32 = 1;
/// The request's `stop` said so: the call has left the queue. Nothing was taken.
pub const SHMLIMIT_STOPPED: i32 = 2;
/// Of shmlimit_pending_step: not yet, sleep and step again.
pub const SHMLIMIT_SLEEP: i32 = 3;

/// A pointer that must not be NULL is NULL.
pub const SHMLIMIT_NULL_POINTER: i32 = 16;
/// A struct whose `size` is not one that any version of this library has: set it to sizeof the struct.
pub const SHMLIMIT_WRONG_SIZE: i32 = 17;
/// A text that is not UTF-8.
pub const SHMLIMIT_NOT_UTF8: i32 = 18;
/// An argument or field that is out of its range, or means nothing to this version.
pub const SHMLIMIT_BAD_VALUE: i32 = 19;
/// A limiter that is closed, or never was open.
pub const SHMLIMIT_CLOSED: i32 = 20;
/// A grant that is over already (released, cancelled, recorded), or never was one.
pub const SHMLIMIT_GRANT_DONE: i32 = 21;
/// A wait that is over already, or never was one, or that another thread steps at this moment.
pub const SHMLIMIT_PENDING_DONE: i32 = 22;
/// A bug of this library; nothing was changed that was not said.
pub const SHMLIMIT_PANICKED: i32 = 23;
/// More handles are open than this library can number.
pub const SHMLIMIT_TOO_MANY: i32 = 24;

/// A limiter name that cannot be a file name everywhere.
pub const SHMLIMIT_BAD_NAME: i32 = 32;
/// There is no such limiter, and no preset of that name to make it from.
pub const SHMLIMIT_UNKNOWN_LIMITER: i32 = 33;
/// A limiter that should be made exists already.
pub const SHMLIMIT_ALREADY_EXISTS: i32 = 34;
/// The directory cannot be used or cannot be trusted.
pub const SHMLIMIT_DIRECTORY: i32 = 35;
/// The file in the segment's place is not one this user may trust.
pub const SHMLIMIT_UNSAFE_FILE: i32 = 36;
/// A file that is no segment of this layout. Not one byte of it was written.
pub const SHMLIMIT_FOREIGN: i32 = 37;
/// The segment's configuration was damaged.
pub const SHMLIMIT_DAMAGED: i32 = 38;
/// Locks and mappings are not to be trusted across a network.
pub const SHMLIMIT_NETWORK_FILE_SYSTEM: i32 = 39;
/// The process that holds the lock is alive but does not go on: stopped, or starved.
pub const SHMLIMIT_BUSY: i32 = 40;
/// Every place for a participant is taken by a living one.
pub const SHMLIMIT_SLOTS_FULL: i32 = 41;
/// Settings given explicitly differ from those of the limiter that is there.
pub const SHMLIMIT_CONFIG_MISMATCH: i32 = 42;
/// A change that does not fit the segment as it was made.
pub const SHMLIMIT_DOES_NOT_FIT: i32 = 43;
/// A configuration that makes no sense.
pub const SHMLIMIT_POLICY: i32 = 44;
/// A configuration text or a setting that cannot be carried out.
pub const SHMLIMIT_CONFIG: i32 = 45;
/// A variable of the environment that means nothing, or does not fit.
pub const SHMLIMIT_ENVIRONMENT: i32 = 46;
/// A status that no server answers with.
pub const SHMLIMIT_BAD_STATUS: i32 = 47;
/// A state that the limiter's breaker does not have.
pub const SHMLIMIT_NO_SUCH_STATE: i32 = 48;
/// A cost in a unit that no rule of the limiter counts.
pub const SHMLIMIT_UNKNOWN_UNIT: i32 = 49;
/// The segment was deleted or replaced, time after time, while it was being opened.
pub const SHMLIMIT_UNSETTLED: i32 = 50;
/// The operating system said no; shmlimit_last_errno() is its number.
pub const SHMLIMIT_IO: i32 = 51;
/// This operating system cannot keep a promise that sharing a limiter rests on.
pub const SHMLIMIT_UNSUPPORTED: i32 = 52;
/// Live processes cannot be told from exited ones: the file system drops locks, or this process may not test them.
pub const SHMLIMIT_LIVENESS: i32 = 53;

/// An error that this version of the C ABI has no number for.
pub const SHMLIMIT_OTHER: i32 = 99;

/// All numbers and their names. (A macro could make both at once, but cbindgen does not look into macros.)
const CODES: [(i32, &CStr); 36] = [
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
    (SHMLIMIT_PENDING_DONE, c"wait_done"),
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
    (SHMLIMIT_UNSETTLED, c"unsettled"),
    (SHMLIMIT_IO, c"io"),
    (SHMLIMIT_UNSUPPORTED, c"unsupported"),
    (SHMLIMIT_LIVENESS, c"liveness"),
    (SHMLIMIT_OTHER, c"other"),
];

/// The number of the library's error of that name.
pub(crate) fn number_of(name: &str) -> i32 {
    let found = CODES.iter().find(|(_, known)| known.to_bytes() == name.as_bytes());
    found.map_or(SHMLIMIT_OTHER, |(number, _)| *number)
}

/// The name of a returned number, such as "config_mismatch"; "unknown" for a number that is none.
///
/// Never NULL; static: do not free it.
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
    fn numbers_and_names_are_given_once() {
        for (i, (number, name)) in CODES.iter().enumerate() {
            assert!(CODES[i + 1..].iter().all(|(other, same)| other != number && same != name), "{name:?}");
        }
    }

    #[test]
    fn a_name_leads_to_its_number() {
        assert_eq!(number_of("busy"), SHMLIMIT_BUSY);
        assert_eq!(number_of("what"), SHMLIMIT_OTHER);
    }
}
