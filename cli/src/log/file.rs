//! A log file that several processes write to, with a bounded size (R117).
//!
//! A writer holds the lock of the file that currently has the name. While it holds the lock, it may rename the file.
//! A writer that waited for the lock then finds that the name belongs to another file, and switches to that file. So
//! no line is lost, torn or written twice, and the size bound holds. A writer waits for the lock only for a short
//! time, because a stopped writer must not block others. A writer that does not get the lock writes anyway, but does
//! not rename files.

use crate::platform;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a writer waits for another writer.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);
/// How often a writer follows the name to another file.
const TRIES: usize = 100;

/// A log file and its older parts: `FILE`, then `FILE.1`, the newest full part, up to `FILE.keep`.
#[derive(Debug)]
pub struct Bounded {
    path: PathBuf,
    size: u64,
    keep: u32,
    file: Option<File>,
}

impl Bounded {
    /// Creates a log of at most `size` bytes and `keep` older parts of that size. The file is opened at the first
    /// line. The size also stays below the maximum file size of this process, because exceeding it would end the
    /// process.
    pub fn new(path: PathBuf, size: u64, keep: u32) -> Bounded {
        let size = size.min(platform::largest_file());
        Bounded { path, size, keep, file: None }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes one line completely.
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
            // Unlock explicitly, because a command started meanwhile may share the file.
            let _ = platform::unlock(&file);
            if written? {
                self.file = Some(file);
                return Ok(());
            }
        }
        Err(io::Error::other("it is renamed all the time"))
    }

    /// Writes to a file whose lock is held. Returns `false` if the name belongs to another file.
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
        // A single write appends at the end, even if other processes write too.
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

    /// Renames each part to the next older number, up to the first free number. The oldest part is deleted.
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

/// Returns whether the lock was acquired in time.
fn lock(file: &File, until: Instant) -> bool {
    loop {
        match platform::try_lock(file) {
            Ok(true) => return true,
            Ok(false) if Instant::now() < until => {
                std::thread::sleep(Duration::from_micros(200));
            }
            // This includes systems without locks.
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
    fn r117_full_files_are_renamed_and_the_oldest_is_deleted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
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
    fn r117_missing_part_is_filled_before_one_is_deleted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut file = Bounded::new(path.clone(), 4, 3);
        for number in 0..4 {
            file.append(format!("no{number}\n").as_bytes()).unwrap();
        }
        // The state after a kill during the rotation.
        fs::rename(file.part(1), file.part(9)).unwrap();
        file.append(b"no4\n").unwrap();
        assert_eq!([1, 2, 3].map(|number| lines(&file.part(number))), [["no3"], ["no1"], ["no0"]]);
    }

    #[test]
    fn r117_without_older_parts_the_file_starts_again_empty() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut file = Bounded::new(path.clone(), 8, 0);
        for number in 0..3 {
            file.append(format!("no{number}\n").as_bytes()).unwrap();
        }
        assert_eq!(
            (lines(&path), fs::read_dir(directory.path()).unwrap().count()),
            (vec!["no2".to_owned()], 1)
        );
    }

    /// Each writer keeps the file open. A writer whose file was renamed must follow the name, or it would write to an
    /// older part forever.
    #[test]
    fn r117_writer_with_an_open_file_follows_a_rotation_to_the_new_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let [mut a, mut b] = [(), ()].map(|()| Bounded::new(path.clone(), 10, 2));
        b.append(b"b0\n").unwrap();
        for line in [b"a0\n", b"a1\n", b"a2\n"] {
            a.append(line).unwrap();
        }
        b.append(b"b1\n").unwrap();
        assert_eq!([lines(&a.part(1)), lines(&path)], [vec!["b0", "a0", "a1"], vec!["a2", "b1"]]);
    }

    #[test]
    fn stopped_writer_does_not_stop_others() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let stopped = platform::open_to_append(&path).unwrap();
        assert!(platform::try_lock(&stopped).unwrap());
        let mut file = Bounded::new(path.clone(), 1000, 1);
        file.append(b"on\n").unwrap();
        assert_eq!(lines(&path), ["on"]);
    }
}
