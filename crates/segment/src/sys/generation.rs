//! The generation of a limiter's name: a word in the file of the creation lock that changes whenever a segment gets
//! the name.
//!
//! The hash of the name selects the word. The file stays as small as the smallest segment, whatever the names are,
//! and a file system with sparse files stores one block for each name. Two names that share a word change it for
//! each other. One plain write per change is enough: only processes that are alive when the word changes compare
//! it, so it need not survive a crash of the machine.

use super::wall_now;
use std::fs::File;
use std::io;
#[cfg(unix)]
use std::os::unix::fs::FileExt;
#[cfg(windows)]
use std::os::windows::fs::FileExt;

/// The number of words: 256 KiB, less than a segment, so a process that may create a segment may write all of them.
/// The first word is not used, because on Windows a process that holds the creation lock has exclusive access to
/// its first byte.
const WORDS: u64 = 1 << 15;

pub fn generation(creation_lock: &File, number: u64) -> io::Result<u64> {
    let mut word = [0; 8];
    // The word is aligned and written in one call, so a read never returns part of it.
    let length = read_at(creation_lock, &mut word, at(number))?;
    Ok(if length == word.len() { u64::from_ne_bytes(word) } else { 0 })
}

/// The wall clock makes the number differ from every number in an earlier creation lock that was deleted.
pub fn next_generation(creation_lock: &File, number: u64) -> io::Result<u64> {
    Ok(generation(creation_lock, number)?.wrapping_add(1).max(wall_now()).max(1))
}

pub fn begin_generation(creation_lock: &File, number: u64, next: u64) -> io::Result<()> {
    match write_at(creation_lock, &next.to_ne_bytes(), at(number))? {
        8 => Ok(()),
        _ => Err(io::ErrorKind::WriteZero.into()),
    }
}

const fn at(number: u64) -> u64 {
    (1 + number % (WORDS - 1)) * 8
}

#[cfg(unix)]
fn read_at(creation_lock: &File, word: &mut [u8], at: u64) -> io::Result<usize> {
    creation_lock.read_at(word, at)
}

#[cfg(unix)]
fn write_at(creation_lock: &File, word: &[u8], at: u64) -> io::Result<usize> {
    creation_lock.write_at(word, at)
}

#[cfg(windows)]
fn read_at(creation_lock: &File, word: &mut [u8], at: u64) -> io::Result<usize> {
    creation_lock.seek_read(word, at)
}

#[cfg(windows)]
fn write_at(creation_lock: &File, word: &[u8], at: u64) -> io::Result<usize> {
    creation_lock.seek_write(word, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(creation_lock: &File, number: u64) {
        begin_generation(creation_lock, number, next_generation(creation_lock, number).unwrap()).unwrap();
    }

    #[test]
    fn generation_is_never_zero_and_never_repeats() {
        let creation_lock = tempfile::tempfile().unwrap();
        let mut last = generation(&creation_lock, 7).unwrap();
        assert_eq!(last, 0, "none has begun");
        for _ in 0..100 {
            begin(&creation_lock, 7);
            let next = generation(&creation_lock, 7).unwrap();
            assert!(next > last);
            last = next;
        }
        // Any other program may have written any value there.
        write_at(&creation_lock, &u64::MAX.to_ne_bytes(), at(7)).unwrap();
        begin(&creation_lock, 7);
        assert!(![0, u64::MAX].contains(&generation(&creation_lock, 7).unwrap()));
    }

    #[test]
    fn two_names_use_different_words_of_a_small_file() {
        let creation_lock = tempfile::tempfile().unwrap();
        begin(&creation_lock, WORDS - 2);
        assert_eq!(generation(&creation_lock, 0).unwrap(), 0);
        assert_eq!(creation_lock.metadata().unwrap().len(), WORDS * 8);
    }
}
