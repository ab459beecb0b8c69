//! How a segment is used, as whoever opens it chooses.

use std::time::Duration;

/// How a segment is used: how long things may take before they are given up or looked into, and under which name.
#[derive(Debug, Clone, Copy)]
pub struct AttachOptions {
    /// How long one call waits for the lock while living processes hold it.
    pub lock: Duration,
    /// How long one and the same acquisition of the lock may last before its holder counts as stopped.
    pub stall: Duration,
    /// How often the dead are looked for, at most, while permits are short.
    pub reclaim: Duration,
    /// How often it is checked that the file is still in its place.
    pub place: Duration,
    /// What people are told who this is; zeros: the program's own name.
    pub program: [u8; 16],
    /// Which slots it may use.
    pub role: Role,
}

/// What a segment is opened for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Role {
    /// To be used: takes a slot of those for all.
    #[default]
    Participant,
    /// To be administered: takes one of the reserved slots if all others are taken.
    Operator,
    /// To be looked at: takes no slot, unless it must put something right, and then as an operator.
    Observer,
}

impl Default for AttachOptions {
    fn default() -> AttachOptions {
        AttachOptions {
            lock: Duration::from_secs(1),
            stall: Duration::from_secs(1),
            reclaim: Duration::from_millis(10),
            place: Duration::from_secs(1),
            program: [0; 16],
            role: Role::Participant,
        }
    }
}
