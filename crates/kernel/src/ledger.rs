//! Statistics for reports. No decision depends on them (R116).

use super::health_state::{CODES_AT, LEDGER_AT};
use super::state::{Memory, View};

pub use super::state::{CODES, LEDGER_WORDS, Ledger, USUAL};

/// The bit at which the code begins in a word. The count is in the bits below it.
const CODE_SHIFT: u32 = 48;

/// Reads the ledger of a limiter.
pub fn ledger<V: View>(v: &V) -> Ledger {
    bytemuck::cast::<[u64; LEDGER_WORDS], _>(v.health_state(LEDGER_AT))
}

/// Changes the ledger of a limiter.
pub fn change<M: Memory>(m: &mut M, change: impl FnOnce(&mut Ledger)) {
    let mut ledger = ledger(m);
    change(&mut ledger);
    m.set_health_state(LEDGER_AT, bytemuck::cast::<_, [u64; LEDGER_WORDS]>(ledger));
}

/// Adds the counts of a participant that leaves: calls granted, calls refused, queue checks.
pub fn left<M: Memory>(m: &mut M, counted: [u64; 3]) {
    if counted != [0; 3] {
        let before: [u64; 3] = m.health_state(LEDGER_AT);
        m.set_health_state(
            LEDGER_AT,
            std::array::from_fn::<u64, 3, _>(|i| before[i].wrapping_add(counted[i])),
        );
    }
}

/// Counts a call that ended with this code: an HTTP status, or the number of an error (from 1).
pub fn ended<M: Memory>(m: &mut M, code: u16) {
    if code == USUAL {
        return;
    }
    let codes: [u64; CODES] = m.health_state(CODES_AT);
    let (last, own) = (CODES - 1, codes.map(|word| (word >> CODE_SHIFT) as u16));
    let place = own[..last].iter().position(|one| *one == code || *one == 0).unwrap_or(last);
    let named = if place == last { 0 } else { u64::from(code) << CODE_SHIFT };
    m.set_health_state(CODES_AT + place, [named | count_of(codes[place]).wrapping_add(1) & COUNT]);
}

const COUNT: u64 = (1 << CODE_SHIFT) - 1;

const fn count_of(word: u64) -> u64 {
    word & COUNT
}

/// The number of calls for each result code, except the usual code. Code 0 stands for all codes that had no
/// place of their own.
pub fn codes<V: View>(v: &V) -> impl Iterator<Item = (u16, u64)> + use<V> {
    let codes: [u64; CODES] = v.health_state(CODES_AT);
    codes
        .into_iter()
        .map(|word| ((word >> CODE_SHIFT) as u16, count_of(word)))
        .filter(|(_, count)| *count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::LocalMemory;
    use std::time::Duration;

    fn fresh() -> LocalMemory {
        use crate::{Algorithm, Policy, PolicyDraft, RuleDraft};
        let rule = RuleDraft::new(Algorithm::Gcra, 1, Duration::from_secs(1));
        LocalMemory::new(&Policy::new(&PolicyDraft { rules: &[rule], ..PolicyDraft::default() }).unwrap())
    }

    #[test]
    fn r116_codes_beyond_the_available_places_are_counted_together() {
        let mut memory = fresh();
        for code in 400..=499 {
            ended(&mut memory, code);
            ended(&mut memory, code);
        }
        ended(&mut memory, 401);
        let counted: Vec<_> = codes(&memory).collect();
        assert_eq!(counted.len(), CODES);
        assert_eq!(counted[..2], [(400, 2), (401, 3)]);
        assert_eq!(counted[CODES - 1], (0, 2 * (100 - 63)));
    }

    #[test]
    fn the_usual_code_is_not_counted_separately() {
        let mut memory = fresh();
        ended(&mut memory, USUAL);
        assert_eq!(codes(&memory).count(), 0);
    }
}
