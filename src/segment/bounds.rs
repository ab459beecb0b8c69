//! How a segment is used, as whoever opens it chooses.

use std::time::Duration;

/// How a segment is used: how long things may take before they are given up or looked into, and under which name.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// How long to wait for a living holder of the lock before saying `Busy`.
    pub lock: Duration,
    /// How often the dead are looked for, at most, while permits are short.
    pub reap: Duration,
    /// How often it is checked that the file is still in its place.
    pub place: Duration,
    /// What people are told who this is; zeros: the program's own name.
    pub program: [u8; 16],
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            lock: Duration::from_secs(1),
            reap: Duration::from_millis(10),
            place: Duration::from_secs(1),
            program: [0; 16],
        }
    }
}
