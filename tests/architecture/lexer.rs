//! Splits Rust source into words and signs, without comments and the contents of literals.

/// One word or sign and its line, counted from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub text: String,
    pub line: usize,
}

/// Splits source into tokens. Drops comments and lifetimes; a literal becomes `""`.
pub fn tokens(source: &str) -> Vec<Token> {
    let chars: Vec<char> = source.chars().collect();
    let mut tokens = Vec::new();
    let (mut i, mut line) = (0, 0);
    while i < chars.len() {
        let (length, text) = match chars[i] {
            '/' if chars.get(i + 1) == Some(&'/') => (until_newline(&chars[i..]), None),
            '/' if chars.get(i + 1) == Some(&'*') => (block_comment(&chars[i..]), None),
            '"' => (1 + string_end(&chars[i + 1..]), Some("\"\"".to_owned())),
            '\'' => quote(&chars[i..]),
            c if c.is_alphabetic() || c == '_' => word(&chars[i..]),
            ':' if chars.get(i + 1) == Some(&':') => (2, Some("::".to_owned())),
            c if c.is_whitespace() => (1, None),
            c => (1, Some(c.to_string())),
        };
        if let Some(text) = text {
            tokens.push(Token { text, line });
        }
        line += chars[i..i + length].iter().filter(|c| **c == '\n').count();
        i += length;
    }
    tokens
}

fn until_newline(chars: &[char]) -> usize {
    chars.iter().position(|c| *c == '\n').unwrap_or(chars.len())
}

fn block_comment(chars: &[char]) -> usize {
    let (mut depth, mut i) = (0, 0);
    while i < chars.len() {
        match (chars[i], chars.get(i + 1)) {
            ('/', Some('*')) => (depth, i) = (depth + 1, i + 2),
            ('*', Some('/')) => (depth, i) = (depth - 1, i + 2),
            _ => i += 1,
        }
        if depth == 0 {
            return i;
        }
    }
    chars.len()
}

/// The length of the rest of a string, including its closing quote.
fn string_end(chars: &[char]) -> usize {
    let mut i = 0;
    while i < chars.len() {
        match chars[i] {
            '\\' => i += 2,
            '"' => return i + 1,
            _ => i += 1,
        }
    }
    chars.len()
}

/// Reads a character literal or a lifetime.
fn quote(chars: &[char]) -> (usize, Option<String>) {
    match (chars.get(1), chars.get(2)) {
        (Some('\\'), _) => {
            let end = chars[3.min(chars.len())..].iter().position(|c| *c == '\'');
            (end.map_or(chars.len(), |end| end + 4), Some("\"\"".to_owned()))
        }
        (Some(_), Some('\'')) => (3, Some("\"\"".to_owned())),
        _ => (1 + chars[1..].iter().take_while(|c| c.is_alphanumeric() || **c == '_').count(), None),
    }
}

/// Reads a word, or a string literal that begins with letters (`r#""#`, `b""`, `c""`).
fn word(chars: &[char]) -> (usize, Option<String>) {
    let length = chars.iter().take_while(|c| c.is_alphanumeric() || **c == '_').count();
    let text: String = chars[..length].iter().collect();
    let hashes = chars[length..].iter().take_while(|c| **c == '#').count();
    let quoted = chars.get(length + hashes) == Some(&'"');
    if quoted && matches!(text.as_str(), "r" | "br" | "cr") {
        let end: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
        let start = length + hashes + 1;
        let inside = chars[start..].windows(end.len()).position(|w| w == end).unwrap_or(chars.len() - start);
        return ((start + inside + end.len()).min(chars.len()), Some("\"\"".to_owned()));
    }
    if quoted && hashes == 0 && matches!(text.as_str(), "b" | "c") {
        return (length + 1 + string_end(&chars[length + 1..]), Some("\"\"".to_owned()));
    }
    (length, Some(text))
}
