//! The stored pause of a limiter.

use crate::characters::is_unsafe;
use crate::time::{Nanos, Time};
use bytemuck::{Pod, Zeroable};

/// Number of words of [`Pause`].
pub const PAUSE_WORDS: usize = 16;
/// Maximum length of the reason, in bytes.
pub const PAUSE_REASON_BYTES: usize = 64;
/// The longest pause with a known end: 2^62 ns, 146 years.
pub const LONGEST_PAUSE: Nanos = Nanos(1 << 62);

/// The end of a pause that lasts until the limiter is resumed.
pub(crate) const OPEN_ENDED: Time = Time(u64::MAX);

/// The latest pause of a limiter. All zeros means that there was none. Every combination of words is a valid
/// pause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Pause {
    /// The end of the pause. Zero means that it is over, and the largest time that it lasts until the limiter
    /// is resumed.
    pub until: Time,
    /// The time at which it began.
    pub since: Time,
    /// Process id of the process that paused the limiter, for reports.
    pub pid: u64,
    /// Program name of that process, zero-padded.
    pub program: [u8; 16],
    /// The reason that the operator gave: UTF-8, zero-padded.
    pub reason: [[u8; 8]; PAUSE_REASON_BYTES / 8],
    unused: [u64; 3],
}

/// An operator's request for a pause.
#[derive(Clone, Copy, Debug)]
pub struct Pausing<'t> {
    /// The length of the pause. `None` means until the limiter is resumed.
    pub length: Option<Nanos>,
    /// Process id of the process that asks.
    pub pid: u64,
    /// Program name of that process, zero-padded.
    pub program: [u8; 16],
    /// The reason. It is cut to [`PAUSE_REASON_BYTES`] at the end of a character.
    pub reason: &'t str,
}

impl Pause {
    pub(crate) fn begun(asked: &Pausing<'_>, now: Time) -> Pause {
        let until = match asked.length {
            None => OPEN_ENDED,
            Some(length) => now.plus(length.min(LONGEST_PAUSE)).min(Time(OPEN_ENDED.0 - 1)),
        };
        let text = asked.reason;
        let fits = |end: &usize| text.is_char_boundary(*end);
        let end = (0..=text.len().min(PAUSE_REASON_BYTES)).rev().find(fits).unwrap_or(0);
        let mut reason = [[0; 8]; PAUSE_REASON_BYTES / 8];
        for (chunk, bytes) in reason.iter_mut().zip(text.as_bytes()[..end].chunks(8)) {
            chunk[..bytes.len()].copy_from_slice(bytes);
        }
        Pause { until, since: now, pid: asked.pid, program: asked.program, reason, unused: [0; 3] }
    }

    /// The same pause, marked as over.
    pub(crate) fn ended(&self) -> Pause {
        Pause { until: Time::ZERO, ..*self }
    }

    /// Whether calls are stopped at this time.
    #[inline]
    pub fn is_on(&self, now: Time) -> bool {
        self.until > now
    }

    /// The time at which it ends by itself. `None` if it does not.
    pub fn ends_at(&self) -> Option<Time> {
        (self.until < OPEN_ENDED).then_some(self.until)
    }

    /// The reason as text. Bytes that are not UTF-8 and characters that cannot be shown on a terminal are
    /// replaced.
    pub fn reason_text(&self) -> String {
        let bytes = self.reason.as_flattened();
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).chars().map(shown).collect()
    }

    /// Whether an operation can have written these words: the pause began before now, and its reason is valid
    /// text.
    pub fn is_sane(&self, now: Time) -> bool {
        let bytes = self.reason.as_flattened();
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        let text = std::str::from_utf8(&bytes[..end]);
        let length = self.ends_at().map_or(Nanos::ZERO, |end| end.since(self.since));
        self.since <= now && length <= LONGEST_PAUSE && text.is_ok_and(is_showable)
    }
}

/// Whether a text can be shown on a terminal unchanged: no control characters, and no invisible characters that
/// change the direction of the text after them.
pub fn is_showable(text: &str) -> bool {
    text.chars().all(|letter| shown(letter) == letter)
}

fn shown(letter: char) -> char {
    if is_unsafe(letter) { char::REPLACEMENT_CHARACTER } else { letter }
}
