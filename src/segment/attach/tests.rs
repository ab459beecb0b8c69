use super::*;
use crate::kernel::policy::PolicyDraft;
use crate::kernel::state::Held;
use crate::paths::{LimiterName, Place};
use crate::segment::create;
use crate::segment::directory::{Allowances, Directory};
use crate::segment::layout::{slot, slot_base};

fn segment(directory: &tempfile::TempDir) -> Segment {
    let place = Place { path: directory.path().to_owned(), chosen: true };
    let directory = Directory::find(&[place], Allowances::default()).unwrap();
    let name = LimiterName::new("tmdb").unwrap();
    let seed = Seed::fresh(Policy::new(&PolicyDraft::default()).unwrap());
    assert!(create::create(&directory, &name, &seed).unwrap());
    let bounds = Bounds { lock: Duration::from_millis(200), ..Bounds::default() };
    Segment::attach(create::open(&directory, &name).unwrap().unwrap(), bounds).unwrap()
}

/// The undertaker must not wait for the lock of the very one it buries: nobody else could rob it meanwhile.
#[test]
fn r113_one_who_died_with_permits_and_the_lock_is_buried_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let segment = segment(&directory);
    let member = segment.member().unwrap();
    let dead = (member.slot + 1) % SLOTS;
    segment.words.store(slot_base(dead) + slot::STATE, 1);
    segment.words.store(slot_base(dead) + slot::HELD, Held { total: 1, background: 1 }.to_word());
    segment.words.store(layout::CORE + 1, Held { total: 1, background: 1 }.to_word());
    segment.words.lock().store((dead as u32 + 1) << 20, Ordering::Relaxed);

    segment.bury(&member, dead).unwrap();
    assert!(!slots::is_owned(&segment.words, dead));
    assert_eq!(segment.look(|view| view.core().in_flight).unwrap(), 0);
}
