//! Collects what a parser has found: readings by the name of their window.

use super::Reading;
use std::collections::BTreeMap;

/// Maximum number of windows from one response, so that a hostile response cannot fill memory.
pub(super) const MOST_WINDOWS: usize = 64;
/// Longest name of a window, in bytes.
pub(super) const LONGEST_NAME: usize = 64;

impl Reading {
    /// Adds another reading of the same window. Of each number, the more restrictive one is kept (R99).
    pub(super) fn restrict(&mut self, other: Reading) {
        // A limit of 0 is an unknown limit (R99), and a window of length 0 is not a window.
        self.limit = least(self.limit, other.limit.filter(|limit| *limit > 0));
        self.remaining = least(self.remaining, other.remaining);
        self.used = self.used.max(other.used);
        self.reset_after = self.reset_after.max(other.reset_after);
        self.window = self.window.max(other.window.filter(|window| window.0 > 0));
    }
}

fn least(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        _ => a.or(b),
    }
}

/// Readings by name, each name once.
#[derive(Default)]
pub(super) struct Windows(BTreeMap<String, Reading>);

impl Windows {
    /// Adds the reading of a window. It is ignored if it is empty, if the name cannot be displayed and configured,
    /// or if there are too many windows already.
    pub(super) fn add(&mut self, name: &str, reading: Reading) {
        let mut added = self.0.get(name).copied().unwrap_or_default();
        added.restrict(reading);
        if added == Reading::default() || !is_name(name) {
            return;
        }
        if let Some(known) = self.0.get_mut(name) {
            *known = added;
        } else if self.0.len() < MOST_WINDOWS {
            self.0.insert(name.to_owned(), added);
        }
    }

    /// Adds all readings of another collection.
    pub(super) fn add_all(&mut self, others: Windows) {
        for (name, reading) in others.0 {
            self.add(&name, reading);
        }
    }

    /// All readings, sorted by name.
    pub(super) fn sorted(self) -> Vec<(String, Reading)> {
        self.0.into_iter().collect()
    }
}

/// Whether the name is printable ASCII without blanks at its ends, and not too long.
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= LONGEST_NAME
        && name.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        && name.trim_matches(' ').len() == name.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use shmlimit_kernel::time::Nanos;

    fn reading(limit: u64, remaining: u64, used: u64, reset: u64, window: u64) -> Reading {
        Reading {
            limit: Some(limit),
            remaining: Some(remaining),
            used: Some(used),
            reset_after: Some(Nanos(reset)),
            window: Some(Nanos(window)),
        }
    }

    #[test]
    fn r99_more_restrictive_numbers_of_two_readings_are_kept() {
        for (first, second) in [
            (reading(9, 3, 4, 1, 7), reading(8, 5, 6, 2, 5)),
            (reading(8, 5, 6, 2, 5), reading(9, 3, 4, 1, 7)),
        ] {
            let mut windows = Windows::default();
            windows.add("w", first);
            windows.add("w", second);
            assert_eq!(windows.sorted(), [("w".to_owned(), reading(8, 3, 6, 2, 7))]);
        }
    }

    #[test]
    fn r99_value_missing_in_one_reading_comes_from_the_other() {
        let mut windows = Windows::default();
        windows.add("w", Reading { limit: Some(5), ..Reading::default() });
        windows.add("w", Reading { remaining: Some(0), ..Reading::default() });
        windows.add("w", Reading::default());
        let both = Reading { limit: Some(5), remaining: Some(0), ..Reading::default() };
        assert_eq!(windows.sorted(), [("w".to_owned(), both)]);
    }

    #[test]
    fn r99_limit_of_zero_and_window_of_length_zero_are_unknown() {
        let mut windows = Windows::default();
        windows.add("alone", Reading { limit: Some(0), window: Some(Nanos(0)), ..Reading::default() });
        windows.add("w", reading(0, 0, 0, 0, 0));
        let zeros = Reading { limit: None, window: None, ..reading(0, 0, 0, 0, 0) };
        assert_eq!(windows.sorted(), [("w".to_owned(), zeros)]);

        let mut windows = Windows::default();
        windows.add("w", reading(5, 0, 0, 0, 5));
        windows.add("w", reading(0, 0, 0, 0, 0));
        assert_eq!(windows.sorted(), [("w".to_owned(), reading(5, 0, 0, 0, 5))]);
    }

    #[test]
    fn r99b_at_most_64_windows_are_kept_and_known_windows_still_change() {
        let mut windows = Windows::default();
        for i in 0..1000 {
            windows.add(&format!("w{i:04}"), reading(9, 9, 0, 0, 1));
        }
        windows.add("w0000", reading(9, 2, 0, 0, 1));
        let sorted = windows.sorted();
        assert_eq!(sorted.len(), MOST_WINDOWS);
        assert_eq!(sorted[63].0, "w0063");
        assert_eq!(sorted[0].1.remaining, Some(2));
    }

    #[test]
    fn r99b_names_are_printable_and_short() {
        for good in ["a", "two words", "a:b", "~!", &"n".repeat(LONGEST_NAME)] {
            assert!(is_name(good), "{good:?}");
        }
        for bad in ["", " ", " a", "a ", "a\nb", "a\0", "é", "\u{7f}", &"n".repeat(LONGEST_NAME + 1)] {
            assert!(!is_name(bad), "{bad:?}");
        }
    }
}
