//! No spare descriptor, for platforms on which a process does not change its user, or cannot open a limiter at all.

use super::TakenPulse;
use std::fs::File;

/// An empty spare; see the contract in `sys`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spare(());

impl Spare {
    pub(crate) fn keep(&self, _file: File) {}

    pub(crate) fn forget(&self) {}

    pub(crate) fn links(&self) -> Option<u64> {
        None
    }

    pub(crate) fn pulse_is_held(&self, _slot: u32) -> Option<bool> {
        None
    }

    pub(crate) fn take(&self, _slot: u32) -> Option<TakenPulse> {
        None
    }
}
