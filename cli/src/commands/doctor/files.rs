//! Checks the files in the directory that are not limiters.

use super::finding::Finding;
use crate::platform::{self, texts};
use crate::ui;
use shmlimit::DirectoryFacts;
use shmlimit::paths::{CREATION_LOCK, LimiterName};
use std::fs::Metadata;
use std::path::Path;
use std::time::Duration;

const CHECK: &str = "files";
/// The suffix of a mapped file that cannot be deleted yet: it stays until its last user closes it.
const GONE: &str = ".gone";
/// Temporary files older than this are leftovers, because creating a limiter never takes this long.
const OLD: Duration = Duration::from_secs(60);

pub fn check(facts: &DirectoryFacts, fix: bool, findings: &mut Vec<Finding>) {
    let directory = &facts.path;
    creation_lock(facts, fix, findings);
    let mut foreign = Vec::new();
    for name in names(directory) {
        let path = directory.join(&name);
        if is_temporary(&name) {
            let Some(left) = std::fs::symlink_metadata(&path).ok().filter(is_left_over) else { continue };
            let ours = platform::is_own_leftover(&left);
            let how = match name.ends_with(GONE) {
                true => "was left by a limiter that was removed while it was in use",
                false => "was left by a process that was killed while it created a limiter",
            };
            let finding = Finding::warn(CHECK, &name, how).advice(match ours {
                true => "remove it: shmlimit doctor --fix",
                false => "its owner may remove it",
            });
            findings.push(finding.repaired(fix && ours, || {
                std::fs::remove_file(&path).map_err(|error| error.to_string())?;
                Ok("removed".to_owned())
            }));
        } else if !is_one_of_ours(&name) {
            foreign.push(name);
        }
    }
    if !foreign.is_empty() {
        let list = foreign.iter().take(5).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = if foreign.len() > 5 { ", …" } else { "" };
        let message = format!("{list}{more}: not made by shmlimit, and not touched");
        findings.push(Finding::ok(CHECK, ui::count(foreign.len() as u64, "other files"), message));
    }
}

/// Returns whether a directory holds files, and only files that shmlimit creates.
pub fn are_all_ours(directory: &Path) -> bool {
    let names = names(directory);
    !names.is_empty() && names.iter().all(|name| is_one_of_ours(name) || is_temporary(name))
}

/// Checks the creation lock. A user who can write it can keep others from creating limiters. Such a user can also
/// cause a limiter that was deleted by hand to start used up or from an older state. A user who cannot open it cannot
/// create limiters.
fn creation_lock(facts: &DirectoryFacts, fix: bool, findings: &mut Vec<Finding>) {
    let Ok(file) = std::fs::symlink_metadata(facts.path.join(CREATION_LOCK)) else { return };
    if !file.is_file() {
        findings.push(
            Finding::bad(
                CHECK,
                CREATION_LOCK,
                "is not a regular file, so no limiter can be created or removed",
            )
            .advice(format!("remove it: {}", texts::remove_file(&facts.path.join(CREATION_LOCK)))),
        );
    } else if let Ok(Some(permission_mismatch)) = facts.permission_mismatch(CREATION_LOCK) {
        let finding = Finding::warn(CHECK, CREATION_LOCK, permission_mismatch)
            .advice("repair it: shmlimit doctor --fix");
        findings.push(finding.repaired(fix, || match facts.fix_permissions(CREATION_LOCK) {
            Ok(Some(access)) => Ok(format!("now {access}")),
            Ok(None) => Err("shmlimit did not make it".to_owned()),
            Err(error) => Err(error.to_string()),
        }));
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned())).collect();
    names.sort();
    names
}

fn is_one_of_ours(name: &str) -> bool {
    name == CREATION_LOCK || LimiterName::of_file(name).is_some() || LimiterName::is_note(name)
}

/// Matches `.shmlimit-PID-TIME.tmp` and `.gone`. A killed replacement leaves `.shmlimit-0-HASH.tmp`.
fn is_temporary(name: &str) -> bool {
    let whole = name.strip_suffix(".tmp").or_else(|| name.strip_suffix(GONE));
    let inner = whole.and_then(|whole| whole.strip_prefix(".shmlimit-"));
    let Some((pid, time)) = inner.and_then(|inner| inner.split_once('-')) else { return false };
    let all = |text: &str, is: fn(&u8) -> bool| !text.is_empty() && text.as_bytes().iter().all(is);
    all(pid, u8::is_ascii_digit) && all(time, u8::is_ascii_hexdigit)
}

fn is_left_over(file: &Metadata) -> bool {
    let age = file.modified().ok().and_then(|then| then.elapsed().ok());
    age.is_some_and(|age| age > OLD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removal_note_counts_as_our_file() {
        assert!(is_one_of_ours(".api.removed") && !is_one_of_ours("api.removed"));
    }

    #[test]
    fn only_names_that_creators_use_are_temporary() {
        assert!(is_temporary(".shmlimit-123-18f0a.tmp"));
        for name in
            [".shmlimit-123.tmp", ".shmlimit--.tmp", "shmlimit-1-2.tmp", ".shmlimit-1-2", ".shmlimit-1-x.tmp"]
        {
            assert!(!is_temporary(name), "{name}");
        }
    }
}
