//! The extension module of the Python package. It converts arguments and results and makes no decisions.
//!
//! The Python part is in `python/shmlimit`: exceptions, dataclasses, the decorator, awaiting. This module holds the
//! code that must be fast, and the code that waits without the interpreter's lock.

mod acquire;
mod advice;
mod arguments;
mod errors;
mod events;
mod grant;
mod limiter;
mod listeners;
mod method;
mod names;
mod outcome;
mod pending;
mod remedies;
mod snapshot;
mod test_clock;

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicI64, Ordering};

/// Refuses every interpreter of a process except the first one that imports the module. Objects that this module
/// stores, such as the exception classes, belong to one interpreter, and taking Python's lock means taking the lock
/// of one interpreter.
fn refuse_subinterpreters(py: Python<'_>) -> PyResult<()> {
    static INTERPRETER: AtomicI64 = AtomicI64::new(-1);
    // SAFETY: Python's lock is held, so an interpreter exists.
    let here = unsafe { pyo3::ffi::PyInterpreterState_GetID(pyo3::ffi::PyInterpreterState_Get()) };
    if here < 0 {
        return Err(PyErr::fetch(py));
    }
    match INTERPRETER.compare_exchange(-1, here, Ordering::Relaxed, Ordering::Relaxed) {
        Err(first) if first != here => Err(PyImportError::new_err(
            "shmlimit is used by another interpreter of this process, and cannot be used by several",
        )),
        _ => Ok(()),
    }
}

/// The Rust half of shmlimit.
#[pymodule]
mod _shmlimit {
    use pyo3::prelude::*;
    use pyo3::types::{PyDict, PyTuple};
    use std::path::PathBuf;

    #[pymodule_export]
    use super::advice::Advice;
    #[pymodule_export]
    use super::grant::Grant;
    #[pymodule_export]
    use super::limiter::Limiter;
    #[pymodule_export]
    use super::pending::EnqueuedCall;
    #[pymodule_export]
    use super::test_clock::TestClock;

    /// The names of the limiters in a directory (default: the usual one).
    #[pyfunction]
    #[pyo3(signature = (directory = None))]
    fn limiters(py: Python<'_>, directory: Option<PathBuf>) -> PyResult<Vec<String>> {
        match py.detach(|| shmlimit::Limiter::list(directory.as_deref())) {
            Ok(listing) => Ok(listing.names),
            // No limiter was created yet.
            Err(shmlimit::Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                Ok(Vec::new())
            }
            Err(error) => Err(super::errors::raised(py, &error)),
        }
    }

    /// The names that the library knows, by the type in `_names.py` that lists them.
    #[pyfunction]
    fn known_names(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        super::names::known(py)
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let py = module.py();
        super::refuse_subinterpreters(py)?;
        super::errors::load(py)?;
        super::events::keep();
        super::acquire::add_methods(py)?;
        super::grant::add_methods(py)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("layout_version", shmlimit_segment::layout::LAYOUT_VERSION)?;
        module.add("presets", PyTuple::new(py, shmlimit::presets::NAMES)?)
    }
}
