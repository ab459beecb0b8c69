//! Reads limiters for `metrics`.

use crate::open;
use crate::options::Location;
use crate::poller::without_observer;
use crate::ui::failure::Failure;
use shmlimit::metrics::{self, Format};
use shmlimit::{Limiter, Snapshot};

/// A limiter's snapshot, or why it cannot be read.
pub struct Observed {
    pub name: String,
    pub snapshot: Result<Snapshot, Failure>,
}

/// Reads all limiters, or the one with that name. A limiter that vanishes in the meantime is left out.
pub fn observe(location: &Location, name: Option<&str>) -> Result<Vec<Observed>, Failure> {
    let names = match name {
        Some(name) => vec![name.to_owned()],
        None => match Limiter::list(location.dir.as_deref()) {
            Ok(listing) => listing.names,
            Err(error) if open::is_missing(&error) => Vec::new(),
            Err(error) => return Err(error.into()),
        },
    };
    let mut seen = Vec::new();
    for name in names {
        let snapshot = match open::observer(location, &name) {
            Ok(None) => continue,
            Ok(Some(limiter)) => limiter.snapshot().map_err(Failure::from),
            Err(failure) => Err(failure),
        };
        seen.push(Observed { name, snapshot: snapshot.map(without_observer) });
    }
    Ok(seen)
}

/// Returns the metrics of these limiters as text.
pub fn text(seen: &[Observed], format: Format) -> String {
    metrics::text(format, seen.iter().map(|one| (one.name.as_str(), one.snapshot.as_ref().ok())))
}
