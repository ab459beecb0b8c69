//! An operator pauses and resumes a limiter (R148).

use crate::breaker;
use crate::sheet::{PAUSE_AT, SheetView};
use crate::state::{Core, Memory, PAUSE_WORDS, Pause, Pausing};
use crate::time::Time;

/// Begins a pause. It replaces an earlier one, which is returned if it was still in effect.
pub fn pause<M: Memory>(m: &mut M, asked: &Pausing<'_>, now: Time) -> Option<Pause> {
    change(m, now, |_, now| Pause::begun(asked, now))
}

/// Ends the pause and returns it, if one was in effect.
pub fn resume<M: Memory>(m: &mut M, now: Time) -> Option<Pause> {
    change(m, now, |before, _| before.ended())
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
