//! The fast path of a limiter with a single rule that is a bucket.

use crate::admission::{permit_free, take_permit};
use crate::request::{AcquireRequest, Reason, Refusal};
use crate::rule::{Bucket, Need, RateAlgorithm, RuleContext, When};
use crate::state::Taken;
use crate::state::{Memory, View};
use crate::time::Time;

/// Fast path of [`acquire`](super::acquire). Grants a call in the usual case: the limiter has one rule, a
/// bucket, and the call costs one unit of it. In any other case returns `None` and takes nothing. It is short
/// enough to be inlined, which makes it several times as fast.
#[inline(always)]
pub fn acquire_single_bucket<M: Memory>(
    m: &mut M,
    slot: usize,
    request: &AcquireRequest,
    now: Time,
) -> Option<Taken> {
    let (general, core) = (m.general(), m.core());
    let background = request.priority.is_background();
    if general.rules != 1 || !m.waiting().is_empty() || !permit_free(&general, &core, background) {
        return None;
    }
    let now = now.max(core.latest);
    let (state, at) = (m.rule(0), RuleContext::of(m, 0, now));
    // A constant cost: an unnecessary multiplication would use up all registers.
    if now >= m.next_check() || !at.terms.is_plain_bucket() || request.cost[at.terms.unit()] != 1 {
        return None;
    }
    let (state, charge) = Bucket::admit(m, &at, state, Need { cost: 1, leave_reserve: background })?;
    m.set_rule(0, state);
    let permit = take_permit(m, slot, core, background, now);
    Some(Taken { granted_at: now, permit, charge })
}

/// Fast path of [`check`](super::check) for the usual refusal: the limiter has one rule, a bucket, that counts
/// this call, and that rule or the lack of a permit refuses it. In any other case returns `None`. It is short,
/// because refused callers ask again and again.
#[inline(always)]
pub fn check_single_bucket<V: View>(v: &V, request: &AcquireRequest, now: Time) -> Option<Refusal> {
    let general = v.general();
    if general.rules != 1 {
        return None;
    }
    let background = request.priority.is_background();
    let core = v.core();
    let now = now.max(core.latest);
    let free = permit_free(&general, &core, background);
    let (state, at, next_check) = (v.rule(0), RuleContext::of(v, 0, now), v.next_check());
    // A constant cost: an unnecessary multiplication would use up all registers.
    if now >= next_check || !at.terms.is_plain_bucket() || request.cost[at.terms.unit()] != 1 {
        return None;
    }
    let until = match Bucket::earliest(v, &at, state, Need { cost: 1, leave_reserve: background }) {
        When::At(time) if time < next_check => time,
        When::Now if !free => now,
        _ => return None,
    };
    // The same refusal as `Wait::refusal` returns if no other layer is in the way.
    let (reason, rule, retry_at) =
        if free { (Reason::Rate, Some(0), Some(until)) } else { (Reason::Concurrency, None, None) };
    Some(Refusal { reason, rule, retry_at, ready_at: Some(until), gate: now, checked_at: now })
}
