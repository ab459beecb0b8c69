//! Reads Upbit's `Remaining-Req: group=default; min=598; sec=9` (R96).

use super::number::{number, trim};
use super::windows::Windows;
use super::{Header, Parser, Reading};

/// The remaining units of each group's second (`default:sec`) and minute (`default:min`).
#[derive(Clone, Copy, Debug)]
pub struct Upbit;

impl Parser for Upbit {
    fn parse(&self, headers: &[Header<'_>], _wall_now: u64) -> Vec<(String, Reading)> {
        let mut windows = Windows::default();
        let mine = headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("remaining-req"));
        for group in mine.filter_map(|(_, value)| Group::read(value)) {
            for (window, reading) in [("sec", group.sec), ("min", group.min)] {
                windows.add(&format!("{}:{window}", group.name), reading);
            }
        }
        windows.sorted()
    }
}

struct Group<'v> {
    name: &'v str,
    sec: Reading,
    min: Reading,
}

impl<'v> Group<'v> {
    /// Reads one value. A malformed number is ignored, and the other one stays (R94). The value as a whole is
    /// ignored if the group of its numbers is unclear: no group, two groups, or several values joined into one.
    fn read(value: &'v str) -> Option<Group<'v>> {
        let (mut name, mut sec, mut min) = (None, Reading::default(), Reading::default());
        for part in value.split(';').filter_map(|part| part.split_once('=')) {
            let (key, value) = (trim(part.0), trim(part.1));
            if value.contains('=') {
                return None;
            }
            let left = Reading { remaining: number(value), ..Reading::default() };
            if key.eq_ignore_ascii_case("group") {
                if name.is_some_and(|other| other != value) {
                    return None;
                }
                name = Some(value);
            } else if key.eq_ignore_ascii_case("sec") {
                sec.restrict(left);
            } else if key.eq_ignore_ascii_case("min") {
                min.restrict(left);
            }
        }
        // Checked first, so that a name that is too long is not copied.
        let name = name.filter(|name| super::windows::is_name(name))?;
        Some(Group { name, sec, min })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(values: &[&str], expected: &[(&str, u64)]) {
        let headers: Vec<Header<'_>> = values.iter().map(|value| ("Remaining-Req", *value)).collect();
        let reading = |n: u64| Reading { remaining: Some(n), ..Reading::default() };
        let expected: Vec<_> = expected.iter().map(|(name, n)| (name.to_string(), reading(*n))).collect();
        assert_eq!(Upbit.parse(&headers, 0), expected, "{values:?}");
    }

    #[test]
    fn r96_both_windows_of_a_group_are_read_in_any_order_and_spacing() {
        let both = [("default:min", 598), ("default:sec", 9)];
        is(&["group=default; min=598; sec=9"], &both);
        is(&["sec=9;group=default;min=598"], &both);
        is(&["  SEC = 9 ;\tmin= 598 ; Group =default ; "], &both);
        is(&["group=default; sec=0"], &[("default:sec", 0)]);
        is(&["group=crypto-trade; min=1; sec=2; new=x"], &[("crypto-trade:min", 1), ("crypto-trade:sec", 2)]);
    }

    #[test]
    fn r96_value_without_a_group_is_malformed() {
        is(&["min=598; sec=9"], &[]);
        is(&["group=; min=598; sec=9"], &[]);
        is(&["group; min=598; sec=9"], &[]);
        is(&[""], &[]);
    }

    #[test]
    fn r94_malformed_number_does_not_affect_the_valid_one() {
        is(&["group=default; min=5; sec=x"], &[("default:min", 5)]);
        is(&["group=default; min=598; sec=-1"], &[("default:min", 598)]);
        is(&["group=default; min=; sec=9"], &[("default:sec", 9)]);
        is(&["group=default; min; sec=9"], &[("default:sec", 9)]);
        is(&["sec=1.5; min=7; group=default"], &[("default:min", 7)]);
        is(&["group=g; sec=x; sec=4"], &[("g:sec", 4)]);
        is(&["group=default; min=x; sec=y", "group=order; sec=7"], &[("order:sec", 7)]);
    }

    #[test]
    fn r94_numbers_of_an_unclear_group_are_ignored() {
        is(&["group=a; min=1; sec=2, group=b; min=1; sec=2"], &[]);
        is(&["group=a; group=b; min=1; sec=2"], &[]);
        is(&["group=a; group=a; sec=2"], &[("a:sec", 2)]);
        is(&[&format!("group={}; sec=9", "g".repeat(65536))], &[]);
    }

    #[test]
    fn r99_smallest_remaining_of_duplicates_is_kept() {
        is(&["group=g; sec=5", "group=g; sec=3", "group=g; sec=4"], &[("g:sec", 3)]);
        is(&["group=g; sec=3; sec=5"], &[("g:sec", 3)]);
        is(&["group=a; sec=3", "group=b; sec=5"], &[("a:sec", 3), ("b:sec", 5)]);
    }

    #[test]
    fn r94_name_matches_in_any_case_and_other_names_are_ignored() {
        assert_eq!(Upbit.parse(&[("REMAINING-REQ", "group=g;sec=1")], 0).len(), 1);
        assert_eq!(Upbit.parse(&[("Remaining-Reqs", "group=g;sec=1")], 0), []);
    }
}
