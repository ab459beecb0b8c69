//! A file that several processes write to and that does not grow for ever (R117).
//!
//! Whoever writes holds the lock of the file that has the name. Under it the file may be given another name; whoever
//! waited for the lock then finds that the name is another file's, and goes there. So no line is lost, torn or written
//! twice, and the bound holds. The lock is waited for a short time only: a writer that was stopped must not stop
//! others. Who does not get it writes all the same, and only leaves the names alone.

use crate::platform;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a writer waits for another.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);
/// How often the name may turn out to be another file's by now.
const TRIES: usize = 100;

/// A log file and its older parts: `FILE`, then `FILE.1`, the newest of those that are full, to `FILE.keep`.
#[derive(Debug)]
pub struct Bounded {
    path: PathBuf,
    size: u64,
    keep: u32,
    file: Option<File>,
}

impl Bounded {
    /// A log of at most `size` bytes, and `keep` older parts of that size. Nothing is opened before there is a line.
    /// Files that this process must not write are kept smaller: the system would end it.
    pub fn new(path: PathBuf, size: u64, keep: u32) -> Bounded {
        let size = size.min(platform::largest_file());
        Bounded { path, size, keep, file: None }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes one line, whole.
    pub fn append(&mut self, line: &[u8]) -> io::Result<()> {
        let until = Instant::now() + LOCK_TIMEOUT;
        for _ in 0..TRIES {
            let file = match self.file.take() {
                Some(file) => file,
                None => platform::open_to_append(&self.path)?,
            };
            let metadata = file.metadata()?;
            // Devices and pipes do not grow.
            if !metadata.is_file() || !lock(&file, until) {
                self.file = Some(file);
                return self.write(line);
            }
            let written = self.write_locked(&file, line);
            // Explicitly: a command started meanwhile may share it.
            let _ = platform::unlock(&file);
            if written? {
                self.file = Some(file);
                return Ok(());
            }
        }
        Err(io::Error::other("it is renamed all the time"))
    }

    /// Writes to a file whose lock is held; `false` if the name is another file's.
    fn write_locked(&self, mut file: &File, line: &[u8]) -> io::Result<bool> {
        let metadata = file.metadata()?;
        if !platform::is_same_file(file, &self.path).unwrap_or(false) {
            return Ok(false);
        }
        if line.len() as u64 > platform::largest_file() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let full = metadata.len() > 0 && metadata.len().saturating_add(line.len() as u64) > self.size;
        if full {
            self.shift()?;
            return Ok(false);
        }
        // One write, at the end, whoever else writes.
        file.write_all(line).map(|()| true)
    }

    fn write(&self, line: &[u8]) -> io::Result<()> {
        let Some(mut file) = self.file.as_ref() else { return Ok(()) };
        let grown = file.metadata().map_or(0, |metadata| metadata.len()).saturating_add(line.len() as u64);
        if grown > platform::largest_file() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        file.write_all(line)
    }

    /// Each part takes the place of the next older one, up to the first place that is free; the oldest goes.
    fn shift(&self) -> io::Result<()> {
        if self.keep == 0 {
            return fs::remove_file(&self.path);
        }
        let free = (1..self.keep)
            .find(|number| fs::symlink_metadata(self.part(*number)).is_err())
            .unwrap_or(self.keep);
        for number in (1..free).rev() {
            fs::rename(self.part(number), self.part(number + 1))?;
        }
        fs::rename(&self.path, self.part(1))
    }

    fn part(&self, number: u32) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }
}

/// Whether the lock could be had in time.
fn lock(file: &File, until: Instant) -> bool {
    loop {
        match platform::try_lock(file) {
            Ok(true) => return true,
            Ok(false) if Instant::now() < until => {
                std::thread::sleep(Duration::from_micros(200));
            }
            // Also where there are no locks at all.
            Ok(false) | Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &Path) -> Vec<String> {
        fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    #[test]
    fn r117_full_files_move_on_and_the_oldest_goes() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("log");
        let mut file = Bounded::new(path.clone(), 8, 2);
        for number in 0..7 {
            file.append(format!("no{number}\n").as_bytes()).unwrap();
        }
        assert_eq!(lines(&path), ["no6"]);
        assert_eq!(lines(&file.part(1)), ["no4", "no5"]);
        assert_eq!(lines(&file.part(2)), ["no2", "no3"]);
        assert!(!file.part(3).exists());
    }

    #[test]
    fn r117_a_part_that_is_missing_is_filled_before_one_goes() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("log");
        let mut file = Bounded::new(path.clone(), 4, 3);
        for number in 0..4 {
            file.append(format!("no{number}\n").as_bytes()).unwrap();
        }
        // As after a kill in the middle.
        fs::rename(file.part(1), file.part(9)).unwrap();
        file.append(b"no4\n").unwrap();
        assert_eq!([1, 2, 3].map(|number| lines(&file.part(number))), [["no3"], ["no1"], ["no0"]]);
    }

    #[test]
    fn r117_without_older_parts_the_file_begins_anew() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("log");
        let mut file = Bounded::new(path.clone(), 8, 0);
        for number in 0..3 {
            file.append(format!("no{number}\n").as_bytes()).unwrap();
        }
        assert_eq!((lines(&path), fs::read_dir(place.path()).unwrap().count()), (vec!["no2".to_owned()], 1));
    }

    /// Each keeps the file open: who finds it renamed must follow the name, or write to an older part for ever.
    #[test]
    fn r117_who_has_the_file_open_while_another_rotates_it_goes_on_in_the_new_one() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("log");
        let [mut a, mut b] = [(), ()].map(|()| Bounded::new(path.clone(), 10, 2));
        b.append(b"b0\n").unwrap();
        for line in [b"a0\n", b"a1\n", b"a2\n"] {
            a.append(line).unwrap();
        }
        b.append(b"b1\n").unwrap();
        assert_eq!([lines(&a.part(1)), lines(&path)], [vec!["b0", "a0", "a1"], vec!["a2", "b1"]]);
    }

    #[test]
    fn a_writer_that_was_stopped_does_not_stop_others() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("log");
        let stopped = platform::open_to_append(&path).unwrap();
        assert!(platform::try_lock(&stopped).unwrap());
        let mut file = Bounded::new(path.clone(), 1000, 1);
        file.append(b"on\n").unwrap();
        assert_eq!(lines(&path), ["on"]);
    }
}
