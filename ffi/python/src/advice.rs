//! The limiter's answer to an outcome.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};
use shmlimit::{Limiter, Transition};

/// The limiter's answer to an outcome: what it changed, and whether to try again.
#[pyclass(frozen, module = "shmlimit")]
pub struct Advice {
    inner: shmlimit::Advice,
    transitions: Vec<Change>,
}

/// The names of the old state, of the new state, and of the cause.
type Change = (&'static str, &'static str, &'static str);

static TRANSITION: PyOnceLock<Py<PyType>> = PyOnceLock::new();

impl Advice {
    /// Names the states as the limiter's breaker does.
    #[inline]
    pub fn new(inner: shmlimit::Advice, limiter: Option<&Limiter>) -> Advice {
        let transitions =
            if inner.transitions.is_empty() { Vec::new() } else { changes(&inner.transitions, limiter) };
        Advice { inner, transitions }
    }
}

/// The names of transitions.
pub fn changes(transitions: &[Transition], limiter: Option<&Limiter>) -> Vec<Change> {
    let policy = limiter.and_then(|limiter| limiter.policy().ok());
    let kind = policy.map_or(shmlimit_kernel::policy::BreakerKind::Fsm, |policy| policy.breaker().kind());
    transitions.iter().map(|one| (one.from.as_str(kind), one.to.as_str(kind), one.cause.as_str())).collect()
}

/// Transitions as Python's dataclass. They happened just now.
pub fn as_objects<'py>(py: Python<'py>, changes: &[Change]) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let class = TRANSITION.import(py, "shmlimit", "Transition")?;
    changes.iter().map(|(from, to, reason)| class.call1((0.0, *from, *to, *reason))).collect()
}

#[pymethods]
impl Advice {
    /// How the call ended, as far as it matters: "ok", "429", "5xx", "net" or "ignored".
    #[getter]
    fn outcome_class(&self) -> &'static str {
        self.inner.outcome_class.as_str()
    }

    /// The number of outcomes that count, including this one.
    #[getter]
    fn samples(&self) -> u32 {
        self.inner.samples
    }

    /// The ratio of errors among them.
    #[getter]
    fn error_ratio(&self) -> f64 {
        self.inner.error_ratio
    }

    /// The number of consecutive 429s.
    #[getter]
    fn consec429(&self) -> u32 {
        self.inner.consec429
    }

    /// Seconds to wait before trying again; random if the policy has jitter.
    #[getter]
    fn wait(&self) -> f64 {
        self.inner.wait.as_secs_f64()
    }

    /// The longest possible wait.
    #[getter]
    fn wait_at_most(&self) -> f64 {
        self.inner.wait_at_most.as_secs_f64()
    }

    /// The source of the wait: "retry_after" or "backoff"; None if no wait is needed.
    #[getter]
    fn wait_source(&self) -> Option<&'static str> {
        self.inner.wait_source.map(|source| source.as_str())
    }

    /// Whether to try again.
    #[getter]
    fn retry(&self) -> bool {
        self.inner.retry
    }

    /// The transitions that this outcome caused, and those of timers that were due.
    #[getter]
    fn transitions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, as_objects(py, &self.transitions)?)
    }

    fn __repr__(&self) -> String {
        let shmlimit::Advice { samples, error_ratio, consec429, retry, .. } = self.inner;
        let source = self.wait_source().map_or_else(|| "None".to_owned(), |source| format!("'{source}'"));
        format!(
            "Advice(outcome_class='{}', samples={samples}, error_ratio={error_ratio}, consec429={consec429}, wait={}, \
             wait_at_most={}, wait_source={source}, retry={}, transitions={})",
            self.outcome_class(),
            self.wait(),
            self.wait_at_most(),
            if retry { "True" } else { "False" },
            self.transitions.len(),
        )
    }
}
