//! An empty `Spare`, for platforms on which a process does not change its user or cannot open a limiter at all.

use super::TakenLivenessLock;
use std::fs::File;

/// A spare that never has a description; see the contract in `sys`.
#[derive(Debug, Clone, Default)]
pub struct Spare(());

impl Spare {
    pub fn keep(&self, _file: File) {}

    pub fn forget(&self) {}

    pub fn links(&self) -> Option<u64> {
        None
    }

    pub fn liveness_lock_is_held(&self, _slot: u32) -> Option<bool> {
        None
    }

    pub fn take(&self, _slot: u32) -> Option<TakenLivenessLock> {
        None
    }
}
