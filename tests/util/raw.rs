//! Direct access to a segment, bypassing the library, as a hostile or broken process might have it.

use memmap2::{MmapOptions, MmapRaw};
use shmlimit_segment::layout;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// A separate mapping of a segment file.
pub struct Raw {
    map: MmapRaw,
}

impl Raw {
    /// Maps the file.
    pub fn map(path: &Path) -> Raw {
        let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
        Raw { map: MmapOptions::new().map_raw(&file).unwrap() }
    }

    /// The number of words: more than [`layout::WORDS`] if the segment has logs.
    pub fn words(&self) -> usize {
        self.map.len() / 8
    }

    /// One byte.
    pub fn byte(&self, at: usize) -> &AtomicU8 {
        assert!(at < self.map.len());
        // SAFETY: within the mapping, which lives as long as `self`; all accesses are atomic.
        unsafe { AtomicU8::from_ptr(self.map.as_mut_ptr().add(at)) }
    }

    /// One word.
    pub fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < self.words());
        // SAFETY: within the page-aligned mapping, which lives as long as `self`; all accesses are atomic.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().cast::<u64>().add(index)) }
    }

    /// All words.
    pub fn image(&self) -> Vec<u64> {
        (0..self.words()).map(|i| self.word(i).load(Ordering::Relaxed)).collect()
    }

    /// Writes these words of an image back. No other process may use the segment meanwhile.
    pub fn restore(&self, image: &[u64], words: std::ops::Range<usize>) {
        self.restore_from(words.start, &image[words]);
    }

    /// Writes words from `first` on. No other process may use the segment meanwhile.
    pub fn restore_from(&self, first: usize, words: &[u64]) {
        assert!(first + words.len() <= self.words());
        // SAFETY: within the page-aligned mapping; the caller has exclusive use, so a plain copy does not race.
        unsafe {
            let to = self.map.as_mut_ptr().cast::<u64>().add(first);
            std::ptr::copy_nonoverlapping(words.as_ptr(), to, words.len());
        }
    }
}

/// Reads a word of a segment file, by plain file I/O.
pub fn read_word(path: &Path, index: usize) -> u64 {
    let mut file = File::open(path).unwrap();
    file.seek(SeekFrom::Start(index as u64 * 8)).unwrap();
    let mut bytes = [0; 8];
    file.read_exact(&mut bytes).unwrap();
    u64::from_ne_bytes(bytes)
}

/// Writes a word of a segment file, by plain file I/O.
pub fn write_word(path: &Path, index: usize, value: u64) {
    let mut file = OpenOptions::new().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(index as u64 * 8)).unwrap();
    file.write_all(&value.to_ne_bytes()).unwrap();
}

/// Changes a word of the header, and updates the header's checksum.
pub fn rewrite_header(path: &Path, word: usize, value: u64) {
    write_word(path, word, value);
    let checksum = layout::checksum((0..layout::header::CHECKSUM).map(|i| read_word(path, i)));
    write_word(path, layout::header::CHECKSUM, checksum);
}

/// The lock word that names `slot` as the holder.
pub fn lock_word_of(slot: usize) -> u32 {
    (slot as u32 + 1) << 20
}
