//! The machine, the session and the terminal.

use crate::platform::Machine;
use nix::unistd::{Pid, getsid};
use shmlimit::Attached;
use std::env;
use std::fs::read_to_string;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Returns a name of the session that is unique on the machine. The number alone is not: containers number their
/// sessions independently.
pub fn session() -> String {
    // A session that began outside this container has number 0. All such sessions count as one.
    let session = getsid(None).map_or(0, Pid::as_raw);
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("session {session} of {}", namespace.display())
}

/// Returns whether a process is stopped, according to /proc. The program name must match, because the process id
/// belongs to the process's own pid namespace.
pub fn is_stopped(one: &Attached) -> bool {
    let Ok(stat) = read_to_string(format!("/proc/{}/stat", one.pid)) else { return false };
    let Some((head, tail)) = stat.rsplit_once(") ") else { return false };
    head.ends_with(&format!("({}", one.program)) && tail.starts_with(['T', 't'])
}

/// Returns the user of an attached process that has lost its access to the file: the user may not open the file, and
/// the process has no descriptor of it. Such a process gave up its privileges and closed its descriptors. Returns
/// `None` where this cannot be determined.
pub fn user_without_access(one: &Attached, file: &Path) -> Option<String> {
    let process = PathBuf::from(format!("/proc/{}", one.pid));
    let status = read_to_string(process.join("status")).ok()?;
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
    let numbers =
        |name| field(name).into_iter().flat_map(str::split_whitespace).filter_map(|id| id.parse().ok());
    // The program name must match, because the process id belongs to the process's own pid namespace.
    if field("Name:")?.trim() != one.program {
        return None;
    }
    let (user, facts) = (numbers("Uid:").nth(1)?, std::fs::metadata(file).ok()?);
    let mut groups = numbers("Gid:").nth(1).into_iter().chain(numbers("Groups:"));
    let as_member = facts.mode() & 0o060 == 0o060 && groups.any(|group: u32| group == facts.gid());
    if user == 0 || user == facts.uid() || as_member {
        return None;
    }
    let is_it = |open: std::fs::Metadata| (open.dev(), open.ino()) == (facts.dev(), facts.ino());
    let mut descriptors = std::fs::read_dir(process.join("fd")).ok()?;
    let has_one =
        descriptors.any(|entry| entry.is_ok_and(|entry| std::fs::metadata(entry.path()).is_ok_and(is_it)));
    (!has_one).then(|| super::directories::user(user))
}

pub fn supports_escapes() -> bool {
    env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb")
}

/// Returns whether the locale allows more than ASCII.
pub fn supports_unicode() -> bool {
    let set = |name| env::var(name).ok().filter(|value| !value.is_empty());
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG")).unwrap_or_default();
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

pub fn machine() -> Machine {
    let read = |path: &str| read_to_string(path).unwrap_or_default().trim().to_owned();
    let described = read("/proc/cpuinfo");
    // Not every architecture reports a processor name.
    let name = described.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    Machine {
        processor: name.map_or(env::consts::ARCH, |(_, name)| name.trim()).to_owned(),
        system: "Linux",
        kernel: read("/proc/sys/kernel/osrelease"),
        clock_source: read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        load: read("/proc/loadavg").split(' ').next().unwrap_or_default().to_owned(),
    }
}
