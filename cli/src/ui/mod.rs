//! Code that all commands share for output: texts, tables, colours, errors and exit codes.

pub mod escape;
pub mod failure;
pub mod json;
pub mod layout;
pub mod limiter;
pub mod output;
pub mod suggestion;
pub mod time;

/// Returns a number and its noun, which is given in the plural.
pub fn count(number: u64, plural: &str) -> String {
    format!("{number} {}", noun(number, plural))
}

/// Returns the noun in the form that fits the number. Units of limiters are plurals with an s, such as `tokens`.
pub fn noun(number: u64, plural: &str) -> &str {
    match number {
        1 => plural.strip_suffix('s').unwrap_or(plural),
        _ => plural,
    }
}

/// Returns `once`, or `3 times`.
pub fn times(number: u64) -> String {
    if number == 1 { "once".to_owned() } else { format!("{number} times") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_is_singular() {
        let calls: Vec<String> = [0, 1, 2].map(|number| count(number, "calls")).into();
        assert_eq!(calls, ["0 calls", "1 call", "2 calls"]);
        assert_eq!(count(1, "data"), "1 data");
        assert_eq!((times(1).as_str(), times(2).as_str()), ("once", "2 times"));
    }
}
