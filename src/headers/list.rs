//! Reads lists of structured header fields (RFC 9651): members with parameters, strings in quotes.
//!
//! This covers only the part of the grammar that is needed to find a member's name and its numbers. Blanks are
//! allowed where the grammar has none. The types of unknown parameters are not checked.

use super::number::trim;
use super::windows::LONGEST_NAME;

/// The members of a list; `None` if a quote does not end.
pub(super) fn members(value: &str) -> Option<impl Iterator<Item = Member<'_>>> {
    if !quotes_end(value) {
        return None;
    }
    // Empty members are skipped, as in HTTP lists.
    let members = pieces(value, b',').map(trim).filter(|member| !member.is_empty());
    Some(members.map(Member))
}

/// One member: its item and its parameters.
#[derive(Clone, Copy)]
pub(super) struct Member<'v>(&'v str);

impl<'v> Member<'v> {
    /// The member without its parameters.
    pub(super) fn item(self) -> &'v str {
        trim(pieces(self.0, b';').next().unwrap_or_default())
    }

    /// The names and values of the parameters. A parameter without a value has an empty value.
    pub(super) fn parameters(self) -> impl Iterator<Item = (&'v str, &'v str)> {
        pieces(self.0, b';').skip(1).map(|piece| {
            let (key, value) = piece.split_once('=').unwrap_or((piece, ""));
            (trim(key), trim(value))
        })
    }

    /// The name of the member: a token, or a string in quotes. `None` if it is neither, or too long.
    pub(super) fn name(self) -> Option<String> {
        let item = self.item();
        let Some(string) = item.strip_prefix('"') else {
            return is_token(item).then(|| item.to_owned());
        };
        unescape(string.strip_suffix('"')?)
    }
}

/// The text between quotes.
fn unescape(string: &str) -> Option<String> {
    let mut name = String::new();
    let mut characters = string.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => return None,
            '\\' => name.push(characters.next().filter(|c| ['"', '\\'].contains(c))?),
            other => name.push(other),
        }
        if name.len() > LONGEST_NAME {
            return None;
        }
    }
    Some(name)
}

fn is_token(text: &str) -> bool {
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '*');
    let in_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte);
    starts && text.len() <= LONGEST_NAME && text.bytes().all(in_token)
}

fn quotes_end(text: &str) -> bool {
    let mut quotes = Quotes::default();
    text.bytes().for_each(|byte| quotes.pass(byte));
    !quotes.inside
}

/// Splits at a separator, except inside quotes.
fn pieces(text: &str, separator: u8) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let mut quotes = Quotes::default();
        let end = text.bytes().position(|byte| {
            quotes.pass(byte);
            byte == separator && !quotes.inside
        });
        // A separator is ASCII, so both sides of it are character boundaries.
        rest = end.map(|end| &text[end + 1..]);
        Some(end.map_or(text, |end| &text[..end]))
    })
}

/// Tracks whether the bytes so far leave a quote open.
#[derive(Default)]
struct Quotes {
    inside: bool,
    escaped: bool,
}

impl Quotes {
    fn pass(&mut self, byte: u8) {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'"' => self.inside = !self.inside,
            b'\\' => self.escaped = self.inside,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(value: &str) -> Vec<&str> {
        members(value).unwrap().map(Member::item).collect()
    }

    fn first(value: &str) -> Member<'_> {
        members(value).unwrap().next().unwrap()
    }

    #[test]
    fn r97_members_end_at_commas_outside_of_quotes() {
        assert_eq!(items(r#""a,b";x=1 , c ;y="d,e;f" ,, 5;w=1"#), [r#""a,b""#, "c", "5"]);
        assert_eq!(items(""), [""; 0]);
        assert_eq!(items(" , ,"), [""; 0]);
        assert_eq!(items("é,日本"), ["é", "日本"]);
    }

    #[test]
    fn r97_parameters_come_with_and_without_values() {
        let parameters: Vec<_> =
            first(r#""p"; q = 10;pk=:YWI=:;flag;s="a;b\";c";w=60"#).parameters().collect();
        let expected = [("q", "10"), ("pk", ":YWI=:"), ("flag", ""), ("s", r#""a;b\";c""#), ("w", "60")];
        assert_eq!(parameters, expected);
    }

    #[test]
    fn r97_names_are_tokens_or_strings() {
        for (value, name) in [
            ("default;r=1", "default"),
            ("*a/b:c", "*a/b:c"),
            (r#""two words";r=1"#, "two words"),
            (r#""a\"b\\c""#, r#"a"b\c"#),
            (r#""""#, ""),
        ] {
            assert_eq!(first(value).name().as_deref(), Some(name), "{value}");
        }
        let long = "n".repeat(LONGEST_NAME + 1);
        for value in
            ["5", "(a b)", "a b", r#"a"b""#, r#""a"b"#, r#""a\b""#, r#""a""b""#, &long, &format!("{long:?}")]
        {
            assert_eq!(first(value).name(), None, "{value}");
        }
    }

    #[test]
    fn r94_a_quote_without_an_end_makes_the_value_malformed() {
        for value in [r#"""#, r#""a"#, r#"a;b="c"#, r#""a\""#, r#""a\\\""#] {
            assert!(members(value).is_none(), "{value}");
        }
        assert!(members(r#""a\\""#).is_some());
    }
}
