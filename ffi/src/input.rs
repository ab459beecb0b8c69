//! Reading what C programs pass in, and writing to where they point. Only this module follows their pointers.
//!
//! Some properties cannot be checked, so the header requires them of the caller: a pointer that is not NULL points
//! to as much memory as its type says, and strings end in NUL. SAFETY comments call this the caller's contract.

use crate::boundary::Failure;
use crate::code::{SHMLIMIT_NOT_UTF8, SHMLIMIT_NULL_POINTER, SHMLIMIT_WRONG_SIZE};
use std::borrow::Cow;
use std::ffi::{CStr, c_char};

/// A struct that begins with its own size, so that a later library knows which version a program was compiled with.
///
/// # Safety
/// The type is `repr(C)` and begins with a `usize`. Any bytes are a valid value of it, so all zeros are too.
pub(crate) unsafe trait Growing: Copy {
    /// The struct's name in C.
    const NAME: &'static str;
    /// The struct's size in its first version. No program has a smaller one.
    const FIRST: usize;
}

/// An upper limit for the size of every struct, now and later.
const LARGEST: usize = 4096;

fn null(what: &str) -> Failure {
    Failure::new(SHMLIMIT_NULL_POINTER, format!("{what} must not be NULL"))
}

fn wrong_size<T: Growing>(size: usize, more: &str) -> Failure {
    let message = format!("{}.size is {size}{more}; set it to sizeof({})", T::NAME, T::NAME);
    Failure::new(SHMLIMIT_WRONG_SIZE, message)
}

#[inline]
fn size_at<T: Growing>(at: *const T) -> Result<usize, Failure> {
    const { assert!(T::FIRST >= size_of::<usize>() && T::FIRST <= size_of::<T>(), "a size that it never had") };
    // SAFETY: not NULL, and every struct of this kind begins with its size (the caller's contract).
    let size = unsafe { at.cast::<usize>().read_unaligned() };
    match size {
        _ if size < T::FIRST => Err(wrong_size::<T>(size, ", less than any version has")),
        // A program may be a little newer than this library. A much larger size is garbage, and reading that much
        // would be out of bounds.
        _ if size > LARGEST => Err(wrong_size::<T>(size, ", more than any version has")),
        _ => Ok(size),
    }
}

/// Reads an optional struct. Fields that the program's version does not have become zero. Fields that this library
/// does not know must be zero.
#[inline]
pub(crate) fn growing<T: Growing>(at: *const T) -> Result<Option<T>, Failure> {
    if at.is_null() {
        return Ok(None);
    }
    let size = size_at(at)?;
    if size == size_of::<T>() {
        // SAFETY: the caller's contract says that the bytes are there; any bytes are a valid value.
        return Ok(Some(unsafe { at.read_unaligned() }));
    }
    let known = size.min(size_of::<T>());
    let mut value = std::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: the caller's contract says that `size` bytes are there; `known` bytes fit into the value.
    unsafe { std::ptr::copy_nonoverlapping(at.cast::<u8>(), value.as_mut_ptr().cast::<u8>(), known) };
    for beyond in known..size {
        // SAFETY: as above.
        if unsafe { at.cast::<u8>().add(beyond).read() } != 0 {
            return Err(wrong_size::<T>(size, ", and fields that this version does not know are set"));
        }
    }
    // SAFETY: any bytes are a valid value, and zeros fill the rest.
    Ok(Some(unsafe { value.assume_init() }))
}

/// Where an answer goes, if the caller wants one. It is checked before anything is done.
pub(crate) struct Out<T: Growing> {
    at: *mut T,
    size: usize,
}

impl<T: Growing> Out<T> {
    /// Checks the struct and sets it to zero at once, except for its size field. Fields that this library does not
    /// know are also set to zero.
    #[inline]
    pub(crate) fn new(at: *mut T) -> Result<Out<T>, Failure> {
        if at.is_null() {
            return Ok(Out { at, size: 0 });
        }
        let size = size_at(at.cast_const())?;
        let skip = size_of::<usize>();
        // SAFETY: the caller's contract says that `size` bytes are there; `size` is at least `FIRST`.
        unsafe { at.cast::<u8>().add(skip).write_bytes(0, size - skip) };
        Ok(Out { at, size })
    }

    /// Writes as many bytes as the caller's version has. The size field stays as it is.
    pub(crate) fn write(&self, value: &T) {
        let known = self.size.min(size_of::<T>());
        let from = (value as *const T).cast::<u8>();
        let skip = size_of::<usize>();
        if known > skip {
            // SAFETY: the caller's contract says that `size` bytes are there; `known` bytes are in the value.
            unsafe {
                std::ptr::copy_nonoverlapping(from.add(skip), self.at.cast::<u8>().add(skip), known - skip)
            };
        }
    }
}

/// Where a plain value goes. The caller must pass a pointer.
pub(crate) struct OutValue<T: Copy>(*mut T);

impl<T: Copy> OutValue<T> {
    /// Writes `nothing` there at once, so that a caller that ignores a failure finds no garbage.
    pub(crate) fn new(what: &str, at: *mut T, nothing: T) -> Result<OutValue<T>, Failure> {
        if at.is_null() {
            return Err(null(what));
        }
        let out = OutValue(at);
        out.write(nothing);
        Ok(out)
    }

    /// Like [`OutValue::new`], for a pointer that may be NULL.
    pub(crate) fn optional(at: *mut T, nothing: T) -> Option<OutValue<T>> {
        let out = (!at.is_null()).then_some(OutValue(at))?;
        out.write(nothing);
        Some(out)
    }

    pub(crate) fn write(&self, value: T) {
        // SAFETY: not NULL; the caller's contract says that a value of this type fits there.
        unsafe { self.0.write_unaligned(value) };
    }
}

/// Reads a required string.
pub(crate) fn text<'c>(what: &str, at: *const c_char) -> Result<&'c str, Failure> {
    text_or_none(what, at)?.ok_or_else(|| null(what))
}

/// Reads an optional string.
pub(crate) fn text_or_none<'c>(what: &str, at: *const c_char) -> Result<Option<&'c str>, Failure> {
    if at.is_null() {
        return Ok(None);
    }
    // SAFETY: not NULL; the caller's contract says that it ends in NUL and stays valid during the call.
    let text = unsafe { CStr::from_ptr(at) }.to_str();
    let bad = |_| Failure::new(SHMLIMIT_NOT_UTF8, format!("{what} is not UTF-8"));
    text.map(Some).map_err(bad)
}

/// Reads a string that came from a server. Invalid UTF-8 in it is replaced, because the caller is not responsible
/// for it.
pub(crate) fn foreign_text<'c>(what: &str, at: *const c_char) -> Result<Cow<'c, str>, Failure> {
    if at.is_null() {
        return Err(null(what));
    }
    // SAFETY: as in `text_or_none`.
    Ok(unsafe { CStr::from_ptr(at) }.to_string_lossy())
}

/// Reads `length` bytes that came from a server. Returns `None` if there are none.
pub(crate) fn foreign_bytes<'c>(
    what: &str,
    at: *const c_char,
    length: usize,
) -> Result<Cow<'c, str>, Failure> {
    match (at.is_null(), length) {
        (_, 0) => Ok(Cow::Borrowed("")),
        (true, _) => Err(null(what)),
        // SAFETY: not NULL; the caller's contract says that this many bytes are there and stay valid during the
        // call.
        (false, _) => Ok(String::from_utf8_lossy(unsafe {
            std::slice::from_raw_parts(at.cast::<u8>(), length.min(isize::MAX as usize))
        })),
    }
}

/// Reads a list of plain structs. `what` is its field and `count` the field of its length: a list without a length is
/// an error, because the program has probably forgotten it. An empty list is NULL and 0.
pub(crate) fn list<T: Copy>(
    what: &str,
    count: &str,
    at: *const T,
    length: usize,
    most: usize,
) -> Result<Vec<T>, Failure> {
    match (at.is_null(), length) {
        (true, 0) => Ok(Vec::new()),
        (false, 0) => {
            let message = format!("{what} is set, but {count} is 0");
            Err(Failure::new(crate::code::SHMLIMIT_BAD_VALUE, message))
        }
        (true, _) => Err(null(what)),
        (false, _) if length > most => {
            let message = format!("{what} has {length} elements; the maximum is {most}");
            Err(Failure::new(crate::code::SHMLIMIT_BAD_VALUE, message))
        }
        // SAFETY: not NULL; the caller's contract says that this many elements are there.
        (false, _) => Ok((0..length).map(|i| unsafe { at.add(i).read_unaligned() }).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::SHMLIMIT_BAD_VALUE;

    #[derive(Clone, Copy, Debug, PartialEq)]
    #[repr(C)]
    struct Old {
        size: usize,
        a: u64,
    }

    #[derive(Clone, Copy, Debug, PartialEq)]
    #[repr(C)]
    struct New {
        size: usize,
        a: u64,
        b: u64,
    }

    // SAFETY: the struct is a `usize` followed by plain integers.
    unsafe impl Growing for Old {
        const NAME: &'static str = "old";
        const FIRST: usize = 16;
    }

    // SAFETY: the struct is a `usize` followed by plain integers.
    unsafe impl Growing for New {
        const NAME: &'static str = "new";
        const FIRST: usize = 16;
    }

    #[test]
    fn fields_unknown_to_an_older_program_are_zero() {
        let old = Old { size: 16, a: 7 };
        let read = growing((&raw const old).cast::<New>()).unwrap().unwrap();
        assert_eq!((read.a, read.b), (7, 0));
    }

    #[test]
    fn a_newer_struct_is_accepted_if_its_new_fields_are_zero() {
        let mut new = New { size: 24, a: 7, b: 0 };
        assert_eq!(growing((&raw const new).cast::<Old>()).unwrap().unwrap().a, 7);
        new.b = 1;
        assert!(growing((&raw const new).cast::<Old>()).is_err());
    }

    #[test]
    fn sizes_that_no_version_has_are_rejected() {
        for size in [0, 1, 15, LARGEST + 1, usize::MAX] {
            let wrong = New { size, a: 0, b: 0 };
            assert!(growing(&raw const wrong).is_err(), "{size}");
        }
        assert!(growing(std::ptr::null::<New>()).unwrap().is_none());
    }

    #[test]
    fn an_answer_fills_the_programs_struct_and_nothing_behind_it() {
        let mut out = New { size: 16, a: 0, b: 9 };
        Out::new(&raw mut out).unwrap().write(&New { size: 24, a: 1, b: 2 });
        assert_eq!(out, New { size: 16, a: 1, b: 9 });
        let mut newer = New { size: 24, a: 8, b: 9 };
        Out::new((&raw mut newer).cast::<Old>()).unwrap();
        assert_eq!(newer, New { size: 24, a: 0, b: 0 }, "emptied, also what is not known here");
        let mut short = New { size: 8, a: 0, b: 0 };
        assert!(Out::new(&raw mut short).is_err());
        Out::<New>::new(std::ptr::null_mut()).unwrap().write(&out);
    }

    #[test]
    fn lists_are_read_by_their_length() {
        let numbers = [1u64, 2, 3];
        assert_eq!(list("numbers", "count", numbers.as_ptr(), 3, 8).unwrap(), numbers);
        assert!(list("numbers", "count", std::ptr::null::<u64>(), 0, 8).unwrap().is_empty());
        assert!(list("numbers", "count", std::ptr::null::<u64>(), 1, 8).is_err());
        for length in [0, 9] {
            let failure = list("numbers", "count", numbers.as_ptr(), length, 8).unwrap_err();
            assert!(format!("{failure:?}").contains(&format!("code: {SHMLIMIT_BAD_VALUE}")), "{length}");
        }
    }
}
