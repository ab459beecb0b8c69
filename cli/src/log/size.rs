//! Parses sizes such as `10MB`.

/// The minimum size of a log file in bytes: a few lines.
const SMALLEST: u64 = 1000;

/// Every spelling of a unit, and its size in bytes.
const UNITS: [(&str, u64); 14] = [
    ("", 1),
    ("b", 1),
    ("k", 1000),
    ("kb", 1000),
    ("m", 1_000_000),
    ("mb", 1_000_000),
    ("g", 1_000_000_000),
    ("gb", 1_000_000_000),
    ("ki", 1 << 10),
    ("kib", 1 << 10),
    ("mi", 1 << 20),
    ("mib", 1 << 20),
    ("gi", 1 << 30),
    ("gib", 1 << 30),
];

/// Parses a size: `500kB`, `10MB`, `1GiB`, or a plain number of bytes.
pub fn parse(text: &str) -> Result<u64, String> {
    let wanted = || "must be a size such as 500kB, 10MB or 1GiB".to_owned();
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = unit.trim_start().to_ascii_lowercase();
    let (_, bytes) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wanted)?;
    let number: u64 = number.parse().map_err(|_| wanted())?;
    let size = number.checked_mul(*bytes).ok_or_else(wanted)?;
    if size < SMALLEST { Err(format!("must be at least {SMALLEST} bytes")) } else { Ok(size) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parsed_as_people_write_them() {
        for (text, bytes) in [
            ("4096", 4096),
            ("10MB", 10_000_000),
            ("10 mb", 10_000_000),
            ("64KiB", 65_536),
            ("1G", 1_000_000_000),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for text in ["", "MB", "-1", "10 parsecs", "1.5MB", "999", "99999999999999999999", "99999999999999GB"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
