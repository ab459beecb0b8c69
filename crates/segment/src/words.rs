//! The only code that touches mapped memory.
//!
//! Invariant I1 (docs/design/invariants.md): a mapping is at least [`layout::SIZE`] bytes, page aligned, lives as long
//! as its `Words`, and every access to it by any process is an atomic access of the same width. So no index below
//! [`layout::WORDS`] can be out of bounds, and no byte pattern is undefined behaviour.

use super::layout;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

#[cfg(not(loom))]
pub use mapped::{Cells, Words};
#[cfg(loom)]
pub use modelled::{Cells, Words};

#[cfg(not(loom))]
mod mapped {
    use super::*;
    use crate::sys::SharedMap;
    use std::marker::PhantomData;
    use std::ptr::NonNull;

    /// The words of a mapped segment.
    pub struct Words {
        map: SharedMap,
    }

    /// The words of a mapped segment, borrowed, with their address at hand. Behind a reference to [`Words`] the
    /// compiler would load the address again after every store.
    #[derive(Clone, Copy)]
    pub struct Cells<'a> {
        base: NonNull<u64>,
        /// How many words there are, including the logs; at least [`layout::WORDS`].
        len: usize,
        words: PhantomData<&'a Words>,
    }

    impl<'a> Cells<'a> {
        /// The word at an index below [`layout::WORDS`], which every segment has. An index out of range means the
        /// last of these words, never a foreign address.
        #[inline(always)]
        pub fn at(self, index: usize) -> &'a AtomicU64 {
            let index = index.min(layout::WORDS - 1);
            // SAFETY: I1; index < WORDS, u64 words are aligned in a page-aligned mapping, and `words` keeps it
            // mapped.
            unsafe { AtomicU64::from_ptr(self.base.add(index).as_ptr()) }
        }

        /// The word at any index, including the logs. An index out of range means the last word.
        #[inline(always)]
        pub fn at_any(self, index: usize) -> &'a AtomicU64 {
            let index = index.min(self.len - 1);
            // SAFETY: I1; index < len, and as above.
            unsafe { AtomicU64::from_ptr(self.base.add(index).as_ptr()) }
        }

        /// How many words there are.
        #[inline]
        pub fn count(self) -> usize {
            self.len
        }
    }

    impl Words {
        /// Takes a mapping; `None` if it is too small to be a segment.
        pub fn new(map: SharedMap) -> Option<Words> {
            (map.len() >= layout::SIZE).then_some(Words { map })
        }

        /// Whether the file of the mapping is known to be deleted.
        pub(crate) fn are_deleted(&self) -> bool {
            self.map.is_of_deleted_file()
        }

        /// Gives the memory back to the system. Pages that are still used come back automatically.
        pub(crate) fn forget_pages(&self) {
            self.map.forget_pages();
        }

        /// Replaces these words with private ones, for all threads at once: zeros, and the given words (index,
        /// value). Returns the former words, at another address.
        pub fn replace(&self, words: &[(usize, u64)]) -> std::io::Result<Words> {
            self.map.replace(words).map(|map| Words { map })
        }

        /// The words, borrowed.
        #[inline(always)]
        pub fn cells(&self) -> Cells<'_> {
            Cells { base: self.map.base(), len: self.map.len() / 8, words: PhantomData }
        }

        /// The lock word.
        #[inline(always)]
        pub fn lock(&self) -> &AtomicU32 {
            self.half(layout::LOCK)
        }

        /// The word on which the owner of an entry sleeps.
        #[inline]
        pub fn wake_word(&self, place: usize) -> &AtomicU32 {
            self.half(layout::entry_base(place) + layout::WAKE_WORD)
        }

        /// The half of a word that has the address of the word.
        #[inline(always)]
        fn half(&self, index: usize) -> &AtomicU32 {
            let index = index.min(layout::WORDS - 1);
            // SAFETY: I1; index < WORDS, and lock and wake words are only ever accessed as 32-bit halves.
            unsafe { AtomicU32::from_ptr(self.map.base().add(index).cast::<u32>().as_ptr()) }
        }
    }
}

#[cfg(loom)]
mod modelled {
    use super::*;
    use std::collections::BTreeMap;

    /// The words of a modelled segment. Only words that a model declares exist, because loom keeps a history of
    /// each.
    pub struct Words {
        cells: BTreeMap<usize, AtomicU64>,
        lock: AtomicU32,
        wake_words: [AtomicU32; 2],
        /// The word for a dead thread that computes an index from words it could not read.
        nowhere: AtomicU64,
    }

    /// The words of a modelled segment, borrowed.
    #[derive(Clone, Copy)]
    pub struct Cells<'a>(&'a Words);

    impl<'a> Cells<'a> {
        /// Like [`Words::at`].
        pub fn at(self, index: usize) -> &'a AtomicU64 {
            self.0.at(index)
        }

        /// Like [`Words::at`].
        pub fn at_any(self, index: usize) -> &'a AtomicU64 {
            self.0.at(index)
        }

        /// How many words there are.
        pub fn count(self) -> usize {
            layout::WORDS
        }
    }

    impl Words {
        /// The words, borrowed.
        pub fn cells(&self) -> Cells<'_> {
            Cells(self)
        }

        /// A model of the control words, one journal, and the given words.
        pub fn model(words: &[usize]) -> Words {
            let control = [layout::VERSION, layout::JOURNAL_LEN, layout::WAITING, layout::PLACES];
            let journal = layout::JOURNAL..layout::JOURNAL + 2 * layout::JOURNAL_ENTRIES;
            let cells = control.into_iter().chain(journal).chain(words.iter().copied());
            Words {
                cells: cells.map(|word| (word, AtomicU64::new(0))).collect(),
                lock: AtomicU32::new(0),
                wake_words: [AtomicU32::new(0), AtomicU32::new(0)],
                nowhere: AtomicU64::new(0),
            }
        }

        /// The word at an index, which the model must have declared.
        pub fn at(&self, index: usize) -> &AtomicU64 {
            match self.cells.get(&index) {
                None if crate::sync::killable::is_dead() => &self.nowhere,
                word => word.unwrap_or_else(|| panic!("the model has no word {index}")),
            }
        }

        /// The lock word.
        pub fn lock(&self) -> &AtomicU32 {
            &self.lock
        }

        /// The wake word of an entry. A model has two.
        pub fn wake_word(&self, place: usize) -> &AtomicU32 {
            &self.wake_words[place % 2]
        }
    }
}

impl Cells<'_> {
    /// Reads a word. The version or the lock orders the read against other accesses.
    #[inline(always)]
    pub fn load(self, index: usize) -> u64 {
        self.at(index).load(Ordering::Relaxed)
    }

    /// Writes a word. The version or the lock orders the write against other accesses.
    #[inline(always)]
    pub fn store(self, index: usize, value: u64) {
        self.at(index).store(value, Ordering::Relaxed);
    }

    /// Reads `N` words in a row.
    #[inline(always)]
    pub fn load_array<const N: usize>(self, first: usize) -> [u64; N] {
        // Use a loop: `array::from_fn` is a function that the compiler may decide not to inline.
        let mut words = [0; N];
        for (i, word) in words.iter_mut().enumerate() {
            *word = self.load(first + i);
        }
        words
    }
}

impl Words {
    /// Like [`Cells::load`].
    #[inline(always)]
    pub fn load(&self, index: usize) -> u64 {
        self.cells().load(index)
    }

    /// Like [`Cells::store`].
    #[inline(always)]
    pub fn store(&self, index: usize, value: u64) {
        self.cells().store(index, value);
    }

    /// Like [`Cells::load_array`].
    #[inline(always)]
    pub fn load_array<const N: usize>(&self, first: usize) -> [u64; N] {
        self.cells().load_array(first)
    }
}
