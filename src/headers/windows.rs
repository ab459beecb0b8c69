//! What a parser has found so far: readings by the name of their window.

use super::Reading;
use std::collections::BTreeMap;

/// Most windows that come out of one response, so that a hostile one cannot fill memory.
pub(super) const MOST_WINDOWS: usize = 64;
/// Longest name of a window, in bytes.
pub(super) const LONGEST_NAME: usize = 64;

impl Reading {
    /// Adds another reading of the same window: of each number, the more restrictive one (R99).
    pub(super) fn restrict(&mut self, other: Reading) {
        // A limit of 0 is an unknown limit (R99), and a window of no length is none.
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
    /// Adds what was read of a window. Ignored if that is nothing, if the name is none that could be shown and
    /// configured, or if there are too many windows already.
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

    /// Adds all that others have found.
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

/// Printable ASCII without blanks at its ends, and not too long.
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
    fn r99_of_two_readings_the_more_restrictive_numbers_stay() {
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
    fn r99_what_one_does_not_say_the_other_may() {
        let mut windows = Windows::default();
        windows.add("w", Reading { limit: Some(5), ..Reading::default() });
        windows.add("w", Reading { remaining: Some(0), ..Reading::default() });
        windows.add("w", Reading::default());
        let both = Reading { limit: Some(5), remaining: Some(0), ..Reading::default() };
        assert_eq!(windows.sorted(), [("w".to_owned(), both)]);
    }

    #[test]
    fn r99_a_limit_of_zero_is_unknown_and_so_is_a_window_of_no_length() {
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
    fn r99b_no_more_than_64_windows_and_the_known_ones_still_change() {
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
