//! The state of limiters as text for Prometheus and OpenMetrics, as `shmlimit metrics` prints it.
//!
//! These functions turn snapshots into text and do nothing else: the caller takes the snapshots and sends the text, such as
//! from the HTTP server that a program has already. The counts live in the shared file, so they cover every program that
//! uses the limiter, and one program of a machine is enough to export them. `docs/metrics.md` lists names and meanings.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! use shmlimit::{Limiter, Request, metrics};
//!
//! let limiter = Limiter::builder("tmdb").directory(directory.path()).open()?;
//! limiter.acquire(&Request::new())?.release()?;
//!
//! let text = metrics::prometheus([&limiter.snapshot()?]);
//! assert!(text.contains("shmlimit_granted_total{limiter=\"tmdb\"} 1\n"));
//! # Ok(()) }
//! ```

mod data_model;
mod definitions;
mod writer;

use crate::Snapshot;
// The tool uses this for NDJSON.
#[doc(hidden)]
pub use data_model::cumulative;
#[doc(hidden)]
pub use definitions::{by_code, rule_names, shown_fields};

/// The syntax of the text.
///
/// ```
/// use shmlimit::metrics::{self, Format};
///
/// assert!(metrics::text(Format::OpenMetrics, []).ends_with("# EOF\n"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// The text format of Prometheus, version 0.0.4.
    Prometheus,
    /// The OpenMetrics standard, version 1.0.
    OpenMetrics,
}

impl Format {
    /// The `Content-Type` of an HTTP response with this text.
    ///
    /// ```
    /// use shmlimit::metrics::Format;
    ///
    /// assert!(Format::Prometheus.content_type().starts_with("text/plain;"));
    /// assert!(Format::OpenMetrics.content_type().starts_with("application/openmetrics-text;"));
    /// ```
    pub const fn content_type(self) -> &'static str {
        match self {
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// The metrics of these limiters in the text format of Prometheus.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// use shmlimit::{Limiter, metrics};
///
/// let open = |name| Limiter::builder(name).directory(directory.path()).open();
/// let snapshots = [open("tmdb")?.snapshot()?, open("github")?.snapshot()?];
/// let text = metrics::prometheus(&snapshots);
/// assert!(text.contains("shmlimit_up{limiter=\"tmdb\"} 1\nshmlimit_up{limiter=\"github\"} 1\n"));
/// # Ok(()) }
/// ```
pub fn prometheus<'s>(snapshots: impl IntoIterator<Item = &'s Snapshot>) -> String {
    text(Format::Prometheus, snapshots.into_iter().map(readable))
}

/// The metrics of these limiters in the OpenMetrics format.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let limiter = shmlimit::Limiter::builder("tmdb").directory(directory.path()).open()?;
/// let text = shmlimit::metrics::open_metrics([&limiter.snapshot()?]);
/// assert!(text.contains("# TYPE shmlimit_granted counter\n") && text.ends_with("# EOF\n"));
/// # Ok(()) }
/// ```
pub fn open_metrics<'s>(snapshots: impl IntoIterator<Item = &'s Snapshot>) -> String {
    text(Format::OpenMetrics, snapshots.into_iter().map(readable))
}

/// The metrics of limiters, some of which may be unreadable: damaged, or not accessible. Such a limiter has a name
/// and no snapshot, and its `shmlimit_up` is 0, so that an alert can find it.
///
/// ```
/// use shmlimit::metrics::{self, Format};
///
/// let text = metrics::text(Format::Prometheus, [("tmdb", None)]);
/// assert!(text.contains("shmlimit_up{limiter=\"tmdb\"} 0\n"));
/// ```
pub fn text<'s>(
    format: Format,
    limiters: impl IntoIterator<Item = (&'s str, Option<&'s Snapshot>)>,
) -> String {
    writer::write(&definitions::families(limiters), format)
}

fn readable(snapshot: &Snapshot) -> (&str, Option<&Snapshot>) {
    (&snapshot.name, Some(snapshot))
}
