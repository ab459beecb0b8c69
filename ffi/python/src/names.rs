//! Names that are used often, stored as Python's interned strings, so that comparing names means comparing
//! pointers.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple};
use shmlimit::{
    BreakerCommand, BreakerState, Fairness, NetError, OnMismatch, OutcomeClass, Priority, Reason,
    TransitionCause, WaitSource,
};
use shmlimit_kernel::policy::{Algorithm, BreakerKind};

macro_rules! keys {
    ($($key:ident = $name:literal),+ $(,)?) => {
        /// A keyword of a method.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Key {
            $(#[doc = $name] $key,)+
        }

        const KEYS: &[(Key, &str)] = &[$((Key::$key, $name)),+];
    };
}

keys! {
    Cost = "cost",
    Priority = "priority",
    Timeout = "timeout",
    Deadline = "deadline",
    Status = "status",
    Headers = "headers",
    Error = "error",
    Latency = "latency",
    Attempt = "attempt",
}

/// The values of `on_mismatch`.
pub const MISMATCHES: [(&str, OnMismatch); 3] =
    [("error", OnMismatch::Error), ("adopt", OnMismatch::Adopt), ("update", OnMismatch::Update)];

/// The interned names.
pub struct Names {
    keys: Vec<(Py<PyString>, Key)>,
    priorities: Vec<(Py<PyString>, Priority)>,
}

static NAMES: PyOnceLock<Names> = PyOnceLock::new();

impl Names {
    /// The interned names, created on first use.
    #[inline]
    pub fn get(py: Python<'_>) -> &'static Names {
        NAMES.get_or_init(py, || Names {
            keys: KEYS.iter().map(|(key, name)| (PyString::intern(py, name).unbind(), *key)).collect(),
            priorities: Priority::ALL
                .into_iter()
                .map(|priority| (PyString::intern(py, priority.as_str()).unbind(), priority))
                .collect(),
        })
    }

    /// The keyword with this name.
    #[inline]
    pub fn key(&self, name: &Bound<'_, PyAny>) -> Option<Key> {
        find(&self.keys, name).or_else(|| {
            // Names from a dictionary that was built at run time may be different objects than the interned
            // strings.
            let name = name.cast::<PyString>().ok()?.to_cow().ok()?;
            KEYS.iter().find(|(_, known)| **known == *name).map(|(key, _)| *key)
        })
    }

    /// The priority with this name.
    #[inline]
    pub fn priority(&self, name: &Bound<'_, PyAny>) -> Option<Priority> {
        find(&self.priorities, name)
    }
}

#[inline]
fn find<T: Copy>(known: &[(Py<PyString>, T)], name: &Bound<'_, PyAny>) -> Option<T> {
    known.iter().find(|(known, _)| known.as_ptr() == name.as_ptr()).map(|(_, value)| *value)
}

/// Every name of an enum of the library, by the name of its type in Python.
pub fn known(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let mut states: Vec<_> =
        BreakerKind::ALL.iter().flat_map(|kind| BreakerState::ALL.map(|state| state.as_str(*kind))).collect();
    states.sort_unstable();
    states.dedup();
    let known = PyDict::new(py);
    for (name, values) in [
        ("Priority", &Priority::ALL.map(Priority::as_str)[..]),
        ("Algorithm", &Algorithm::NAMES),
        ("Reason", &Reason::ALL.map(Reason::as_str)),
        ("BreakerState", &states),
        ("BreakerCommand", &BreakerCommand::ALL.map(BreakerCommand::as_str)),
        ("TransitionCause", &TransitionCause::ALL.map(TransitionCause::as_str)),
        ("NetError", &NetError::ALL.map(NetError::as_str)),
        ("OutcomeClass", &OutcomeClass::ALL.map(OutcomeClass::as_str)),
        ("WaitSource", &WaitSource::ALL.map(WaitSource::as_str)),
        ("Fairness", &Fairness::NAMES),
        ("OnMismatch", &MISMATCHES.map(|(name, _)| name)),
        ("ErrorCode", &crate::errors::codes()),
    ] {
        known.set_item(name, PyTuple::new(py, values)?)?;
    }
    Ok(known)
}
