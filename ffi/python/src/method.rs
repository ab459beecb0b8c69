//! Methods that are called often, without PyO3's argument parsing.
//!
//! For the stable ABI of Python 3.9, PyO3 makes every call pack its arguments into a tuple and a dictionary, which
//! costs more than a grant (`docs/design/languages.md` has the figures). The calling convention without them,
//! `METH_FASTCALL`, is part of the stable ABI since 3.10. Python 3.9 has it in the same form, and 3.9 no longer
//! changes: the flag and the signature are those of 3.7.

use crate::events;
use crate::names::{Key, Names};
use pyo3::exceptions::{PySystemError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::{Borrowed, PyClass, PyTypeInfo};
use std::ffi::{CStr, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;

const METH_FASTCALL: c_int = 0x80;

/// The function pointer that Python calls.
type Entry = unsafe extern "C" fn(
    *mut ffi::PyObject,
    *const *mut ffi::PyObject,
    ffi::Py_ssize_t,
    *mut ffi::PyObject,
) -> *mut ffi::PyObject;

/// A class whose objects belong to a limiter.
pub trait OfLimiter: PyClass {
    /// The limiter of an object.
    fn limiter_of<'a, 'py>(this: &'a Bound<'py, Self>) -> &'a Bound<'py, PyAny>;
}

/// One method of a class.
pub trait Method {
    /// The class.
    type Class: OfLimiter;
    /// The method's name.
    const NAME: &'static CStr;
    /// Its signature for `inspect`, then two dashes, then its docstring.
    const DOC: &'static CStr;
    /// The method's body.
    fn call<'py>(
        this: &Bound<'py, Self::Class>,
        arguments: &Arguments<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>>;
}

/// The arguments of one method call.
pub struct Arguments<'a, 'py> {
    method: &'static CStr,
    py: Python<'py>,
    /// The positional arguments, then the values of the keywords.
    values: &'a [*mut ffi::PyObject],
    positional: usize,
    /// A tuple of the keywords' names, or null.
    names: *mut ffi::PyObject,
}

impl<'py> Arguments<'_, 'py> {
    /// Rejects more than `most` positional arguments.
    #[inline]
    pub fn at_most(&self, most: usize) -> PyResult<()> {
        if self.positional > most { Err(self.too_many(most)) } else { Ok(()) }
    }

    /// Rejects any argument.
    #[inline]
    pub fn none(&self) -> PyResult<()> {
        self.at_most(0)?;
        self.keywords(&[], |_, _| Ok(()))
    }

    /// The first positional argument.
    #[inline]
    pub fn first(&self) -> Option<Borrowed<'_, 'py, PyAny>> {
        let value = self.values[..self.positional].first()?;
        // SAFETY: the interpreter keeps the arguments of a call alive until it returns.
        Some(unsafe { Borrowed::from_ptr(self.py, *value) })
    }

    /// Reads every keyword whose value is not `None`. A keyword that is not in `takes` is rejected.
    #[inline]
    pub fn keywords(
        &self,
        takes: &[Key],
        mut read: impl FnMut(Key, &Bound<'py, PyAny>) -> PyResult<()>,
    ) -> PyResult<()> {
        if self.names.is_null() {
            return Ok(());
        }
        let known = Names::get(self.py);
        for (i, value) in self.values[self.positional..].iter().enumerate() {
            // SAFETY: the tuple has as many names as there are values behind the positional ones, and lives as long
            // as they do.
            let (name, value) = unsafe {
                let name = ffi::PyTuple_GetItem(self.names, i as ffi::Py_ssize_t);
                (Borrowed::from_ptr(self.py, name), Borrowed::<PyAny>::from_ptr(self.py, *value))
            };
            match known.key(&name) {
                Some(key) if takes.contains(&key) => {
                    if !value.is_none() {
                        read(key, &value)?;
                    }
                }
                _ => return Err(self.unknown(&name)),
            }
        }
        Ok(())
    }

    #[cold]
    fn unknown(&self, name: &Bound<'py, PyAny>) -> PyErr {
        PyTypeError::new_err(format!(
            "{}() got an unexpected keyword argument '{name}'",
            self.method.to_string_lossy()
        ))
    }

    #[cold]
    fn too_many(&self, most: usize) -> PyErr {
        let takes = match most {
            0 => "no positional arguments".to_owned(),
            1 => "at most 1 positional argument".to_owned(),
            most => format!("at most {most} positional arguments"),
        };
        let method = self.method.to_string_lossy();
        PyTypeError::new_err(format!("{method}() takes {takes} ({} given)", self.positional))
    }
}

/// Adds a method to its class.
pub fn add<M: Method>(py: Python<'_>) -> PyResult<()> {
    let entry: Entry = enter::<M>;
    let definition = ffi::PyMethodDef {
        ml_name: M::NAME.as_ptr(),
        // SAFETY: with these flags Python calls the function with exactly these parameters.
        ml_meth: unsafe { std::mem::transmute::<Entry, ffi::PyMethodDefPointer>(entry) },
        ml_flags: METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: M::DOC.as_ptr(),
    };
    // Python keeps a pointer to the definition as long as the class exists, and the class is never freed.
    let definition = Box::leak(Box::new(definition));
    let class = M::Class::type_object(py);
    // SAFETY: the class and the definition are alive; this function owns the new object.
    let method =
        unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyDescr_NewMethod(class.as_type_ptr(), definition))? };
    class.setattr(M::NAME.to_string_lossy().as_ref(), method)
}

/// The function that Python calls. No panic crosses it.
unsafe extern "C" fn enter<M: Method>(
    this: *mut ffi::PyObject,
    values: *const *mut ffi::PyObject,
    positional: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let called = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: Python calls with its lock held. A method's descriptor accepts only instances of its class.
        let (py, this) = unsafe {
            let py = Python::assume_attached();
            (py, Borrowed::from_ptr(py, this).cast_unchecked::<M::Class>())
        };
        let positional = positional.unsigned_abs();
        let keywords = if names.is_null() {
            0
        } else {
            // SAFETY: it is a tuple.
            unsafe { ffi::PyTuple_Size(names) }.unsigned_abs()
        };
        let values = match positional + keywords {
            0 => &[][..],
            // SAFETY: this many values are there, and they stay alive until the call returns.
            count => unsafe { slice::from_raw_parts(values, count) },
        };
        let arguments = Arguments { method: M::NAME, py, values, positional, names };
        let called = M::call(&this, &arguments);
        if events::any()
            && let Err(error) = events::deliver(M::Class::limiter_of(&this))
        {
            return raise(error);
        }
        match called {
            Ok(value) => value.into_ptr(),
            Err(error) => raise(error),
        }
    }));
    match called {
        Ok(value) => value,
        Err(panic) => {
            // Dropping the payload could panic again. Leaking one box is the smaller harm.
            std::mem::forget(panic);
            raise(PySystemError::new_err("shmlimit panicked: please report this"))
        }
    }
}

/// Raises an exception in Python. PyO3 drops the exception's parts at once only where PyO3 itself has noted that
/// Python's lock is held. Elsewhere it defers dropping them, and a loop in which every call fails would fill the
/// memory.
#[cold]
fn raise(error: PyErr) -> *mut ffi::PyObject {
    // SAFETY: Python called this code with its lock held. `Python::attach` would refuse while the interpreter shuts
    // down, and destructors that run then may call this too.
    unsafe { Python::attach_unchecked(|py| error.restore(py)) };
    std::ptr::null_mut()
}

/// Runs work that needs a segment's lock. If another process or thread holds that lock, Python's other threads run
/// meanwhile.
#[inline]
pub fn detach_if_busy<R: Send>(py: Python<'_>, is_busy: bool, work: impl FnOnce() -> R + Send) -> R {
    if is_busy { py.detach(work) } else { work() }
}
