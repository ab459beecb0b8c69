//! Opens limiters, and explains what to do if a name does not exist.

use crate::options::{ENV_GROUP, Location, RequestOptions};
use crate::platform;
use crate::ui::failure::Failure;
use crate::ui::{output, suggestion};
use shmlimit::config::nearest;
use shmlimit::environment::Change;
use shmlimit::{Builder, Error, Limiter, Listing, Request, paths, presets};
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::Path;

/// Returns the builder for a name in the chosen directory.
pub fn builder(location: &Location, name: &str) -> Builder {
    let mut builder = Limiter::builder(name);
    if let Some(dir) = &location.dir {
        builder = builder.directory(dir);
    }
    if location.allow_network_fs { builder.allow_network_fs() } else { builder }
}

/// Opens a limiter for calls. A limiter with a preset's name is created if necessary.
pub fn for_requests(location: &Location, name: &str, options: &RequestOptions) -> Result<Limiter, Failure> {
    existing_or_preset(location, name, grouped(builder(location, name), options.group.as_deref()))
}

/// Opens a limiter for the calls of a command: limiters show the command as the caller instead of this tool.
pub fn for_command(
    location: &Location,
    name: &str,
    options: &RequestOptions,
    command: &OsStr,
) -> Result<Limiter, Failure> {
    let program = Path::new(command).file_name().unwrap_or(command).to_string_lossy();
    let builder = builder(location, name).program(&program);
    existing_or_preset(location, name, grouped(builder, options.group.as_deref()))
}

/// Opens a limiter for an operator's change. A limiter with a preset's name is created if necessary.
pub fn as_operator(location: &Location, name: &str) -> Result<Limiter, Failure> {
    existing_or_preset(location, name, builder(location, name).operator())
}

/// As [`as_operator`], but records the user's name instead of the program's. A pause may last after this program
/// ends, and people want to know who began it.
pub fn as_user(location: &Location, name: &str) -> Result<Limiter, Failure> {
    existing_or_preset(location, name, builder(location, name).operator().program(&platform::user_name()))
}

/// As [`as_user`], but only if the limiter exists.
pub fn existing_as_user(location: &Location, name: &str) -> Result<Option<Limiter>, Failure> {
    open_existing(builder(location, name).operator().program(&platform::user_name()))
}

fn existing_or_preset(location: &Location, name: &str, builder: Builder) -> Result<Limiter, Failure> {
    if presets::NAMES.contains(&name) {
        let limiter = builder.open()?;
        remark_notes(&limiter);
        return Ok(limiter);
    }
    open_existing(builder)?.ok_or_else(|| unknown_limiter(location, name))
}

/// Sets the group that shares turns (R143): the one given here or in the environment, else the session.
fn grouped(builder: Builder, name: Option<&str>) -> Builder {
    match name {
        Some(name) => builder.group(name),
        // The library reads this variable itself.
        None if std::env::var_os(ENV_GROUP).is_some_and(|name| !name.is_empty()) => builder,
        None => builder.group(platform::session()),
    }
}

/// Opens a limiter as an operator if it exists. Creates nothing, not even the directory.
pub fn existing_as_operator(location: &Location, name: &str) -> Result<Option<Limiter>, Failure> {
    open_existing(builder(location, name).operator())
}

/// As [`existing_as_operator`], but ignores the environment, because options override it.
pub fn existing_ignoring_environment(location: &Location, name: &str) -> Result<Option<Limiter>, Failure> {
    open_existing(builder(location, name).operator().ignore_environment())
}

/// Opens a limiter as an observer if it exists. An observer changes nothing, whatever the environment says and
/// however long it runs.
pub fn observer(location: &Location, name: &str) -> Result<Option<Limiter>, Failure> {
    open_existing(builder(location, name).observer())
}

fn open_existing(builder: Builder) -> Result<Option<Limiter>, Failure> {
    match builder.open_existing() {
        Ok(limiter) => {
            remark_notes(&limiter);
            Ok(Some(limiter))
        }
        Err(Error::UnknownLimiter { .. }) => Ok(None),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns whether the error only means that the directory does not exist yet.
pub fn is_missing(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == ErrorKind::NotFound)
}

/// Reports that the limiter does not exist, and suggests a similar name.
pub fn unknown_limiter(location: &Location, name: &str) -> Failure {
    let Listing { directory, names, note, .. } = Limiter::list(location.dir.as_deref()).unwrap_or_default();
    // The limiter may exist, but this user may not see it. The note says so.
    remark_note(note.as_deref());
    let at =
        if directory.as_os_str().is_empty() { String::new() } else { format!(" in {}", directory.display()) };
    if presets::NAMES.contains(&name) {
        return Failure::Usage(format!(
            "no limiter {name:?} yet{at}; it is a preset, and the first use creates it: shmlimit run {name} -- echo \
             hello"
        ));
    }
    remark_note(limiters_elsewhere(location, &directory).as_deref());
    let near = nearest(name, names.iter().map(String::as_str).chain(presets::NAMES));
    let meant = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
    let make = match name.starts_with('-') {
        true => format!("shmlimit init --rate 35/s -- {name}"),
        false => format!("shmlimit init {name} --rate 35/s"),
    };
    Failure::Usage(format!(
        "no limiter {name:?}{at}, and no preset of that name{meant}\ncreate it with: {make}"
    ))
}

/// Reports that there is no limiter to remove. The advice to create it would be wrong here.
pub fn nothing_to_remove(location: &Location, name: &str) -> Failure {
    match unknown_limiter(location, name) {
        Failure::Usage(message) => {
            let first = message.lines().next().unwrap_or_default();
            Failure::Usage(first.split("; it is a preset").next().unwrap_or_default().to_owned())
        }
        failure => failure,
    }
}

/// Describes limiters in a default directory that is not in use. The default depends on which directories exist, so a
/// directory that is created later hides those limiters.
pub fn limiters_elsewhere(location: &Location, in_use: &Path) -> Option<String> {
    let candidates = paths::candidates(location.dir.as_deref());
    let others = candidates.iter().filter(|candidate| candidate.path != in_use);
    let listed = others.filter_map(|candidate| Limiter::list(Some(&candidate.path)).ok());
    let listing = listed.into_iter().find(|listing| !listing.names.is_empty())?;
    let (directory, names) = (listing.directory.display().to_string(), listing.names.join(", "));
    Some(format!(
        "{directory} has these limiters: {names}; to use that directory: --dir {}",
        suggestion::shell_words(&[&directory])
    ))
}

/// Returns the request that the options describe.
pub fn request(options: &RequestOptions) -> Request<'_> {
    let request = Request::new().priority(options.priority);
    options.cost.iter().fold(request, |request, (unit, amount)| request.cost(unit, *amount))
}

/// Prints remarks about a limiter that was just opened.
fn remark_notes(limiter: &Limiter) {
    remark_note(limiter.directory_note());
    remark_used_up(limiter);
    remark_environment(limiter.name(), limiter.environment_changes());
}

/// Reports which settings environment variables changed for every program that uses the limiter.
pub fn remark_environment(name: &str, changes: &[Change]) {
    for change in changes {
        let undo = |before: &String| {
            format!(
                " (undo: shmlimit set {} {})",
                suggestion::operand(name),
                suggestion::shell_words(&[&change.key, before])
            )
        };
        let undo = change.before.as_ref().map(undo).unwrap_or_default();
        output::remark_always(&format!("{name}: {change}{undo}"));
    }
}

/// Explains why a new limiter starts used up.
pub fn remark_used_up(limiter: &Limiter) {
    if limiter.was_made_used_up() {
        let name = limiter.name();
        output::remark(&format!(
            "warning: {name} starts used up: its file was deleted while programs use it, so their counts are lost; to start \
             with full buckets: shmlimit init {} --replace",
            suggestion::shell_words(&[name])
        ));
    }
}

pub fn remark_note(note: Option<&str>) {
    if let Some(note) = note {
        output::remark(&format!("note: {note}"));
    }
}
