//! The file of a limiter: this module opens and verifies it, [`create`] creates it.
//!
//! Its path may contain any bytes: `Unverified → Verified`, or an error. A wrong state of a verified segment is
//! repaired later, under its lock ([`sanity`](crate::sanity), `recovery/`).

pub(crate) mod backing;
pub mod create;
pub(crate) mod inherited;
pub(crate) mod initial_state;

pub use backing::Backing;
pub use initial_state::InitialState;

use crate::clock_source::ClockSource;
use crate::directory::{Directory, begins_with_magic};
use crate::error::Error;
use crate::layout::{self, header};
use crate::paths::LimiterName;
use crate::sys::{self, FileFacts, SharedMap};
use crate::words::Words;
use std::fs::File;
use std::io;
use std::path::PathBuf;

/// A mapped file of which only the length is known.
pub(crate) struct Unverified {
    words: Words,
    backing: Backing,
    file: File,
}

/// A segment of this exact layout. Its state has not been checked yet.
pub struct Verified {
    /// Its words.
    pub words: Words,
    /// Its file.
    pub backing: Backing,
    /// The descriptor with which it was opened: a description of the file that holds no lock.
    pub file: File,
    /// Its clock.
    pub clock: ClockSource,
}

impl Unverified {
    /// Maps a file if it is as long as a segment.
    pub(crate) fn map(path: PathBuf, file: File, facts: &FileFacts) -> Result<Unverified, Error> {
        let foreign =
            |problem, (remedy, segment)| Error::Foreign { path: path.clone(), problem, remedy, segment };
        let length = usize::try_from(facts.len).unwrap_or(usize::MAX);
        if !(layout::SIZE..=layout::LARGEST_SIZE).contains(&length) || !length.is_multiple_of(4096) {
            // A segment of another version may have another size. But a file that is not a segment must not be
            // reported as one.
            let verdict = if begins_with_magic(&file) { (OTHER_VERSION, true) } else { (NOT_OURS, false) };
            let problem = format!("it is {length} bytes long, which no limiter file is");
            return Err(foreign(problem, verdict));
        }
        let map = SharedMap::new(&file, length).map_err(Error::io("map", &path))?;
        let backing = Backing::new(path.clone(), facts, &map);
        let words = Words::new(map).ok_or_else(|| foreign("it is too short".into(), (NOT_OURS, false)))?;
        Ok(Unverified { words, backing, file })
    }

    /// Checks the header (P4). Only reads.
    pub(crate) fn verify(self, clock: &ClockSource) -> Result<Verified, Error> {
        let word = |index| self.words.load(index);
        let path = self.backing.path().to_owned();
        let refuse =
            |problem, (remedy, segment)| Err(Error::Foreign { path: path.clone(), problem, remedy, segment });
        if word(header::MAGIC).swap_bytes() == layout::MAGIC
            || word(header::FORMAT).swap_bytes() as u32 == layout::BYTE_ORDER
        {
            return refuse("it was made on a machine with the other byte order".into(), (NOT_OURS, false));
        }
        if word(header::MAGIC) != layout::MAGIC || word(header::FORMAT) as u32 != layout::BYTE_ORDER {
            return refuse("it is not a limiter file of shmlimit".into(), (NOT_OURS, false));
        }
        let version = (word(header::FORMAT) >> 32) as u32;
        if version != layout::LAYOUT_VERSION {
            return refuse(
                format!("it has layout version {version}, this program has {}", layout::LAYOUT_VERSION),
                (OTHER_VERSION, true),
            );
        }
        let length = self.words.cells().count() as u64 * 8;
        if word(header::HASH) != layout::layout_hash() || word(header::SIZE) != length {
            return refuse("it was made by a build with other limits".into(), (OTHER_VERSION, true));
        }
        if word(header::CHECKSUM) != layout::checksum((0..header::CHECKSUM).map(word)) {
            return refuse("its header is damaged".into(), (DAMAGED, true));
        }
        clock.check(&self.words, &path)?;
        Ok(Verified { words: self.words, backing: self.backing, file: self.file, clock: clock.clone() })
    }
}

const NOT_OURS: &str = "move it away, or choose another directory with --dir";
const DAMAGED: &str = "remove it with: REMOVE, and create it again";
const OTHER_VERSION: &str = "use one version of shmlimit, or remove it with: REMOVE, and create it again";

/// Checks again, under the creation lock, whether a file of that name exists. This is needed only on systems where
/// replacing a file takes two steps, because a single look may fall between them. On all other systems the answer
/// is `false`. Creates nothing: a process that replaces a segment has created the creation lock before.
pub fn is_there(directory: &Directory, name: &LimiterName) -> Result<bool, Error> {
    let file_name = name.file_name();
    if !sys::REPLACES_IN_TWO_STEPS {
        return Ok(false);
    }
    let there = directory
        .with_existing_creation_lock(|locked| Ok(sys::facts_at(&locked.directory, &file_name).is_ok()))?;
    Ok(there.unwrap_or(false))
}

/// Opens the segment of a limiter; `None` if there is none. Only reads (P4), and trusts nothing (P5).
pub fn open(directory: &Directory, name: &LimiterName) -> Result<Option<Verified>, Error> {
    for _ in 1..OPENED {
        match open_once(directory, name) {
            // The file was replaced or deleted while it was opened: try again.
            Err(Error::Replaced { .. }) => {}
            opened => return opened,
        }
    }
    open_once(directory, name)
}

/// How many times to open a file that is replaced again and again.
const OPENED: u32 = 64;

fn open_once(directory: &Directory, name: &LimiterName) -> Result<Option<Verified>, Error> {
    let file_name = name.file_name();
    let path = directory.path().join(&file_name);
    let handle = directory.handle()?;
    let file = match sys::open_file_at(&handle, &file_name) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // A device, a socket or a link cannot be opened in this way. Report what it is rather than the error of the
        // open call.
        Err(error) => {
            if let Ok(facts) = sys::facts_at(&handle, &file_name) {
                directory.check_file(&path, &facts)?;
            }
            return Err(Error::io("open", path)(error));
        }
    };
    let facts = sys::facts(&file).map_err(Error::io("examine", &path))?;
    if facts.links == 0 {
        return Err(Error::Replaced { path });
    }
    directory.check_file(&path, &facts)?;
    Unverified::map(path, file, &facts)?.verify(&directory.clock).map(Some)
}
