//! A pattern on the lines of what a command says.

use super::word::Word;
use regex_lite::Regex;

/// What is longer is looked at up to here.
const LONGEST_LINE: usize = 64 << 10;

/// Reads a pattern that has a group for the status.
pub fn pattern(text: &str) -> Result<Regex, String> {
    let pattern = Regex::new(text).map_err(|error| error.to_string())?;
    if pattern.captures_len() < 2 {
        return Err("must have a group that holds the status, such as 'HTTP/[0-9.]+ ([0-9]+)'".to_owned());
    }
    Ok(pattern)
}

/// The lines of one stream.
#[derive(Debug)]
pub struct Lines {
    pattern: Regex,
    line: Vec<u8>,
}

impl Lines {
    pub fn new(pattern: Regex) -> Lines {
        Lines { pattern, line: Vec::new() }
    }

    /// Hears what comes next; the last word in it, if there is one.
    pub fn hear(&mut self, bytes: &[u8]) -> Option<Word> {
        let mut said = None;
        for piece in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            let room = LONGEST_LINE.saturating_sub(self.line.len());
            self.line.extend_from_slice(&piece[..piece.len().min(room)]);
            if matches!(piece.last(), Some(b'\n' | b'\r')) {
                said = self.end().or(said);
            }
        }
        said
    }

    /// The line ends here, as the last one may without a line feed.
    pub fn end(&mut self) -> Option<Word> {
        let line = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&line);
        let found = self.pattern.captures_iter(text.trim_end_matches(['\n', '\r'])).last()?;
        // With alternatives, the group of the one that was found.
        let word = found.iter().skip(1).flatten().next()?;
        Word::parse(word.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Lines {
        Lines::new(pattern(text).unwrap())
    }

    #[test]
    fn the_last_line_that_matches_counts_however_it_arrives() {
        let mut lines = lines("^HTTP/[0-9.]+ ([0-9]+)");
        assert_eq!(lines.hear(b"HTTP/1.1 301 Moved\r\n\r\nHT"), Some(Word::Status(301)));
        assert_eq!(lines.hear(b"TP/2 4"), None);
        assert_eq!(lines.hear(b"29\r\nHTTP/9 9999\nok\n"), Some(Word::Status(429)));
        assert_eq!(lines.end(), None);
    }

    #[test]
    fn a_last_line_needs_no_line_feed_and_bytes_need_not_be_text() {
        let mut lines = lines("status=([0-9]+)");
        assert_eq!(lines.hear(b"\xff\xfe\x00\nstatus=5"), None);
        assert_eq!(lines.hear(b"03"), None);
        assert_eq!(lines.end(), Some(Word::Status(503)));
        assert_eq!(lines.end(), None);
    }

    #[test]
    fn a_line_without_end_is_bounded() {
        let mut lines = lines("(4[0-9]+)$");
        for _ in 0..1000 {
            lines.hear(&[b'x'; 4096]);
        }
        assert!(lines.line.len() <= LONGEST_LINE);
        assert_eq!(lines.hear(b"429\n"), None);
        assert_eq!(lines.hear(b"429\n"), Some(Word::Status(429)));
    }

    #[test]
    fn a_pattern_must_have_a_group() {
        assert!(pattern("too many").is_err());
        assert!(pattern("(unclosed").is_err());
        assert_eq!(lines("(429) x|code ([a-z]+)").hear(b"code throttled\n"), Some(Word::Status(429)));
    }
}
