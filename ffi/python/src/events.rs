//! Passes the events that the library reports through `tracing` to Python: to the logger "shmlimit", and to
//! callbacks.
//!
//! The library reports events in the middle of its work, where Python code must not run. So events are stored by
//! thread, and every call from Python delivers the events of its thread after its work is done.

use crate::snapshot;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use shmlimit::{Document, Value};
use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// The most events that a thread stores. A thread that makes no further call must not fill the memory.
const MOST: usize = 256;

/// The number of events that no thread has delivered yet. Calls check this first, because reading a thread-local
/// variable takes longer.
static KEPT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static EVENTS: RefCell<Vec<(bool, Document)>> = const { RefCell::new(Vec::new()) };
}

/// Stores the events of the library. The extension module has its own copy of `tracing`, so other modules do not
/// see this subscriber.
struct EventCollector;

/// Starts storing events.
pub fn keep() {
    // This fails if it was done before, in an interpreter that imports the module a second time.
    drop(tracing::subscriber::set_global_default(EventCollector));
}

impl Subscriber for EventCollector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "shmlimit" && *metadata.level() <= Level::INFO
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::INFO)
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(Document::new());
        event.record(&mut fields);
        let is_warning = *event.metadata().level() <= Level::WARN;
        EVENTS.with_borrow_mut(|events| {
            if events.len() < MOST {
                events.push((is_warning, fields.0));
                KEPT.fetch_add(1, Ordering::Relaxed);
            }
        });
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Fields(Document);

impl Fields {
    fn add(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.push((field.name().into(), value.into()));
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, format!("{value:?}"));
    }
}

/// Whether any thread has events to deliver.
#[inline]
pub fn any() -> bool {
    KEPT.load(Ordering::Relaxed) != 0
}

/// Delivers the events of this thread. A call of this limiter caused them.
#[inline]
pub fn deliver(limiter: &Bound<'_, PyAny>) -> PyResult<()> {
    if any() { deliver_all(limiter) } else { Ok(()) }
}

#[cold]
fn deliver_all(limiter: &Bound<'_, PyAny>) -> PyResult<()> {
    static REPORT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = limiter.py();
    // A separate statement releases the borrow: the Python code that handles events may cause more events.
    let events = EVENTS.take();
    if events.is_empty() {
        return Ok(());
    }
    KEPT.fetch_sub(events.len(), Ordering::Relaxed);
    // An interpreter that is shutting down has no modules any more, so the events are dropped.
    let Ok(report) = REPORT.import(py, "shmlimit._callbacks", "report") else { return Ok(()) };
    // An event that cannot be reported must not keep back the others.
    let mut done = Ok(());
    for (is_warning, fields) in &events {
        let reported =
            snapshot::as_dict(py, fields).and_then(|fields| report.call1((limiter, *is_warning, fields)));
        done = done.and(reported.map(drop));
    }
    done
}
