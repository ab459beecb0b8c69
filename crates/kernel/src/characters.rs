//! Which characters of untrusted text must not be shown as they are.

/// Whether a character acts on a terminal (C0, DEL, C1), separates lines, or turns the direction of the text after it.
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{061c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}')
}
