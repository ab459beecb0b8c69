//! The boundary between Rust and C. Every failure stores its code and its message for the calling thread. Strings
//! that C receives live as long as the object they belong to. `guard` keeps panics and thread cancellation from
//! crossing the boundary.

use crate::code::{self, *};
use crate::guard::{Cancellation, caught, guard};
use shmlimit::{AcquireError, Error};
use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char};

/// A failed call: its code, its message and the system's error number.
#[derive(Debug)]
pub(crate) struct Failure {
    code: i32,
    message: String,
    errno: i32,
}

impl Failure {
    pub(crate) fn new(code: i32, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into(), errno: 0 }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure {
            code: code::number_of(error.code()),
            message: error.to_string(),
            errno: error.errno().unwrap_or(0),
        }
    }
}

/// The message and the system's error number of a thread's last failure.
struct Last {
    message: Option<CString>,
    errno: i32,
}

thread_local! {
    #[allow(clippy::missing_const_for_thread_local, reason = "it is; the lint does not see it on Windows")]
    static LAST: RefCell<Last> = const { RefCell::new(Last { message: None, errno: 0 }) };
}

fn remember(failure: Failure) -> i32 {
    let message = Some(without_nul(&failure.message));
    // A thread that is ending may have destroyed its thread-local storage. The code alone is enough then.
    let _ = LAST.try_with(|last| {
        if let Ok(mut last) = last.try_borrow_mut() {
            *last = Last { message, errno: failure.errno };
        }
    });
    failure.code
}

/// Converts a string for C. NUL characters are replaced, because a C string cannot contain them.
fn without_nul(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default()
}

/// Strings and lists for C that live as long as the object they belong to.
#[derive(Default)]
pub(crate) struct Owned {
    texts: Vec<CString>,
    lists: Vec<Box<dyn Any>>,
}

impl Owned {
    /// Stores a string. Its address stays valid until this value is dropped.
    pub(crate) fn text(&mut self, text: &str) -> *const c_char {
        let text = without_nul(text);
        let at = text.as_ptr();
        self.texts.push(text);
        at
    }

    /// Stores a list. Returns its address and its length.
    pub(crate) fn list<T: 'static>(&mut self, values: Vec<T>) -> (*const T, usize) {
        let values = values.into_boxed_slice();
        let list = (values.as_ptr(), values.len());
        self.lists.push(Box::new(values));
        list
    }

    /// Stores a list and gives C pointers to its elements, so that the element struct can grow at its end in later
    /// versions.
    pub(crate) fn pointers<T: 'static>(&mut self, values: Vec<T>) -> (*const *const T, usize) {
        let (first, count) = self.list(values);
        self.list((0..count).map(|i| first.wrapping_add(i)).collect())
    }
}

/// The value of a successful call: `()` returns [`SHMLIMIT_OK`], other types return their own code.
pub(crate) trait Answer {
    /// The code that the C function returns.
    fn number(self) -> i32;
}

impl Answer for () {
    fn number(self) -> i32 {
        SHMLIMIT_OK
    }
}

impl Answer for i32 {
    fn number(self) -> i32 {
        self
    }
}

/// Runs the body of an exported function. Returns the code of its answer, or the code of its failure.
#[inline(always)]
pub(crate) fn call<A: Answer>(work: impl FnOnce() -> Result<A, Failure> + Copy) -> i32 {
    let cancellation = Cancellation::off();
    let code = answer(work);
    cancellation.restore();
    code
}

#[inline(never)]
fn answer<A: Answer>(work: impl FnOnce() -> Result<A, Failure>) -> i32 {
    match caught(None, || Some(work())) {
        Some(Ok(answer)) => answer.number(),
        Some(Err(failure)) => caught(SHMLIMIT_PANICKED, || remember(failure)),
        None => {
            let message =
                "a bug in shmlimit: it panicked, and the C interface caught the panic; please report it";
            caught(SHMLIMIT_PANICKED, || remember(Failure::new(SHMLIMIT_PANICKED, message)))
        }
    }
}

/// Separates refusals from failures: a refusal is an answer.
pub(crate) fn answered<G>(result: Result<G, AcquireError>) -> Result<Result<G, shmlimit::Refusal>, Failure> {
    match result {
        Ok(grant) => Ok(Ok(grant)),
        Err(AcquireError::Refused(refusal)) => Ok(Err(refusal)),
        Err(AcquireError::Failed(error)) => Err(Failure::from(*error)),
    }
}

/// The message of the last failure in this thread: what failed, on which file, why, and what to do. Empty if no call failed.
///
/// Never NULL. Valid until the next failure in this thread. Do not free it.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn shmlimit_last_error() -> *const c_char {
    guard(c"".as_ptr(), || {
        let words = LAST.try_with(|last| last.try_borrow().ok()?.message.as_ref().map(|text| text.as_ptr()));
        words.ok().flatten().unwrap_or(c"".as_ptr())
    })
}

/// The error number of the operating system (errno, on Windows GetLastError()) for the last failure in this thread; 0 if
/// that failure did not come from the system.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn shmlimit_last_errno() -> i32 {
    guard(0, || LAST.try_with(|last| last.try_borrow().map_or(0, |last| last.errno)).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    struct PanicsWhenDropped;

    impl Drop for PanicsWhenDropped {
        fn drop(&mut self) {
            panic!("in drop");
        }
    }

    fn last_error() -> String {
        // SAFETY: the pointer is never NULL, and it stays valid until the next failure.
        unsafe { CStr::from_ptr(shmlimit_last_error()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_value_crosses_the_boundary_unchanged() {
        assert_eq!(guard(-1, || 7), 7);
    }

    #[test]
    fn a_panic_ends_at_the_boundary() {
        assert_eq!(guard(-1, || panic!("inside")), -1);
        assert_eq!(call(|| -> Result<i32, Failure> { panic!("inside") }), SHMLIMIT_PANICKED);
        assert!(last_error().contains("report"));
    }

    #[test]
    fn a_payload_that_panics_when_dropped_ends_at_the_boundary() {
        assert_eq!(guard(-1, || std::panic::panic_any(PanicsWhenDropped)), -1);
    }

    #[test]
    fn messages_belong_to_the_thread_that_failed_and_may_contain_any_bytes() {
        assert_eq!(call(|| Err::<(), _>(Failure::new(SHMLIMIT_BAD_VALUE, "a\0b"))), SHMLIMIT_BAD_VALUE);
        assert_eq!(last_error(), "a\u{fffd}b");
        std::thread::spawn(|| assert_eq!(last_error(), "")).join().unwrap();
        assert_eq!(call(|| Ok(SHMLIMIT_OK)), SHMLIMIT_OK);
        assert_eq!(last_error(), "a\u{fffd}b", "success says nothing");
    }

    #[test]
    fn every_error_of_the_library_has_a_code() {
        for error in shmlimit::Error::CODES {
            assert_ne!(code::number_of(error), SHMLIMIT_OTHER, "{error}");
        }
    }
}
