//! How a segment is used: the options of the program that opens it.

use std::time::Duration;

/// How a segment is used: time limits, intervals between checks, the program's name and its role.
#[derive(Debug, Clone, Copy)]
pub struct AttachOptions {
    /// How long one call waits for the lock while living processes hold it.
    pub lock: Duration,
    /// How long a single acquisition of the lock may last before its holder counts as stopped.
    pub stall: Duration,
    /// The shortest time between two searches for dead processes while permits are short.
    pub reclaim: Duration,
    /// The time between two checks that the file is still in its place.
    pub place: Duration,
    /// The program name that people see. Zeros mean the program's own name.
    pub program: [u8; 16],
    /// Which slots it may use.
    pub role: Role,
}

/// The purpose for which a segment is opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Role {
    /// Makes calls. Takes one of the common slots.
    #[default]
    Participant,
    /// Administers the limiter. Takes one of the reserved slots if all others are taken.
    Operator,
    /// Only reads. Takes no slot, unless it must repair something, and then acts as an operator.
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
