//! Which limiters and presets there are.

use crate::boundary::{Owned, call};
use crate::guard::guard;
use crate::input::{self, Slot};
use shmlimit::{Limiter, presets};
use std::ffi::c_char;
use std::path::Path;

/// Names. Freed with everything in it by shmlimit_names_free().
#[repr(C)]
pub struct shmlimit_names {
    /// sizeof(shmlimit_names) of the library.
    pub size: usize,
    /// The directory looked in; of presets NULL.
    pub directory: *const c_char,
    /// The names, in order.
    pub names: *const *const c_char,
    /// How many there are.
    pub count: usize,
}

/// What C gets is the first field of what is freed.
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

/// The limiters in a directory; NULL = the usual one. Free them with shmlimit_names_free(); `*names` is NULL after a failure.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_list(
    directory: *const c_char,
    names: *mut *const shmlimit_names,
) -> i32 {
    call(|| {
        let place = Slot::new("names", names, std::ptr::null())?;
        let directory = input::text_or_none("directory", directory)?;
        let listing = Limiter::list(directory.map(Path::new))?;
        place.write(keep(Some(&listing.directory), listing.names.iter().map(String::as_str)));
        Ok(())
    })
}

/// The presets, by whose names limiters can be opened without a configuration. Free them with shmlimit_names_free().
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_presets(names: *mut *const shmlimit_names) -> i32 {
    call(|| {
        let place = Slot::new("names", names, std::ptr::null())?;
        place.write(keep(None, presets::NAMES.into_iter()));
        Ok(())
    })
}

/// Frees names. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_names_free(names: *const shmlimit_names) {
    guard((), || {
        if !names.is_null() {
            // SAFETY: the caller's word that they came from here, as the first field of a `Kept`, and are freed once.
            drop(unsafe { Box::from_raw(names.cast_mut().cast::<Kept>()) });
        }
    });
}
