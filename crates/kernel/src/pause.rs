//! A pause: an operator stops all calls for a while, whatever breaker, rules and permits say (R148).
//!
//! Calls that wait keep waiting, and new ones join them. Releases, outcomes and timers go on as usual. A pause ends at
//! its time, or when an operator resumes the limiter. It belongs to the limiter, not to the process that began it.

use super::ask::Reason;
use super::breaker::{self, Block};
use super::sheet::{PAUSE_AT, SheetView};
use super::state::{Core, Memory, View};
use super::time::{Nanos, Time};
use bytemuck::{Pod, Zeroable};

/// How many words [`Pause`] takes.
pub const PAUSE_WORDS: usize = 16;
/// Most bytes of the text that says why.
pub const PAUSE_REASON_BYTES: usize = 64;
/// The longest pause with a known end: 2^62 ns, 146 years.
pub const LONGEST_PAUSE: Nanos = Nanos(1 << 62);

/// The end of a pause that lasts until the limiter is resumed.
const OPEN_ENDED: Time = Time(u64::MAX);

/// The latest pause of a limiter. All zero means that there was none. Every combination of words is a valid pause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Pause {
    /// When it ends: zero = it is over, the largest time = when the limiter is resumed.
    pub until: Time,
    /// When it began.
    pub since: Time,
    /// Process id of the process that paused the limiter, for people.
    pub pid: u64,
    /// Its program name, zero-padded.
    pub program: [u8; 16],
    /// Why, as the operator put it: UTF-8, zero-padded.
    pub reason: [[u8; 8]; PAUSE_REASON_BYTES / 8],
    unused: [u64; 3],
}

/// An operator's request: how long to pause, which process asks, and why.
#[derive(Clone, Copy, Debug)]
pub struct Pausing<'t> {
    /// How long; `None` = until the limiter is resumed.
    pub length: Option<Nanos>,
    /// Process id of the process that asks.
    pub pid: u64,
    /// Its program name, zero-padded.
    pub program: [u8; 16],
    /// Why; cut at [`PAUSE_REASON_BYTES`], at the end of a character.
    pub reason: &'t str,
}

impl Pause {
    fn begun(asked: &Pausing<'_>, now: Time) -> Pause {
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

    /// Whether calls are stopped at this time.
    pub fn is_on(&self, now: Time) -> bool {
        self.until > now
    }

    /// When it ends by itself; `None` if it does not.
    pub fn ends_at(&self) -> Option<Time> {
        (self.until < OPEN_ENDED).then_some(self.until)
    }

    /// Why, as text: what is not UTF-8 or cannot be shown on a terminal is replaced.
    pub fn reason_text(&self) -> String {
        let bytes = self.reason.as_flattened();
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).chars().map(shown).collect()
    }

    /// Whether an operation can have written these words: the pause began before now, and its reason is valid text.
    pub fn is_sane(&self, now: Time) -> bool {
        let bytes = self.reason.as_flattened();
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        let text = std::str::from_utf8(&bytes[..end]);
        let length = self.ends_at().map_or(Nanos::ZERO, |end| end.since(self.since));
        self.since <= now && length <= LONGEST_PAUSE && text.is_ok_and(is_showable)
    }
}

/// Whether a text can be shown on a terminal as it is: no control characters, no invisible ones that change the
/// direction of what follows.
pub fn is_showable(text: &str) -> bool {
    text.chars().all(|letter| shown(letter) == letter)
}

fn shown(letter: char) -> char {
    let turns = matches!(letter, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if letter.is_control() || turns { char::REPLACEMENT_CHARACTER } else { letter }
}

/// The pause in effect, if there is one.
pub fn paused<V: View>(v: &V, now: Time) -> Option<Pause> {
    Some(v.pause()).filter(|pause| pause.is_on(now))
}

/// When the pause ends; the largest time if that is not known. A time not after now means that no pause is in effect.
#[inline]
pub(super) fn paused_until<V: View>(v: &V) -> Time {
    let [until] = v.sheet(PAUSE_AT);
    Time(until)
}

/// The pause as a layer in the way of every call.
pub(super) fn block<V: View>(v: &V, now: Time) -> Option<Block> {
    let until = paused_until(v);
    let known = (until < OPEN_ENDED).then_some(until);
    (until > now).then_some(Block { reason: Reason::Paused, until: known })
}

/// Marks a pause whose time has come as over. Returns whether there was one.
pub(super) fn expire<M: Memory>(m: &mut M, now: Time) -> bool {
    let until = paused_until(m);
    let over = until > Time::ZERO && until <= now;
    if over {
        m.set_sheet(PAUSE_AT, [0]);
    }
    over
}

/// Begins a pause. It replaces an earlier one, which is returned if it was still in effect.
pub fn pause<M: Memory>(m: &mut M, asked: &Pausing<'_>, now: Time) -> Option<Pause> {
    change(m, now, |_, now| Pause::begun(asked, now))
}

/// Ends the pause and returns it, if one was in effect.
pub fn resume<M: Memory>(m: &mut M, now: Time) -> Option<Pause> {
    change(m, now, |before, _| Pause { until: Time::ZERO, ..*before })
}

fn change<M: Memory>(m: &mut M, now: Time, change: impl FnOnce(&Pause, Time) -> Pause) -> Option<Pause> {
    let now = now.max(m.core().latest);
    breaker::tick(m, now);
    let before = m.pause();
    let core = m.core();
    m.set_core(Core { latest: now, ..core });
    m.set_sheet(PAUSE_AT, bytemuck::cast::<_, [u64; PAUSE_WORDS]>(change(&before, now)));
    let health = m.health();
    breaker::attend(m, &health, now);
    Some(before).filter(|pause| pause.is_on(now))
}

/// Keeps a pause when damaged state is reset, if its words are valid. Otherwise damage would release calls that an operator
/// stopped.
pub(super) fn keep_if_sane<M: Memory>(m: &mut M, now: Time) {
    if !m.pause().is_sane(now) {
        m.set_sheet(PAUSE_AT, [0; PAUSE_WORDS]);
    }
}
