//! What the oracle found, each as it was first seen.

use super::*;

#[test]
fn r44_an_ignored_outcome_is_told_the_window_as_it_is_now() {
    let mut rig = Rig::tmdb(|_| {});
    rig.records(Class::Server, 3);
    rig.now = 30 * SECOND;
    let verdict = rig.record(Class::Ignored);
    assert_eq!((verdict.samples, verdict.errors), (0, 0), "an age of 30 s is out");
}
