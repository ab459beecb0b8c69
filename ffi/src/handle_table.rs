//! Handles that can be checked: a number for each value, and no number is ever given twice.
//!
//! C programs close twice, use what is closed, and mix up what they have. A pointer cannot tell; a number with a generation
//! in it can. Nobody waits here, not even for a thread that is gone after a fork.
//!
//! ```text
//! number   generation << 32 | kind << 26 | index     of which kind of thing: a grant is not taken for a wait
//! state    generation << 32 | OPEN | users        of a cell; a free cell has no OPEN and no users
//! free     tag << 26 | index                      the head of the list of free cells; each change of it has a new tag
//! ```
//!
//! Who finds its generation in an OPEN cell adds itself to the users, and the value stays until it has left. Closing takes
//! OPEN away, once; the last user, or whoever closed, then takes the value out, raises the generation and hangs the cell
//! on the list of free ones. Cells are never given back to the system, so an old number always leads to a cell. The cell
//! that was freed last is used first, so a program that makes one call after the other goes through the generations of
//! one cell, all of them in a quarter of an hour if it does nothing else: a cell with no generations left is not used again.
//!
//! A fork in the middle of any of this leaves the child whole: a cell that another thread was about to take or to free
//! is lost to it, and a value that another thread was using stays until the child ends.

use crate::sync::{AtomicPtr, AtomicU32, AtomicU64, Ordering, UnsafeCell};
use std::ops::Deref;

/// Cells of the first chunk; each next one has twice as many.
const FIRST: u32 = if cfg!(loom) { 1 } else { 64 };
const CHUNKS: usize = if cfg!(loom) { 2 } else { 20 };
const OPEN: u64 = 1 << 31;
const USERS: u64 = OPEN - 1;
/// The first generation of a cell is 1: no number is 0.
const NEW: u64 = 1 << 32;
/// Bits of an index. What is left of a word tags the head of the free list: who sleeps between reading and changing it must
/// not find the same again after others came and went, and 2^38 changes take most of a day.
const INDEX: u32 = 26;
const NONE: u32 = (1 << INDEX) - 1;
const _: () = assert!(FIRST as u64 * ((1 << CHUNKS) - 1) < NONE as u64, "every cell has an index");

pub(crate) struct Table<T> {
    kind: u32,
    chunks: [AtomicPtr<Cell<T>>; CHUNKS],
    /// How many cells were ever used.
    used: AtomicU32,
    /// The first free cell, and a count that makes every head another.
    free: AtomicU64,
}

struct Cell<T> {
    state: AtomicU64,
    next: AtomicU32,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: a value is reached by `&` while its cell has users, and moved out by the one who ended it.
unsafe impl<T: Send + Sync> Sync for Table<T> {}

/// A value in use. It stays until this goes.
pub(crate) struct InUse<'t, T> {
    table: &'t Table<T>,
    cell: &'t Cell<T>,
    index: u32,
    value: &'t T,
}

impl<T> Table<T> {
    /// A table of things of one kind, less than 64.
    #[cfg(not(loom))]
    pub(crate) const fn new(kind: u32) -> Table<T> {
        Table {
            kind,
            chunks: [const { AtomicPtr::new(std::ptr::null_mut()) }; CHUNKS],
            used: AtomicU32::new(0),
            free: AtomicU64::new(NONE as u64),
        }
    }

    /// A model's atomics are made as it runs.
    #[cfg(loom)]
    pub(crate) fn new(kind: u32) -> Table<T> {
        Table {
            kind,
            chunks: std::array::from_fn(|_| AtomicPtr::new(std::ptr::null_mut())),
            used: AtomicU32::new(0),
            free: AtomicU64::new(u64::from(NONE)),
        }
    }

    /// Keeps a value. Its number is never 0; nothing, and the value back, if there is no room.
    #[inline]
    pub(crate) fn insert(&self, value: T) -> Result<u64, T> {
        let Some((index, cell)) = self.free_cell() else { return Err(value) };
        let generation = cell.state.load(Ordering::Relaxed) >> 32;
        // SAFETY: the cell is on no list and not open: nobody else touches its value, which is none.
        cell.value.with_mut(|place| unsafe { place.write(Some(value)) });
        cell.state.store(generation << 32 | OPEN, Ordering::Release);
        Ok(generation << 32 | u64::from(self.kind << INDEX | index))
    }

    /// The value of that number, if it is there.
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
        // SAFETY: the cell has a user, us: the value stays, and is only read.
        let value = cell.value.with(|place| unsafe { (*place).as_ref() })?;
        Some(InUse { table: self, cell, index, value })
    }

    /// Ends that number; its value goes when its last user has left. False if it had ended already.
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

    /// Does something with a value that nobody [gets](Self::get), and ends its number if that went well. Meanwhile the
    /// number has ended for all others. Nothing if it had ended before.
    pub(crate) fn end<R, E>(
        &self,
        number: u64,
        how: impl FnOnce(&mut T) -> Result<R, E>,
    ) -> Option<Result<R, E>> {
        let (index, cell) = self.cell_of(number)?;
        self.shut(cell, number)?;
        // SAFETY: shut, and we are its only user, because nobody gets values of this table.
        let ended = cell.value.with_mut(|place| unsafe { (*place).as_mut() }.map(how));
        if let Some(Err(_)) = ended {
            cell.state.store(number & !u64::from(u32::MAX) | OPEN, Ordering::Release);
        } else {
            self.free(cell, index, number);
        }
        ended
    }

    /// Takes OPEN away, if it is there, and becomes a user.
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

    /// One user less. The last of a cell that is shut ends the value.
    fn leave(&self, cell: &Cell<T>, index: u32) {
        let before = cell.state.fetch_sub(1, Ordering::AcqRel);
        if before & (OPEN | USERS) == 1 {
            self.free(cell, index, before);
        }
    }

    /// Ends the value of a cell that is shut and has no users but us, and makes the cell free.
    fn free(&self, cell: &Cell<T>, index: u32, number: u64) {
        // SAFETY: nobody reaches it any more but us.
        cell.value.with_mut(|place| unsafe { *place = None });
        // A cell whose generations are used up stays as it is, shut for good.
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

    /// The cell of that index, if its chunk is there.
    fn cell(&self, index: u32) -> Option<&Cell<T>> {
        let (chunk, within, _) = place(index)?;
        let cells = self.chunks.get(chunk)?.load(Ordering::Acquire);
        // SAFETY: a chunk that is there has that many cells, and stays as long as the table, which is never dropped while
        // it is borrowed.
        if cells.is_null() { None } else { Some(unsafe { &*cells.add(within) }) }
    }

    fn cell_made(&self, index: u32) -> Option<&Cell<T>> {
        let (chunk, _, length) = place(index)?;
        let pointer = self.chunks.get(chunk)?;
        if pointer.load(Ordering::Acquire).is_null() {
            let cell = || Cell {
                state: AtomicU64::new(NEW),
                next: AtomicU32::new(NONE),
                value: UnsafeCell::new(None),
            };
            let cells: Box<[Cell<T>]> = (0..length).map(|_| cell()).collect();
            let made = Box::into_raw(cells);
            let placed = pointer.compare_exchange(
                std::ptr::null_mut(),
                made.cast::<Cell<T>>(),
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            if placed.is_err() {
                // SAFETY: another thread was faster; this one was never shared.
                drop(unsafe { Box::from_raw(made) });
            }
        }
        self.cell(index)
    }
}

/// The first cell of a free list.
fn first(head: u64) -> u32 {
    head as u32 & NONE
}

/// The head that follows `head`, with that cell first.
fn head_after(head: u64, index: u32) -> u64 {
    (head >> INDEX).wrapping_add(1) << INDEX | u64::from(index)
}

/// Where a cell is: which chunk, where in it, and how many cells that chunk has.
fn place(index: u32) -> Option<(usize, usize, usize)> {
    // Chunk k begins at FIRST * (2^k - 1).
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
    fn places_follow_each_other_without_gap() {
        assert_eq!(place(0), Some((0, 0, 64)));
        assert_eq!(place(63), Some((0, 63, 64)));
        assert_eq!(place(64), Some((1, 0, 128)));
        assert_eq!(place(191), Some((1, 127, 128)));
        assert_eq!(place(192), Some((2, 0, 256)));
        assert!(place(u32::MAX).is_none_or(|(chunk, ..)| chunk >= CHUNKS));
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
    fn a_number_of_another_kind_is_none() {
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
    fn a_head_is_never_the_same_again_soon() {
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
    fn of_many_who_close_one_number_exactly_one_does() {
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
    fn nothing_is_lost_or_seen_twice_among_threads() {
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
