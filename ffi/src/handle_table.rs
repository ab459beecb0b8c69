//! A table of checked handles: each value gets a number, and no number is ever used twice.
//!
//! C programs close handles twice, use closed handles and mix up handles of different kinds. A pointer cannot
//! detect that; a number that contains a generation can. The table never blocks, not even for a thread that no
//! longer exists after a fork.
//!
//! ```text
//! number   generation << 32 | kind << 26 | index     the kind keeps a grant's number from being accepted as a wait's
//! state    generation << 32 | OPEN | users        of a cell; a free cell has no OPEN and no users
//! free     tag << 26 | index                      the head of the free list; each change of it uses a new tag
//! ```
//!
//! A thread that finds its generation in an OPEN cell adds itself to the users. The value stays until that thread
//! has left. Closing clears OPEN, once. Then the last user, which may be the closing thread itself, drops the
//! value, raises the generation and puts the cell on the free list.
//!
//! Cells are never returned to the system, so an old number always leads to a cell. The cell that was freed last is
//! used first. So a program that makes one call after another uses up the generations of one cell, all of them
//! within a quarter of an hour if it does nothing else. A cell without unused generations is not used again.
//!
//! A fork at any moment leaves the child's table consistent. A cell that another thread was about to take or to
//! free is lost to the child, and a value that another thread was using stays until the child ends.

use crate::sync::{AtomicPtr, AtomicU32, AtomicU64, Ordering, UnsafeCell};
use std::ops::Deref;

/// The number of cells of the first chunk. Each further chunk has twice as many.
const FIRST: u32 = if cfg!(loom) { 1 } else { 64 };
const CHUNKS: usize = if cfg!(loom) { 2 } else { 20 };
const OPEN: u64 = 1 << 31;
const USERS: u64 = OPEN - 1;
/// The state of a new cell. Its generation is 1, so no number is 0.
const NEW: u64 = 1 << 32;
/// The bits of an index. The other bits of the free list's head are a tag. Without the tag, a thread that sleeps
/// between reading and changing the head could find the same head again although the list changed in between (the
/// ABA problem). The tag repeats after 2^38 changes, which take most of a day.
const INDEX: u32 = 26;
const NONE: u32 = (1 << INDEX) - 1;
const _: () = assert!(FIRST as u64 * ((1 << CHUNKS) - 1) < NONE as u64, "every cell has an index");

pub(crate) struct Table<T> {
    kind: u32,
    chunks: [AtomicPtr<Cell<T>>; CHUNKS],
    /// How many cells have ever been used.
    used: AtomicU32,
    /// The index of the first free cell, and a tag that makes every head different.
    free: AtomicU64,
}

struct Cell<T> {
    state: AtomicU64,
    next: AtomicU32,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: a value is reached by `&` while its cell has users. Only the thread that ended it moves it out.
unsafe impl<T: Send + Sync> Sync for Table<T> {}

/// A value in use. The value stays in its cell until this guard is dropped.
pub(crate) struct InUse<'t, T> {
    table: &'t Table<T>,
    cell: &'t Cell<T>,
    index: u32,
    value: &'t T,
}

impl<T> Table<T> {
    /// A table of values of one kind. `kind` is less than 64.
    #[cfg(not(loom))]
    pub(crate) const fn new(kind: u32) -> Table<T> {
        Table {
            kind,
            chunks: [const { AtomicPtr::new(std::ptr::null_mut()) }; CHUNKS],
            used: AtomicU32::new(0),
            free: AtomicU64::new(NONE as u64),
        }
    }

    /// loom creates its atomics at run time, so this is not `const`.
    #[cfg(loom)]
    pub(crate) fn new(kind: u32) -> Table<T> {
        Table {
            kind,
            chunks: std::array::from_fn(|_| AtomicPtr::new(std::ptr::null_mut())),
            used: AtomicU32::new(0),
            free: AtomicU64::new(u64::from(NONE)),
        }
    }

    /// Stores a value and returns its number, which is never 0. Returns the value if the table is full.
    #[inline]
    pub(crate) fn insert(&self, value: T) -> Result<u64, T> {
        let Some((index, cell)) = self.free_cell() else { return Err(value) };
        let generation = cell.state.load(Ordering::Relaxed) >> 32;
        // SAFETY: the cell is on no list and not open: no other thread touches its value, which is `None`.
        cell.value.with_mut(|stored| unsafe { stored.write(Some(value)) });
        cell.state.store(generation << 32 | OPEN, Ordering::Release);
        Ok(generation << 32 | u64::from(self.kind << INDEX | index))
    }

    /// The value with this number, if the number is open.
    #[inline]
    pub(crate) fn get(&self, number: u64) -> Option<InUse<'_, T>> {
        let (index, cell) = self.cell_of(number)?;
        let mut state = cell.state.load(Ordering::Relaxed);
        loop {
            if state >> 32 != number >> 32 || state & OPEN == 0 || state & USERS == USERS {
                return None;
            }
            match cell.state.compare_exchange_weak(state, state + 1, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => break,
                Err(other) => state = other,
            }
        }
        // SAFETY: this thread is a user of the cell, so the value stays, and users only read it.
        let value = cell.value.with(|stored| unsafe { (*stored).as_ref() })?;
        Some(InUse { table: self, cell, index, value })
    }

    /// Closes a number. Its value is dropped when the last user has left. Returns false if the number was closed
    /// already.
    pub(crate) fn close(&self, number: u64) -> bool {
        let Some((index, cell)) = self.cell_of(number) else { return false };
        match self.shut(cell, number) {
            None => false,
            Some(()) => {
                self.leave(cell, index);
                true
            }
        }
    }

    /// Calls `how` with a value of a table that is never read with [`Table::get`], and closes its number if `how`
    /// succeeds. The number is closed to all other threads meanwhile. Returns `None` if it was closed already.
    pub(crate) fn end<R, E>(
        &self,
        number: u64,
        how: impl FnOnce(&mut T) -> Result<R, E>,
    ) -> Option<Result<R, E>> {
        let (index, cell) = self.cell_of(number)?;
        self.shut(cell, number)?;
        // SAFETY: the cell is shut, and this thread is its only user, because `get` is never called on this table.
        let ended = cell.value.with_mut(|stored| unsafe { (*stored).as_mut() }.map(how));
        if let Some(Err(_)) = ended {
            cell.state.store(number & !u64::from(u32::MAX) | OPEN, Ordering::Release);
        } else {
            self.free(cell, index, number);
        }
        ended
    }

    /// Clears OPEN, if it is set, and becomes a user.
    fn shut(&self, cell: &Cell<T>, number: u64) -> Option<()> {
        let mut state = cell.state.load(Ordering::Relaxed);
        loop {
            if state >> 32 != number >> 32 || state & OPEN == 0 || state & USERS == USERS {
                return None;
            }
            let shut = (state & !OPEN) + 1;
            match cell.state.compare_exchange_weak(state, shut, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(()),
                Err(other) => state = other,
            }
        }
    }

    /// Removes one user. The last user of a shut cell drops the value.
    fn leave(&self, cell: &Cell<T>, index: u32) {
        let before = cell.state.fetch_sub(1, Ordering::AcqRel);
        if before & (OPEN | USERS) == 1 {
            self.free(cell, index, before);
        }
    }

    /// Drops the value of a shut cell whose only user is this thread, and puts the cell on the free list.
    fn free(&self, cell: &Cell<T>, index: u32, number: u64) {
        // SAFETY: no other thread can reach the value any more.
        cell.value.with_mut(|stored| unsafe { *stored = None });
        // A cell whose generations are used up stays shut for ever.
        let Some(generation) = ((number >> 32) as u32).checked_add(1) else { return };
        cell.state.store(u64::from(generation) << 32, Ordering::Relaxed);
        let mut head = self.free.load(Ordering::Relaxed);
        loop {
            cell.next.store(first(head), Ordering::Relaxed);
            match self.free.compare_exchange_weak(
                head,
                head_after(head, index),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(other) => head = other,
            }
        }
    }

    fn free_cell(&self) -> Option<(u32, &Cell<T>)> {
        let mut head = self.free.load(Ordering::Acquire);
        while first(head) != NONE {
            let index = first(head);
            let cell = self.cell(index)?;
            let next = head_after(head, cell.next.load(Ordering::Relaxed));
            match self.free.compare_exchange_weak(head, next, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some((index, cell)),
                Err(other) => head = other,
            }
        }
        let mut index = self.used.load(Ordering::Relaxed);
        loop {
            let cell = self.cell_made(index)?;
            match self.used.compare_exchange_weak(index, index + 1, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some((index, cell)),
                Err(other) => index = other,
            }
        }
    }

    fn cell_of(&self, number: u64) -> Option<(u32, &Cell<T>)> {
        let (kind, index) = (number as u32 >> INDEX, number as u32 & NONE);
        if kind == self.kind { Some((index, self.cell(index)?)) } else { None }
    }

    /// The cell with this index, if its chunk is allocated.
    fn cell(&self, index: u32) -> Option<&Cell<T>> {
        let (chunk, within, _) = position(index)?;
        let cells = self.chunks.get(chunk)?.load(Ordering::Acquire);
        // SAFETY: an allocated chunk has that many cells. It lives as long as the table, which is never dropped
        // while it is borrowed.
        if cells.is_null() { None } else { Some(unsafe { &*cells.add(within) }) }
    }

    fn cell_made(&self, index: u32) -> Option<&Cell<T>> {
        let (chunk, _, length) = position(index)?;
        let pointer = self.chunks.get(chunk)?;
        if pointer.load(Ordering::Acquire).is_null() {
            let cell = || Cell {
                state: AtomicU64::new(NEW),
                next: AtomicU32::new(NONE),
                value: UnsafeCell::new(None),
            };
            let cells: Box<[Cell<T>]> = (0..length).map(|_| cell()).collect();
            let made = Box::into_raw(cells);
            let stored = pointer.compare_exchange(
                std::ptr::null_mut(),
                made.cast::<Cell<T>>(),
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            if stored.is_err() {
                // SAFETY: another thread stored its chunk first; this one was never shared.
                drop(unsafe { Box::from_raw(made) });
            }
        }
        self.cell(index)
    }
}

/// The index of a free list's first cell.
fn first(head: u64) -> u32 {
    head as u32 & NONE
}

/// The head that follows `head`, with this cell first.
fn head_after(head: u64, index: u32) -> u64 {
    (head >> INDEX).wrapping_add(1) << INDEX | u64::from(index)
}

/// The position of a cell: its chunk, its position in the chunk, and the number of cells of the chunk.
fn position(index: u32) -> Option<(usize, usize, usize)> {
    // Chunk k begins at index FIRST * (2^k - 1).
    let chunk = (index / FIRST).checked_add(1)?.ilog2();
    let length = FIRST.checked_shl(chunk)?;
    let within = index - FIRST * ((1 << chunk) - 1);
    Some((chunk as usize, within as usize, length as usize))
}

impl<T> Deref for InUse<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value
    }
}

impl<T> Drop for InUse<'_, T> {
    fn drop(&mut self) {
        self.table.leave(self.cell, self.index);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn positions_follow_each_other_without_gap() {
        assert_eq!(position(0), Some((0, 0, 64)));
        assert_eq!(position(63), Some((0, 63, 64)));
        assert_eq!(position(64), Some((1, 0, 128)));
        assert_eq!(position(191), Some((1, 127, 128)));
        assert_eq!(position(192), Some((2, 0, 256)));
        assert!(position(u32::MAX).is_none_or(|(chunk, ..)| chunk >= CHUNKS));
    }

    #[test]
    fn a_number_works_until_it_is_closed_and_never_again() {
        let table = Table::new(0);
        let first = table.insert("first").unwrap();
        assert_eq!(table.get(first).as_deref(), Some(&"first"));
        assert!(table.close(first));
        assert!(!table.close(first), "twice");
        assert!(table.get(first).is_none());
        let second = table.insert("second").unwrap();
        assert_eq!(second as u32, first as u32, "the cell is used again");
        assert_ne!(second, first);
        assert!(table.end(first, |_| Ok::<_, ()>(())).is_none());
        assert_eq!(
            table.end(second, |value| Err::<(), _>(*value)),
            Some(Err("second")),
            "stays after a failure"
        );
        assert_eq!(table.end(second, |value| Ok::<_, ()>(*value)), Some(Ok("second")));
        for garbage in [0, 1, u64::MAX, 1 << 40, second] {
            assert!(table.get(garbage).is_none() && !table.close(garbage), "{garbage}");
        }
    }

    #[test]
    fn a_number_of_another_kind_is_invalid() {
        let (grants, waits) = (Table::new(1), Table::new(63));
        for i in 0..100 {
            let (grant, wait) = (grants.insert(i).unwrap(), waits.insert(i).unwrap());
            assert!(grants.get(wait).is_none() && !grants.close(wait));
            assert!(waits.end(grant, |_| Ok::<_, ()>(())).is_none());
            assert_eq!((grants.get(grant).as_deref(), waits.get(wait).as_deref()), (Some(&i), Some(&i)));
        }
    }

    #[test]
    fn a_value_stays_until_its_last_user_has_left() {
        let table = Table::new(0);
        let value = Arc::new(());
        let number = table.insert(Arc::clone(&value)).unwrap();
        let user = table.get(number).unwrap();
        assert!(table.close(number));
        assert!(table.get(number).is_none(), "closed for all others");
        assert_eq!(Arc::strong_count(&value), 2);
        drop(user);
        assert_eq!(Arc::strong_count(&value), 1);
    }

    #[test]
    fn a_cell_whose_generations_are_used_up_is_not_used_again() {
        let table = Table::new(0);
        let first = table.insert("first").unwrap();
        assert!(table.close(first));
        // As after 2^32 calls.
        table.cell(0).unwrap().state.store(u64::from(u32::MAX) << 32, Ordering::Relaxed);
        let last = table.insert("last").unwrap();
        assert_eq!(last, u64::from(u32::MAX) << 32);
        assert_eq!(table.end(last, |value| Ok::<_, ()>(*value)), Some(Ok("last")));
        let next = table.insert("next").unwrap();
        assert_eq!(next as u32, 1, "another cell");
        for old in [0, first, last] {
            assert!(table.get(old).is_none() && !table.close(old), "{old}");
        }
    }

    #[test]
    fn a_head_does_not_repeat_soon() {
        let empty = u64::from(NONE);
        let once = head_after(empty, 5);
        assert_eq!((first(empty), first(once)), (NONE, 5));
        assert_ne!(head_after(head_after(once, NONE), 5), once);
        let last = !u64::from(NONE);
        assert_eq!(head_after(last, 7), 7, "tags wrap, and leave the index alone");
    }

    #[test]
    fn more_values_than_one_chunk_holds() {
        let table = Table::new(0);
        let numbers: Vec<u64> = (0..1000).map(|i| table.insert(i).unwrap()).collect();
        for (i, number) in numbers.iter().enumerate() {
            assert_eq!(table.end(*number, |value| Ok::<_, ()>(*value)), Some(Ok(i)));
        }
    }

    #[test]
    fn exactly_one_of_many_closing_threads_closes_a_number() {
        let table: Table<u64> = Table::new(0);
        let taken = AtomicU64::new(0);
        for round in 0..2000 {
            let number = table.insert(round).unwrap();
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| taken.fetch_add(u64::from(table.close(number)), Ordering::Relaxed));
                }
            });
        }
        assert_eq!(taken.load(Ordering::Relaxed), 2000);
    }

    #[test]
    fn values_are_neither_lost_nor_seen_twice_among_threads() {
        let table: Table<Arc<u64>> = Table::new(0);
        let counted = Arc::new(7);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        let number = table.insert(Arc::clone(&counted)).unwrap();
                        assert_eq!(table.get(number).map(|seen| **seen), Some(7));
                        assert!(table.close(number));
                        assert!(!table.close(number));
                    }
                });
            }
        });
        assert_eq!(Arc::strong_count(&counted), 1);
        assert!(table.used.load(Ordering::Relaxed) <= 8, "cells are used again");
    }
}
