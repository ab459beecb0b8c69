//! Characters of untrusted text that must not be printed unchanged.

/// Whether a character controls a terminal (C0, DEL, C1), separates lines, or changes the direction of the text
/// after it.
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{061c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}')
}
