//! The segments of a handle in order: the one it was opened with, and its replacements.
//!
//! A replaced segment stays mapped until the handle is dropped, because another thread, a grant or a waiting call may still
//! refer to it. Its file is released (`segment/grave.rs`), so only a range of addresses remains. Finding the newest segment
//! takes constant time.

use super::link::Link;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{OnceLock, Weak};

/// Blocks of links; each holds twice as many as the one before, so that no link ever moves.
const BLOCKS: usize = usize::BITS as usize;

/// How many of the last links to release when a link gets a successor.
const AGAIN: usize = 4;

/// All links of a handle.
#[derive(Debug)]
pub(super) struct Chain {
    pub(super) first: Link,
    /// The index of the newest link; the first has index zero.
    newest: AtomicUsize,
    later: [OnceLock<Box<[OnceLock<Link>]>>; BLOCKS],
}

impl Chain {
    pub(super) fn new(first: Link) -> Chain {
        Chain { first, newest: AtomicUsize::new(0), later: [const { OnceLock::new() }; BLOCKS] }
    }

    /// The newest link.
    #[inline]
    pub(super) fn newest(&self) -> &Link {
        match self.newest.load(Ordering::Acquire) {
            0 => &self.first,
            number => self.at(number).unwrap_or(&self.first),
        }
    }

    /// The link with that index.
    pub(super) fn at(&self, number: usize) -> Option<&Link> {
        if number == 0 {
            return Some(&self.first);
        }
        let block = number.ilog2() as usize;
        self.later.get(block)?.get()?.get(number - (1 << block))?.get()
    }

    /// Adds the successor of a link, unless another thread was faster.
    pub(super) fn succeed(&self, old: &Link, mut successor: Link) {
        let number = old.number + 1;
        (successor.number, successor.home) = (number, Weak::clone(&old.home));
        let block = number.ilog2() as usize;
        let links = self.later[block].get_or_init(|| (0..1 << block).map(|_| OnceLock::new()).collect());
        // The segment of the slower thread is dropped, which detaches it.
        if links[number - (1 << block)].set(successor).is_ok() {
            self.newest.fetch_max(number, Ordering::AcqRel);
            old.segment.has_successor();
            // Also earlier segments whose lock was not free in time.
            for number in (0..number).rev().take(AGAIN) {
                if let Some(link) = self.at(number) {
                    link.segment.bury_itself();
                }
            }
        }
    }
}
