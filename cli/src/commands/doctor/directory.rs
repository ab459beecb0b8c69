//! Checks the directory: which one it is and why, its permissions, and whether shared memory works there.

use super::files;
use super::finding::Finding;
use crate::open;
use crate::options::Location;
use crate::platform::{self, texts};
use shmlimit::{DirectoryFacts, Error, Limiter, Storage, paths};
use std::io;
use std::path::{Path, PathBuf};

const CHECK: &str = "directory";
const STORAGE: &str = "storage";
/// The free space below which the doctor warns: room for a few limiters.
const LITTLE: u64 = 2 << 20;

/// Checks the directory and returns its facts if it can be used.
pub fn check(location: &Location, fix: bool, findings: &mut Vec<Finding>) -> Option<DirectoryFacts> {
    findings.extend(paths::former_defaults().iter().filter_map(|former| left_behind(former)));
    let look = || Limiter::directory_facts(location.dir.as_deref(), location.allow_network_fs);
    let mut facts = look();
    if let Err(error) = &facts {
        if open::is_missing(error) {
            findings.push(missing(location, error));
            return None;
        }
        let finding = refused(error).repaired(fix && closable(error).is_some(), || close(error));
        let closed = finding.fixed;
        findings.push(finding);
        if !closed {
            return None;
        }
        facts = look();
    }
    let facts = match facts {
        Ok(facts) => facts,
        Err(error) => {
            findings.push(refused(&error));
            return None;
        }
    };
    findings.push(described(location, &facts));
    findings.extend(facts.fallback.as_ref().map(|why| Finding::ok(CHECK, "the usual default", why.as_str())));
    findings.extend(facts.note.as_ref().map(|note| skipped(note)));
    findings.extend(open::limiters_elsewhere(location, &facts.path).map(|there| {
        Finding::warn(CHECK, "another default directory", there).advice(
            "programs do not find limiters there without --dir; remove those that are not needed with: shmlimit rm",
        )
    }));
    findings.extend(parents(&facts.path));
    findings.push(storage(&facts));
    Some(facts)
}

/// Reports limiters in a directory that earlier versions used by default.
fn left_behind(former: &Path) -> Option<Finding> {
    let names = Limiter::list(Some(former)).ok()?.names;
    let found = format!("has limiters that no program finds without --dir: {}", names.join(", "));
    (!names.is_empty()).then(|| {
        Finding::warn(CHECK, former.display().to_string(), found).advice(
            "earlier versions kept limiters there; remove the directory once no program of such a version runs",
        )
    })
}

/// Returns how the directory was chosen.
fn chosen_by(location: &Location) -> &'static str {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    match location.dir {
        Some(_) => "--dir",
        None if set("SHMLIMIT_DIR") => "SHMLIMIT_DIR",
        None if set("ANIVAULT_DIR") => "ANIVAULT_DIR",
        None => "the default",
    }
}

fn missing(location: &Location, error: &Error) -> Finding {
    let path = match error {
        Error::Io { path, .. } => path.clone(),
        _ => PathBuf::new(),
    };
    let subject = path.display().to_string();
    let parent = std::path::absolute(&path).ok().and_then(|path| path.parent().map(Path::to_owned));
    match parent.filter(|parent| !parent.is_dir()) {
        Some(parent) => Finding::bad(
            CHECK,
            subject,
            format!("does not exist, and cannot be created: {} does not exist either", parent.display()),
        )
        .advice(format!("create it with: {}, or choose another with --dir", texts::make_directory(&parent))),
        None => match try_to_make(&path) {
            Ok(()) => Finding::ok(
                CHECK,
                subject,
                format!(
                    "does not exist yet; the first limiter creates it (directory chosen by: {})",
                    chosen_by(location)
                ),
            ),
            Err(error) => {
                Finding::bad(CHECK, subject, format!("does not exist, and cannot be created: {error}"))
                    .advice("choose a directory that you may write to, with --dir or SHMLIMIT_DIR")
            }
        },
    }
}

/// Tests whether the directory can be created: creates another one next to it and removes that again.
fn try_to_make(path: &Path) -> io::Result<()> {
    let beside = path.with_file_name(format!(".shmlimit-doctor-{}", std::process::id()));
    std::fs::create_dir(&beside)?;
    std::fs::remove_dir(&beside)
}

/// Reports a directory that the library refuses, with the library's message.
fn refused(error: &Error) -> Finding {
    match error {
        Error::Directory { path, problem, remedy } => {
            Finding::bad(CHECK, path.display().to_string(), format!("cannot be trusted: {problem}"))
                .advice(remedy.as_str())
        }
        Error::NetworkFileSystem { path, kind } => Finding::bad(
            STORAGE,
            path.display().to_string(),
            format!("is on a {kind} file system, where shared memory cannot be trusted"),
        )
        .advice("choose a local directory with --dir, or allow it with --allow-network-fs"),
        error => Finding::bad(CHECK, "directory", error.to_string()),
    }
}

fn described(location: &Location, facts: &DirectoryFacts) -> Finding {
    let owner = facts.owner.name();
    let who = match facts.shared_with {
        Some(group) => format!("shared with group {}", group.name()),
        None => "not shared".to_owned(),
    };
    Finding::ok(
        CHECK,
        facts.path.display().to_string(),
        format!("{} ({}, owner {owner}), {who}", chosen_by(location), facts.access),
    )
}

fn skipped(note: &str) -> Finding {
    Finding::warn(CHECK, "a better directory", note).advice(
        "programs that may use that directory use the limiters there, and so share no limit with this \
                 program, even if the names are equal; set SHMLIMIT_DIR to one directory for all programs",
    )
}

/// Reports a parent directory in which another user could replace this directory.
fn parents(path: &Path) -> Option<Finding> {
    let (parent, problem) = platform::unsafe_parent(path)?;
    Some(Finding::warn(CHECK, parent.display().to_string(), problem).advice(texts::SAFE_PARENTS))
}

fn storage(facts: &DirectoryFacts) -> Finding {
    let subject = facts.path.display().to_string();
    let kind = match facts.storage {
        Storage::Memory => "in memory, emptied at boot".to_owned(),
        Storage::Network(kind) => format!("on a {kind} file system, allowed by --allow-network-fs"),
        _ => "on a disk, survives a reboot".to_owned(),
    };
    let room = platform::free_space(&facts.path);
    if room.as_ref().is_some_and(|room| !room.another_file) {
        return Finding::bad(STORAGE, subject, "its file system cannot hold another file (no free inode)")
            .advice("delete some files there, or choose another directory with --dir");
    }
    match facts.self_test() {
        Ok(()) => {}
        Err(Error::Liveness { problem, remedy, .. }) => {
            let message = format!("cannot tell living processes from exited ones: {problem}");
            return Finding::bad(STORAGE, subject, message).advice(remedy);
        }
        Err(error) => {
            return Finding::bad(STORAGE, subject, error.to_string())
                .advice("choose a directory of your own on a local file system with --dir");
        }
    }
    let free = room.map(|room| room.free);
    match free.filter(|free| *free < LITTLE) {
        Some(free) => {
            let message = format!("{kind}; {} KiB are free, and a limiter needs 288", free / 1024);
            Finding::warn(STORAGE, subject, message).advice("free some space, or choose another with --dir")
        }
        None => Finding::ok(STORAGE, subject, format!("{kind}; shared memory and locks work (tested)")),
    }
}

/// Returns the path of a directory that can be restricted: it belongs to this user, is open to others, and holds only
/// files of shmlimit.
fn closable(error: &Error) -> Option<&Path> {
    let Error::Directory { path, .. } = error else { return None };
    platform::restrict_directory(path, true)?.ok()?;
    files::are_all_ours(path).then_some(path)
}

fn close(error: &Error) -> Result<String, String> {
    closable(error)
        .and_then(|path| platform::restrict_directory(path, false))
        .ok_or("it has files that shmlimit did not make")?
}
