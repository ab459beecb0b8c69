//! Lists of the names of limiters and presets.

use crate::boundary::{Owned, call};
use crate::guard::guard;
use crate::input::{self, OutValue};
use shmlimit::{Limiter, presets};
use std::ffi::c_char;
use std::path::Path;

/// A list of names. Free it with shmlimit_names_free().
#[repr(C)]
pub struct shmlimit_names {
    /// sizeof(shmlimit_names) of the library.
    pub size: usize,
    /// The directory of the limiters; NULL for presets.
    pub directory: *const c_char,
    /// The names in alphabetical order.
    pub names: *const *const c_char,
    /// How many elements `names` has.
    pub count: usize,
}

/// The allocation behind a list. C gets a pointer to its first field.
#[repr(C)]
struct Kept {
    shown: shmlimit_names,
    _owned: Owned,
}

fn keep<'n>(directory: Option<&Path>, names: impl Iterator<Item = &'n str>) -> *const shmlimit_names {
    let mut owned = Owned::default();
    let directory = directory.map_or(std::ptr::null(), |path| owned.text(&path.to_string_lossy()));
    let names = names.map(|name| owned.text(name)).collect();
    let (names, count) = owned.list(names);
    let shown = shmlimit_names { size: size_of::<shmlimit_names>(), directory, names, count };
    Box::into_raw(Box::new(Kept { shown, _owned: owned })).cast_const().cast()
}

/// Lists the limiters in a directory; NULL = the default one. Free the list with shmlimit_names_free(). `*names` is NULL
/// after a failure.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_list(
    directory: *const c_char,
    names: *mut *const shmlimit_names,
) -> i32 {
    call(|| {
        let out = OutValue::new("names", names, std::ptr::null())?;
        let directory = input::text_or_none("directory", directory)?;
        let listing = Limiter::list(directory.map(Path::new))?;
        out.write(keep(Some(&listing.directory), listing.names.iter().map(String::as_str)));
        Ok(())
    })
}

/// Lists the presets. A limiter with the name of a preset needs no configuration. Free the list with shmlimit_names_free().
/// `*names` is NULL after a failure.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_presets(names: *mut *const shmlimit_names) -> i32 {
    call(|| {
        let out = OutValue::new("names", names, std::ptr::null())?;
        out.write(keep(None, presets::NAMES.into_iter()));
        Ok(())
    })
}

/// Frees a list of names. NULL is allowed and does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_names_free(names: *const shmlimit_names) {
    guard((), || {
        if !names.is_null() {
            // SAFETY: by the caller's contract the pointer came from this module, as the first field of a `Kept`,
            // and is freed once.
            drop(unsafe { Box::from_raw(names.cast_mut().cast::<Kept>()) });
        }
    });
}
