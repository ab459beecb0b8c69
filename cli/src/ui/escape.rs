//! Makes untrusted text (program names, paths, arguments) safe to show.
//!
//! Untrusted text must not control a terminal, change how the text around it reads, or begin a new line. Single
//! values go through [`printable`] before they are inserted into a sentence or a table. All output goes through
//! [`lines`], [`painted`] or [`json`] in `output`, so that no value can be missed.

pub use shmlimit_kernel::characters::is_unsafe;
use std::borrow::Cow;

fn push_escaped(out: &mut String, c: char) {
    match c {
        '\n' | '\r' | '\t' => out.extend(c.escape_default()),
        c => out.extend(c.escape_unicode()),
    }
}

/// Returns a value on one line, with `\u{1b}` for an escape and `\n` for a line feed.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_unsafe(c) { push_escaped(&mut out, c) } else { out.push(c) }
    }
    out
}

/// Returns lines of text without colours.
pub fn lines(text: &str) -> Cow<'_, str> {
    filtered(text, false)
}

/// Returns lines of text that may have colours (`ESC [ … m`), as `output::Paint` writes them.
pub fn painted(text: &str) -> Cow<'_, str> {
    filtered(text, true)
}

fn filtered(text: &str, colours: bool) -> Cow<'_, str> {
    let stays = |c: char| matches!(c, '\n' | '\t') || !is_unsafe(c);
    if text.chars().all(stays) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let colour = if colours && c == '\x1b' { colour(rest) } else { None };
        let length = match colour {
            Some(length) => {
                out.push_str(&rest[..length]);
                length
            }
            None => {
                if stays(c) {
                    out.push(c)
                } else {
                    push_escaped(&mut out, c)
                }
                c.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    Cow::Owned(out)
}

/// Returns the length of the colour sequence at the start of a text, if there is one.
fn colour(text: &str) -> Option<usize> {
    let numbers = text.strip_prefix("\x1b[")?;
    let end = numbers.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    numbers[end..].starts_with('m').then_some("\x1b[".len() + end + 1)
}

/// Escapes unsafe characters in JSON. They occur only in its strings and are all below U+10000, so the meaning stays
/// the same.
pub fn json(text: String) -> String {
    if !text.chars().any(is_unsafe) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_unsafe(c) {
            out.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every kind of unsafe character: C0, DEL, C1, marks, separators, embeddings, isolates.
    const HOSTILE: &str = "a\u{0}\u{7}\u{8}\r\u{1b}[2Jb\u{7f}\u{85}\u{9b}31m\u{61c}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\
                           \u{202e}\u{2066}\u{2069}c";

    #[test]
    fn value_is_one_line_and_controls_nothing() {
        let shown = printable(&format!("{HOSTILE}\n\t"));
        assert!(!shown.chars().any(is_unsafe), "{shown}");
        assert!(shown.starts_with("a\\u{0}\\u{7}\\u{8}\\r\\u{1b}[2Jb\\u{7f}"), "{shown}");
        assert!(shown.ends_with("\\u{2069}c\\n\\t"), "{shown}");
        assert_eq!(printable("curl-8 'ünï' 日本"), "curl-8 'ünï' 日本");
        assert_eq!(printable("evil\x1b[2J"), "evil\\u{1b}[2J");
    }

    #[test]
    fn lines_keep_their_line_feeds_and_only_our_own_colours() {
        assert!(matches!(lines("one\n\ttwo\n"), Cow::Borrowed(_)));
        assert_eq!(lines("\x1b[31mred\x1b[0m\n"), "\\u{1b}[31mred\\u{1b}[0m\n");
        assert_eq!(painted("\x1b[31mred\x1b[0m\n"), "\x1b[31mred\x1b[0m\n");
        assert_eq!(painted("\x1b[2J\x1b]0;title\x07\x1b["), "\\u{1b}[2J\\u{1b}]0;title\\u{7}\\u{1b}[");
        let left = painted(HOSTILE).chars().filter(|c| is_unsafe(*c)).count();
        assert_eq!(left, 0);
    }

    #[test]
    fn json_keeps_its_meaning_when_unsafe_characters_are_escaped() {
        let value = serde_json::json!({ "a\u{202e}": [HOSTILE, "plain \" \\ ü"] });
        let text = json(value.to_string());
        assert!(!text.chars().any(is_unsafe), "{text}");
        assert!(text.contains("\\u202e") && text.contains("\\u009b"), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
