//! With whom a process shares its turns in the queue (R143).

use shmlimit_segment::layout::checksum;

/// Several processes that have turns together, as if they were one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Group(u64);

/// Keeps named groups and processes apart.
const NAMED: u64 = 1;
const PROCESS: u64 = 2;

impl Group {
    /// The group of that name.
    pub(super) fn named(name: &str) -> Group {
        Group(checksum([NAMED].into_iter().chain(name.bytes().map(u64::from))))
    }

    /// The group that the environment names.
    pub(super) fn from_environment() -> Option<Group> {
        let name = std::env::var_os("SHMLIMIT_GROUP").filter(|name| !name.is_empty())?;
        Some(Group::named(&name.to_string_lossy()))
    }

    /// What stands for the group of an attachment: a named one, or itself.
    pub(super) fn key(group: Option<Group>, badge: u64) -> u64 {
        group.map_or_else(|| checksum([PROCESS, badge]), |group| group.0)
    }
}
