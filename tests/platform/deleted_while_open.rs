//! Limiters whose files are moved away, replaced or removed while programs have them open. These tests also run on
//! platforms that cannot delete a file in use; `deleted.rs` has the tests that only Linux can run.

use crate::util::respawn::in_own_process;
use crate::util::{NAME, builder, counted, directory, drain, segment_path, take_away};
use shmlimit::{Error, Limiter};
use std::path::Path;

const LIMIT: usize = 10;

fn make(home: &Path) -> Limiter {
    builder(home).policy(counted(LIMIT as u64, None)).create().unwrap()
}

fn is_noted(home: &Path) -> bool {
    home.join(format!(".{NAME}.removed")).exists()
}

#[test]
fn newcomer_finds_nothing_to_spend_while_an_idle_program_has_the_old_limiter_open() {
    in_own_process!();
    let home = directory();
    let idle = make(home.path());
    assert_eq!(drain(&idle), LIMIT);
    take_away(&segment_path(home.path()));
    let new = make(home.path());
    assert_eq!((drain(&new), drain(&idle)), (0, 0));
}

#[test]
fn newcomer_starts_afresh_if_no_program_has_the_old_limiter_open() {
    in_own_process!();
    let home = directory();
    assert_eq!(drain(&make(home.path())), LIMIT);
    take_away(&segment_path(home.path()));
    assert_eq!(drain(&make(home.path())), LIMIT);
}

#[test]
fn handle_of_an_older_segment_does_not_bring_a_removed_limiter_back() {
    in_own_process!();
    let home = directory();
    let idle = make(home.path());
    drop(builder(home.path()).policy(counted(LIMIT as u64, None)).replace().unwrap());
    builder(home.path()).remove(false).unwrap();
    let answer = idle.snapshot();
    assert!(matches!(answer, Err(Error::UnknownLimiter { .. })), "{answer:?}");
    assert!(!segment_path(home.path()).exists());
}

#[test]
fn removal_is_noted_while_programs_have_the_limiter_open_and_the_next_one_starts_afresh() {
    in_own_process!();
    let home = directory();
    let idle = make(home.path());
    assert_eq!(drain(&idle), LIMIT);
    builder(home.path()).remove(true).unwrap();
    assert!(is_noted(home.path()));
    let new = make(home.path());
    assert!(!is_noted(home.path()));
    assert_eq!(drain(&new), LIMIT);
    drop((idle, new));
    builder(home.path()).remove(false).unwrap();
    assert!(!is_noted(home.path()), "no program had it open");
}
