//! Finding a limiter.

use crate::args::{Asking, Place};
use crate::failure::Failure;
use crate::output;
use shmlimit::config::nearest;
use shmlimit::{Builder, Error, Limiter, Listing, Request, presets};
use std::io::ErrorKind;
use std::path::Path;

/// The builder for a name, in the place chosen.
pub fn builder(place: &Place, name: &str) -> Builder {
    let mut builder = Limiter::builder(name);
    if let Some(dir) = &place.dir {
        builder = builder.directory(dir);
    }
    if place.allow_network_fs { builder.allow_network_fs() } else { builder }
}

/// Opens a limiter to use it; one of a preset's name is made if need be.
pub fn to_use(place: &Place, name: &str) -> Result<Limiter, Failure> {
    if presets::NAMES.contains(&name) {
        let limiter = builder(place, name).open()?;
        note(limiter.directory_note());
        return Ok(limiter);
    }
    existing(place, name)?.ok_or_else(|| unknown(place, name))
}

/// Opens a limiter if it is there. Makes nothing, not even the directory.
pub fn existing(place: &Place, name: &str) -> Result<Option<Limiter>, Failure> {
    match builder(place, name).open_existing() {
        Ok(limiter) => {
            note(limiter.directory_note());
            Ok(Some(limiter))
        }
        Err(Error::UnknownLimiter { .. }) => Ok(None),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether a failure only says that there is no directory yet.
pub fn is_missing(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == ErrorKind::NotFound)
}

/// Says that there is no such limiter, and which one may have been meant.
pub fn unknown(place: &Place, name: &str) -> Failure {
    let Listing { directory, names, .. } = Limiter::list(place.dir.as_deref()).unwrap_or_default();
    let near = nearest(name, names.iter().map(String::as_str).chain(presets::NAMES));
    let meant = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
    let at =
        if directory.as_os_str().is_empty() { String::new() } else { format!(" in {}", directory.display()) };
    Failure::Usage(format!(
        "no limiter {name:?}{at}, and no preset of that name{meant}\nmake it with: shmlimit init {name} --rate 35/s"
    ))
}

/// What is asked of a limiter.
pub fn request(asking: &Asking) -> Request<'_> {
    let request = Request::new().priority(asking.priority);
    asking.cost.iter().fold(request, |request, (unit, amount)| request.cost(unit, *amount))
}

/// Where a limiter's segment is.
pub fn segment_path(directory: &Path, name: &str) -> std::path::PathBuf {
    directory.join(format!("{name}.shm"))
}

pub fn note(note: Option<&str>) {
    if let Some(note) = note {
        output::remark(&format!("note: {note}"));
    }
}
