//! Looking at limiters again and again: they come, go, are replaced and get damaged meanwhile.
//!
//! Each is attached to once and looked at through the same handle. Nothing is made, and nothing is disturbed.

use crate::args::Place;
use crate::failure::Failure;
use crate::open;
use shmlimit::{Error, Limiter, Snapshot};
use std::collections::BTreeMap;

pub struct Lookout<'p> {
    place: &'p Place,
    only: Option<String>,
    handles: BTreeMap<String, Limiter>,
}

/// A limiter at one moment, or why it cannot be shown.
pub type Sight = (String, Result<Snapshot, String>);

impl<'p> Lookout<'p> {
    pub fn new(place: &'p Place, only: Option<String>) -> Lookout<'p> {
        Lookout { place, only, handles: BTreeMap::new() }
    }

    /// All that are there now, by name.
    pub fn look(&mut self) -> Result<Vec<Sight>, Failure> {
        let names = match &self.only {
            Some(name) => vec![name.clone()],
            None => match Limiter::list(self.place.dir.as_deref()) {
                Ok(listing) => listing.names,
                Err(error) if open::is_missing(&error) => Vec::new(),
                Err(error) => return Err(error.into()),
            },
        };
        self.handles.retain(|name, _| names.contains(name));
        Ok(names.into_iter().filter_map(|name| self.sight(name)).collect())
    }

    fn sight(&mut self, name: String) -> Option<Sight> {
        let seen = self.snapshot(&name);
        if seen.is_err() {
            // What is there next time may be another one.
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
                let limiter = open::builder(self.place, name).only_to_look().open_existing()?;
                self.handles.entry(name.to_owned()).or_insert(limiter)
            }
        };
        limiter.snapshot().map(without_me)
    }
}

/// Who looks is attached too, and of no interest.
pub fn without_me(mut snapshot: Snapshot) -> Snapshot {
    let me = std::process::id();
    snapshot.participants.retain(|one| one.pid != me || one.granted > 0 || one.refused > 0);
    snapshot
}
