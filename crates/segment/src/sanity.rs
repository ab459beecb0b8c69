//! Whether a segment's state is one that committed transactions can leave, and how to reset it if not.

use crate::journal::{Found, Transaction};
use crate::layout;
use crate::lock::Os;
use crate::words::Words;
use shmlimit_kernel::policy::{POLICY_WORDS, Policy};
use shmlimit_kernel::state::{Core, Held, Memory, View};
use shmlimit_kernel::time::Time;
use shmlimit_kernel::{MAX_PERMITS, breaker, decide};

/// How far a stored time may be ahead of the clock. All processes read one clock, so this is at most noise.
pub(crate) const SKEW: u64 = 5_000_000_000;

/// How many journal entries a reset leaves to the transaction it is part of. Anything that is not repaired then is
/// repaired next time.
const JOURNAL_RESERVE: usize = 96;

/// Reads the policy of a segment and checks it. `Err` says what is wrong with it.
pub fn policy(words: &Words) -> Result<Policy, String> {
    let encoded: [u64; POLICY_WORDS] = words.load_array(layout::POLICY);
    if layout::checksum(encoded) != words.load(layout::POLICY_CHECKSUM) {
        return Err("the checksum of its configuration is wrong".into());
    }
    let policy = Policy::decode(&encoded).map_err(|error| error.to_string())?;
    match layout::size_for(&policy) <= words.cells().count() * 8 {
        true => Ok(policy),
        false => Err("its configuration needs a larger file".into()),
    }
}

/// Whether the state is one that committed transactions can leave.
pub fn is_sane<V: View>(view: &V, found: Found, now: Time) -> bool {
    found != Found::Damaged && is_core_sane(&view.core(), now)
}

/// [`is_sane`] for the common state of a segment that is whole.
#[inline(always)]
pub(crate) fn is_core_sane(core: &Core, now: Time) -> bool {
    core.latest.0 <= now.0.saturating_add(SKEW)
        && core.in_flight <= MAX_PERMITS
        && core.in_flight_background <= core.in_flight
}

/// [`is_sane`], and everything that decisions read: the effective limits are, word by word, those that the policy
/// and the breaker's state produce, and the rules are in range.
pub(crate) fn is_in_order<V: View>(view: &V, policy: &Policy, found: Found, now: Time) -> bool {
    is_sane(view, found, now) && breaker::is_effective(view, policy, now) && decide::sane(view)
}

/// `is_in_order`, and the checks that take longer, for processes that attach: the permits in flight equal the sum
/// of what the participants hold. Otherwise a wrong count would stay for ever.
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

/// Resets the state with an empty budget (a reset never hands out a full bucket). Counts permits again from what
/// the participants hold.
pub fn reset<O: Os>(tx: &mut Transaction<'_, O>, now: Time) {
    let policy = policy(tx.words()).ok();
    decide::reset(tx, policy.as_ref(), now);
    let mut in_flight = Held::default();
    for slot in 0..layout::SLOTS {
        let held = tx.held(slot);
        if held.background <= held.total && in_flight.total.saturating_add(held.total) <= MAX_PERMITS {
            in_flight.total += held.total;
            in_flight.background += held.background;
        } else if tx.room() > JOURNAL_RESERVE {
            tx.set_held(slot, Held::default());
        }
    }
    tx.set_core(Core { latest: now, in_flight: in_flight.total, in_flight_background: in_flight.background });
    let resets = tx.load(layout::RESETS);
    tx.write(layout::RESETS, resets.wrapping_add(1));
}
