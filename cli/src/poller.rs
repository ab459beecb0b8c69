//! Observes limiters repeatedly while they are created, removed, replaced or damaged.
//!
//! The poller attaches to each limiter once and reads it through the same handle. Polling changes nothing.

use crate::open;
use crate::options::Location;
use crate::ui::failure::Failure;
use shmlimit::{Error, Limiter, Snapshot};
use std::collections::BTreeMap;

pub struct Poller<'p> {
    location: &'p Location,
    only: Option<String>,
    handles: BTreeMap<String, Limiter>,
}

/// The snapshot of a limiter, or why it cannot be shown.
pub type Observation = (String, Result<Snapshot, String>);

impl<'p> Poller<'p> {
    pub fn new(location: &'p Location, only: Option<String>) -> Poller<'p> {
        Poller { location, only, handles: BTreeMap::new() }
    }

    /// Reads all limiters that exist now, in order of their names.
    pub fn poll(&mut self) -> Result<Vec<Observation>, Failure> {
        let names = match &self.only {
            Some(name) => vec![name.clone()],
            None => match Limiter::list(self.location.dir.as_deref()) {
                Ok(listing) => listing.names,
                Err(error) if open::is_missing(&error) => Vec::new(),
                Err(error) => return Err(error.into()),
            },
        };
        self.handles.retain(|name, _| names.contains(name));
        Ok(names.into_iter().filter_map(|name| self.observe(name)).collect())
    }

    fn observe(&mut self, name: String) -> Option<Observation> {
        let seen = self.snapshot(&name);
        if seen.is_err() {
            // At the next poll, another limiter may have this name.
            self.handles.remove(&name);
        }
        match seen {
            Ok(snapshot) => Some((name, Ok(snapshot))),
            Err(error) if matches!(error, Error::UnknownLimiter { .. }) || open::is_missing(&error) => None,
            Err(error) => Some((name, Err(error.to_string()))),
        }
    }

    fn snapshot(&mut self, name: &str) -> Result<Snapshot, Error> {
        let limiter = match self.handles.get(name) {
            Some(limiter) => limiter,
            None => {
                let limiter = open::builder(self.location, name).observer().open_existing()?;
                self.handles.entry(name.to_owned()).or_insert(limiter)
            }
        };
        limiter.snapshot().map(without_observer)
    }
}

/// Hides the observer's own attachment.
pub fn without_observer(mut snapshot: Snapshot) -> Snapshot {
    let me = std::process::id();
    snapshot.participants.retain(|one| one.pid != me || one.granted > 0 || one.refused > 0);
    snapshot
}
