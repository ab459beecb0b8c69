//! The handle table of the C ABI: a handle gives access to its value, the value ends exactly once, and its memory
//! is freed only when no thread uses it.
#![cfg(loom)]

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use shmlimit_loom_tests::explore::living;

/// The primitives of the table, from loom.
mod sync {
    pub(crate) use loom::cell::UnsafeCell;
    pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
}

#[path = "../../ffi/src/handle_table.rs"]
#[allow(missing_docs)]
mod handle_table;

use handle_table::Table;

/// A value whose memory loom checks: its creation, accesses and end must be ordered for all threads, and it ends
/// once.
struct Watched {
    content: UnsafeCell<u32>,
    ended: Arc<AtomicUsize>,
}

impl Watched {
    fn new(content: u32, ended: &Arc<AtomicUsize>) -> Watched {
        Watched { content: UnsafeCell::new(content), ended: ended.clone() }
    }

    fn read(&self) -> u32 {
        // SAFETY: loom fails if another thread may write at the same time.
        self.content.with(|content| unsafe { *content })
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // SAFETY: as above.
        self.content.with_mut(|content| unsafe { *content = 0 });
        self.ended.fetch_add(1, Ordering::Relaxed);
    }
}

type Shared = (Table<Watched>, Arc<AtomicUsize>);

fn shared() -> Arc<Shared> {
    Arc::new((Table::new(0), Arc::new(AtomicUsize::new(0))))
}

fn insert(shared: &Shared, content: u32) -> u64 {
    shared.0.insert(Watched::new(content, &shared.1)).ok().expect("room")
}

fn spawn<R: 'static>(
    shared: &Arc<Shared>,
    body: impl FnOnce(&Shared) -> R + 'static,
) -> thread::JoinHandle<R> {
    let shared = shared.clone();
    thread::spawn(move || body(&shared))
}

/// Ends a handle as a release does. Returns its content, if the handle was valid.
fn end(shared: &Shared, number: u64) -> Option<u32> {
    let ended = shared.0.end(number, |value| Ok::<_, ()>(value.read()))?;
    ended.ok()
}

#[test]
fn close_and_get_of_one_handle_do_not_race() {
    living("handles, a look beside a close", None, || {
        let shared = shared();
        let number = insert(&shared, 7);
        let looks = spawn(&shared, move |shared| shared.0.get(number).map(|value| value.read()));
        assert!(shared.0.close(number));
        assert!(matches!(looks.join().unwrap(), None | Some(7)));
        assert_eq!(shared.1.load(Ordering::Relaxed), 1, "ended once");
    });
}

#[test]
fn only_one_of_two_closes_succeeds() {
    living("handles, two close", None, || {
        let shared = shared();
        let number = insert(&shared, 7);
        let other = spawn(&shared, move |shared| shared.0.close(number));
        let user = shared.0.get(number);
        let here = shared.0.close(number);
        assert!(user.as_deref().is_none_or(|value| value.read() == 7));
        drop(user);
        assert!(here ^ other.join().unwrap());
        assert_eq!(shared.1.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn only_one_of_two_ends_succeeds_and_sees_the_inserted_value() {
    living("handles, two end", None, || {
        let shared = shared();
        let published = Arc::new(loom::sync::atomic::AtomicU64::new(0));
        let number = published.clone();
        // The handle reaches the other thread without any ordering, like a number in a plain C variable.
        let other = spawn(&shared, move |shared| end(shared, number.load(Ordering::Relaxed)));
        let made = insert(&shared, 7);
        published.store(made, Ordering::Relaxed);
        let here = end(&shared, made);
        assert_eq!([here, other.join().unwrap()].into_iter().flatten().collect::<Vec<_>>(), [7]);
        assert_eq!(shared.1.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn get_sees_the_inserted_value_without_other_synchronization() {
    living("handles, a look beside an insert", None, || {
        let shared = shared();
        let published = Arc::new(loom::sync::atomic::AtomicU64::new(0));
        let number = published.clone();
        let looks = spawn(&shared, move |shared| {
            shared.0.get(number.load(Ordering::Relaxed)).map(|value| value.read())
        });
        let made = insert(&shared, 7);
        published.store(made, Ordering::Relaxed);
        assert!(matches!(looks.join().unwrap(), None | Some(7)));
        assert!(shared.0.close(made));
        assert_eq!(shared.1.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn handle_stays_open_after_a_failed_end_and_its_changes_are_visible() {
    living("handles, an end that fails", None, || {
        let shared = shared();
        let number = insert(&shared, 7);
        let other = spawn(&shared, move |shared| end(shared, number));
        let failed = shared.0.end(number, |value| {
            // SAFETY: loom fails if another thread may read at the same time.
            value.content.with_mut(|content| unsafe { *content = 8 });
            Err::<(), ()>(())
        });
        let there = other.join().unwrap();
        let later = end(&shared, number);
        match (failed, there) {
            (None, Some(7)) => assert_eq!(later, None),
            (Some(Err(())), Some(8)) => assert_eq!(later, None),
            (Some(Err(())), None) => assert_eq!(later, Some(8)),
            other => panic!("{other:?}"),
        }
        assert_eq!(shared.1.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn reused_cell_does_not_answer_an_old_handle() {
    living("handles, a cell used again", None, || {
        let shared = shared();
        let old = insert(&shared, 7);
        let looks = spawn(&shared, move |shared| shared.0.get(old).map(|value| value.read()));
        assert!(shared.0.close(old));
        let new = insert(&shared, 8);
        assert_ne!(old, new);
        assert!(matches!(looks.join().unwrap(), None | Some(7)), "what the old number stood for, or nothing");
        assert_eq!(end(&shared, new), Some(8));
        assert_eq!(shared.1.load(Ordering::Relaxed), 2);
    });
}

#[test]
fn concurrent_inserts_and_ends_use_distinct_cells() {
    living("handles, two come and go", Some(2), || {
        let shared = shared();
        // Three cells, all on the free list. Threads that take one race for its head.
        let numbers = [insert(&shared, 1), insert(&shared, 2), insert(&shared, 3)];
        assert!(numbers.into_iter().all(|number| shared.0.close(number)));
        let come_and_go = |shared: &Shared, content| {
            let first = insert(shared, content);
            let second = insert(shared, content + 1);
            assert_eq!(end(shared, first), Some(content));
            assert_eq!(end(shared, second), Some(content + 1));
        };
        let other = spawn(&shared, move |shared| {
            let only = insert(shared, 30);
            assert_eq!(end(shared, only), Some(30));
        });
        come_and_go(&shared, 20);
        other.join().unwrap();
        assert_eq!(shared.1.load(Ordering::Relaxed), 6);
        let numbers = [1, 2, 3].map(|content| insert(&shared, content));
        let mut cells = numbers.map(|number| number as u32);
        cells.sort();
        assert_eq!(cells, [0, 1, 2], "each is free once");
        assert!(numbers.into_iter().all(|number| shared.0.close(number)));
    });
}

#[test]
fn concurrent_growth_loses_no_cell() {
    living("handles, two make room", Some(3), || {
        let shared = shared();
        let other = spawn(&shared, |shared| insert(shared, 8));
        let here = insert(&shared, 7);
        let there = other.join().unwrap();
        assert_ne!(here, there);
        assert_eq!((end(&shared, here), end(&shared, there)), (Some(7), Some(8)));
    });
}
