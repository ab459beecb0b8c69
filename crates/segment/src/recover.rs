//! From any bytes to a segment that may be used: `Unverified → Verified | refused`, then, once attached and under
//! the lock, whole, rebased after a reboot, or reset.

use super::backing::Backing;
use super::journal::{Found, Transaction};
use super::layout::{self, header};
use super::lock::Os;
use super::words::Words;
use crate::error::Error;
use crate::sys::{FileFacts, SharedMap};
use shmlimit_kernel::policy::{POLICY_WORDS, Policy};
use shmlimit_kernel::state::{Core, Held, Memory, View};
use shmlimit_kernel::time::Time;
use shmlimit_kernel::{MAX_PERMITS, breaker, decide};
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

/// How far a stored time may be ahead of the clock: all processes read one clock, so this is noise at most.
pub const SKEW: u64 = 5_000_000_000;

/// What a reset leaves of the journal to the transaction it is part of; what then is not mended is mended next time.
const ROOM_FOR_THE_REST: usize = 96;

/// A mapped file about which nothing is known but its length.
pub struct Unverified {
    words: Words,
    backing: Backing,
    file: File,
}

/// A segment of this very layout. Its state has not been looked at yet.
pub struct Verified {
    /// Its words.
    pub words: Words,
    /// Its file.
    pub backing: Backing,
    /// The descriptor it was opened with: a description of the file that holds no lock.
    pub file: File,
}

impl Unverified {
    /// Maps a file if it is as long as a segment.
    pub fn map(path: PathBuf, file: File, facts: &FileFacts) -> Result<Unverified, Error> {
        let foreign =
            |problem, (remedy, segment)| Error::Foreign { path: path.clone(), problem, remedy, segment };
        let length = usize::try_from(facts.len).unwrap_or(usize::MAX);
        if !(layout::SIZE..=layout::LARGEST_SIZE).contains(&length) || !length.is_multiple_of(4096) {
            // Another version's may be of another size; a file that is none of ours must not be called one.
            let verdict = if begins_with_magic(&file) { (OTHER_VERSION, true) } else { (NOT_OURS, false) };
            let problem = format!("it is {length} bytes long, which no segment is");
            return Err(foreign(problem, verdict));
        }
        let map = SharedMap::new(&file, length).map_err(Error::io("map", &path))?;
        let backing = Backing::new(path.clone(), facts, &map);
        let words = Words::new(map).ok_or_else(|| foreign("it is too short".into(), (NOT_OURS, false)))?;
        Ok(Unverified { words, backing, file })
    }

    /// Checks the header (P4): reads only.
    pub fn verify(self) -> Result<Verified, Error> {
        let word = |index| self.words.load(index);
        let path = self.backing.path().to_owned();
        let refuse =
            |problem, (remedy, segment)| Err(Error::Foreign { path: path.clone(), problem, remedy, segment });
        if word(header::MAGIC).swap_bytes() == layout::MAGIC
            || word(header::FORMAT).swap_bytes() as u32 == layout::BYTE_ORDER
        {
            return refuse("it was made on a machine of the other byte order".into(), (NOT_OURS, false));
        }
        if word(header::MAGIC) != layout::MAGIC || word(header::FORMAT) as u32 != layout::BYTE_ORDER {
            return refuse("it is not a shmlimit segment".into(), (NOT_OURS, false));
        }
        let version = (word(header::FORMAT) >> 32) as u32;
        if version != layout::LAYOUT_VERSION {
            return refuse(
                format!("it has layout version {version}, this program has {}", layout::LAYOUT_VERSION),
                (OTHER_VERSION, true),
            );
        }
        let length = self.words.cells().len() as u64 * 8;
        if word(header::HASH) != layout::layout_hash() || word(header::SIZE) != length {
            return refuse("it was made by a build with other limits".into(), (OTHER_VERSION, true));
        }
        if word(header::CHECKSUM) != layout::checksum((0..header::CHECKSUM).map(word)) {
            return refuse("its header is damaged".into(), (DAMAGED, true));
        }
        Ok(Verified { words: self.words, backing: self.backing, file: self.file })
    }
}

const NOT_OURS: &str = "move it away, or choose another directory with --dir";
const DAMAGED: &str = "remove it with: REMOVE, and make it again";
const OTHER_VERSION: &str = "use one version of shmlimit, or remove it with: REMOVE, and make it again";

/// Whether a file calls itself a segment, of whatever version.
pub(super) fn begins_with_magic(mut file: &File) -> bool {
    let mut magic = [0; 8];
    file.read_exact(&mut magic).is_ok() && u64::from_ne_bytes(magic) == layout::MAGIC
}

/// The policy in a segment, checked; `Err` says what is wrong with it.
pub fn policy(words: &Words) -> Result<Policy, String> {
    let encoded: [u64; POLICY_WORDS] = words.load_array(layout::POLICY);
    if layout::checksum(encoded) != words.load(layout::POLICY_CHECKSUM) {
        return Err("the checksum of its configuration is wrong".into());
    }
    let policy = Policy::decode(&encoded).map_err(|error| error.to_string())?;
    match layout::size_for(&policy) <= words.cells().len() * 8 {
        true => Ok(policy),
        false => Err("its configuration needs a larger file".into()),
    }
}

/// Whether the state is what committed transactions can leave.
#[inline(always)]
pub fn is_sane<V: View>(view: &V, found: Found, now: Time) -> bool {
    let core = view.core();
    found != Found::Damaged
        && core.latest.0 <= now.0.saturating_add(SKEW)
        && core.in_flight <= MAX_PERMITS
        && core.in_flight_background <= core.in_flight
}

/// The same with all that decisions read: what is in force is what the policy and the breaker's state make, word by word,
/// and the rules are in range.
pub fn is_in_order<V: View>(view: &V, policy: &Policy, found: Found, now: Time) -> bool {
    is_sane(view, found, now) && breaker::is_in_force(view, policy, now) && decide::sane(view)
}

/// The same with all that takes longer, for those who attach: as many permits out as the participants hold together. A
/// wrong count would otherwise stay for ever.
pub fn is_sound<V: View>(view: &V, policy: &Policy, found: Found, now: Time) -> bool {
    let (mut total, mut background) = (0, 0);
    for held in (0..layout::SLOTS).map(|slot| view.held(slot)) {
        total += u64::from(held.total);
        background += u64::from(held.background);
    }
    let core = view.core();
    is_in_order(view, policy, found, now)
        && (total, background) == (u64::from(core.in_flight), u64::from(core.in_flight_background))
}

/// Starts the state anew, with nothing to give (a reset never hands out a full bucket). Permits are counted
/// again from what the participants hold.
pub fn reset<O: Os>(tx: &mut Transaction<'_, O>, now: Time) {
    let policy = policy(tx.words()).ok();
    decide::reset(tx, policy.as_ref(), now);
    let mut in_flight = Held::default();
    for slot in 0..layout::SLOTS {
        let held = tx.held(slot);
        if held.background <= held.total && in_flight.total.saturating_add(held.total) <= MAX_PERMITS {
            in_flight.total += held.total;
            in_flight.background += held.background;
        } else if tx.room() > ROOM_FOR_THE_REST {
            tx.set_held(slot, Held::default());
        }
    }
    tx.set_core(Core { latest: now, in_flight: in_flight.total, in_flight_background: in_flight.background });
    let resets = tx.load(layout::RESETS);
    tx.write(layout::RESETS, resets.wrapping_add(1));
}
