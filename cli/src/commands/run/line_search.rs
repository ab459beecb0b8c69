//! Searches the lines of a command's output for a status.

use super::parsed_outcome::ParsedOutcome;
use crate::ui::output;
use regex_lite::{Regex, RegexBuilder};
use std::time::{Duration, Instant};

/// The number of bytes of a line that a small pattern searches.
const LONGEST_LINE: usize = 64 << 10;
/// The compiled size in bytes up to which a pattern is small. Few patterns are larger.
const SMALL: usize = 1 << 10;
/// The maximum compiled size of a pattern in bytes.
const LARGEST: usize = 16 << 10;
/// How long one line is searched for further matches. The last match counts.
const LONGEST_SEARCH: Duration = Duration::from_millis(30);
/// How long one stream is searched in total, in addition to a tenth of the elapsed time: a command that runs longer
/// may write more. The output waits during the search. There are two streams.
const LONGEST_IN_ALL: Duration = Duration::from_millis(500);
const SHARE_OF_TIME: u32 = 10;
/// The number of bytes at the end of a stream that are searched even after the time is used up, and the time for
/// that: the last match counts.
const TAIL: usize = 64 << 10;
const LONGEST_AT_END: Duration = Duration::from_millis(100);
/// The clock is read once for this many bytes of lines.
const BETWEEN_READINGS: usize = 1 << 10;

/// A pattern, and how many bytes of a line it may search. The search time grows with the product of both; the longest
/// measured time was about 50 ms.
#[derive(Clone, Debug)]
pub struct Pattern {
    regex: Regex,
    longest_line: usize,
}

/// Parses a pattern, which must have a group for the status.
pub fn pattern(text: &str) -> Result<Pattern, String> {
    let sizes = (0..).map(|doubled| SMALL << doubled).take_while(|size| *size <= LARGEST);
    let mut why = String::new();
    for size in sizes {
        match RegexBuilder::new(text).size_limit(size).build() {
            Ok(regex) if regex.captures_len() < 2 => {
                let wrong = "must have a group that captures the status, such as 'HTTP/[0-9.]+ ([0-9]+)'";
                return Err(wrong.to_owned());
            }
            Ok(regex) => return Ok(Pattern { regex, longest_line: LONGEST_LINE / (size / SMALL) }),
            Err(error) => why = error.to_string(),
        }
    }
    // The library distinguishes the two errors only by its message. Building the pattern without a limit could take
    // long.
    Err(if why.contains("size limit") {
        format!(
            "is too large: it compiles to more than {} KiB, and a search would take too long; use fewer or smaller \
             counted repetitions, such as [0-9]+ instead of [0-9]{{1,500}}",
            LARGEST >> 10
        )
    } else {
        why
    })
}

/// Searches the lines of one stream.
#[derive(Debug)]
pub struct LineSearch {
    pattern: Pattern,
    line: Vec<u8>,
    began: Instant,
    /// The time spent on searching.
    searched: Duration,
    /// Whether the time is used up. From then on `line` holds the end of the output, which may be several lines.
    gave_up: bool,
}

/// A group of lines that are searched between two clock reads.
struct Stretch {
    began: Instant,
    bytes: usize,
}

impl LineSearch {
    pub fn new(pattern: Pattern) -> LineSearch {
        LineSearch {
            pattern,
            line: Vec::new(),
            began: Instant::now(),
            searched: Duration::ZERO,
            gave_up: false,
        }
    }

    /// Searches the next bytes of the stream. Returns the last outcome in them, if any.
    pub fn feed(&mut self, bytes: &[u8]) -> Option<ParsedOutcome> {
        let mut found = None;
        let mut stretch: Option<Stretch> = None;
        let mut consumed = 0;
        for piece in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            if self.gave_up {
                break;
            }
            consumed += piece.len();
            let room = self.pattern.longest_line.saturating_sub(self.line.len());
            self.line.extend_from_slice(&piece[..piece.len().min(room)]);
            if matches!(piece.last(), Some(b'\n' | b'\r')) {
                let current = stretch.get_or_insert_with(|| Stretch { began: Instant::now(), bytes: 0 });
                current.bytes += self.line.len();
                found = self.search(current.began).or(found);
                if current.bytes >= BETWEEN_READINGS {
                    stretch = self.spend(current.began);
                }
            }
        }
        if let Some(Stretch { began, .. }) = stretch.filter(|stretch| stretch.bytes > 0) {
            self.spend(began);
        }
        if self.gave_up {
            self.line.extend_from_slice(&bytes[consumed..]);
            if self.line.len() > 2 * TAIL {
                self.line.drain(..self.line.len() - TAIL);
            }
        }
        found
    }

    /// Adds the search time since `since`. Gives up if the time is used up, and begins another stretch.
    fn spend(&mut self, since: Instant) -> Option<Stretch> {
        let began = Instant::now();
        self.searched += began.duration_since(since);
        if self.searched > LONGEST_IN_ALL + began.duration_since(self.began) / SHARE_OF_TIME {
            self.gave_up = true;
            output::remark(
                "warning: the search for --status-from takes too long, so only the end of the remaining output is \
                 searched; use a simpler pattern, or search only the stream that has the status (--status-in)",
            );
        }
        Some(Stretch { began, bytes: 0 })
    }

    /// Ends the last line, which may have no line feed.
    pub fn end(&mut self) -> Option<ParsedOutcome> {
        let began = Instant::now();
        if !self.gave_up {
            return self.search(began);
        }
        let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let all = std::mem::take(&mut self.line);
        let mut tail = &all[all.len().saturating_sub(TAIL)..];
        if tail.len() == TAIL {
            // The first line may be cut off, so a match in it may not match the whole line.
            tail = tail.iter().position(is_end).map_or(&[], |end| &tail[end..]);
        }
        for line in tail.rsplit(is_end) {
            self.line = line[..line.len().min(self.pattern.longest_line)].to_vec();
            let found = self.search(Instant::now());
            if found.is_some() || began.elapsed() > LONGEST_AT_END {
                return found;
            }
        }
        None
    }

    /// Searches the line that has ended. `began` is the time when the search began, or slightly earlier.
    fn search(&mut self, began: Instant) -> Option<ParsedOutcome> {
        let line = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&line);
        let mut last = None;
        for found in self.pattern.regex.captures_iter(text.trim_end_matches(['\n', '\r'])) {
            last = Some(found);
            // Each search may read the whole rest of the line, so all searches together take quadratic time.
            if began.elapsed() > LONGEST_SEARCH {
                break;
            }
        }
        let found = last?;
        // In a pattern with alternatives, only the group of the matching one is set.
        let word = found.iter().skip(1).flatten().next()?;
        ParsedOutcome::parse(word.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> LineSearch {
        LineSearch::new(pattern(text).unwrap())
    }

    #[test]
    fn last_matching_line_counts_however_it_arrives() {
        let mut lines = lines("^HTTP/[0-9.]+ ([0-9]+)");
        assert_eq!(lines.feed(b"HTTP/1.1 301 Moved\r\n\r\nHT"), Some(ParsedOutcome::Status(301)));
        assert_eq!(lines.feed(b"TP/2 4"), None);
        assert_eq!(lines.feed(b"29\r\nHTTP/9 9999\nok\n"), Some(ParsedOutcome::Status(429)));
        assert_eq!(lines.end(), None);
    }

    #[test]
    fn last_line_needs_no_line_feed_and_bytes_need_not_be_text() {
        let mut lines = lines("status=([0-9]+)");
        assert_eq!(lines.feed(b"\xff\xfe\x00\nstatus=5"), None);
        assert_eq!(lines.feed(b"03"), None);
        assert_eq!(lines.end(), Some(ParsedOutcome::Status(503)));
        assert_eq!(lines.end(), None);
    }

    #[test]
    fn endless_line_is_bounded() {
        let mut lines = lines("(4[0-9]+)$");
        for _ in 0..1000 {
            lines.feed(&[b'x'; 4096]);
        }
        assert!(lines.line.len() <= LONGEST_LINE);
        assert_eq!(lines.feed(b"429\n"), None);
        assert_eq!(lines.feed(b"429\n"), Some(ParsedOutcome::Status(429)));
    }

    /// Without the limits each of these patterns took seconds; the second one took eleven.
    #[test]
    fn hostile_pattern_is_refused_or_searches_less_of_a_line() {
        for (text, most) in
            [("((a?){1000}){1000}b", None), ("((a?){200}b)", None), ("((a?){40}b)", Some(8 << 10))]
        {
            assert_eq!(pattern(text).ok().map(|pattern| pattern.longest_line), most, "{text}");
        }
        assert!(pattern("((a?){200}b)").unwrap_err().contains("too large"));
        assert!(pattern("(unclosed{9}").unwrap_err().contains("group"), "a wrong one is not called large");
        assert_eq!(pattern("HTTP/[0-9.]+ ([0-9]+)").unwrap().longest_line, LONGEST_LINE);
    }

    /// Does not assert a time, because tests should not. Without the time limit this search takes minutes.
    #[test]
    fn line_full_of_matches_is_not_searched_in_quadratic_time() {
        let mut lines = lines("(4)(?:.*x)?");
        let mut line = vec![b'4'; LONGEST_LINE];
        line.push(b'\n');
        assert_eq!(lines.feed(&line), None);
        assert_eq!(lines.feed(b"nothing\n"), None);
    }

    #[test]
    fn stream_that_takes_long_to_search_is_no_longer_searched() {
        let mut lines = lines("(4)(?:.*x)?");
        let mut line = vec![b'4'; LONGEST_LINE];
        line.push(b'\n');
        // Each of these lines takes as long as one line may.
        let most = (2 * LONGEST_IN_ALL).div_duration_f64(LONGEST_SEARCH) as usize;
        assert!((0..most).any(|_| {
            lines.feed(&line);
            lines.gave_up
        }));
        lines.pattern = pattern("^code ([0-9]+)").unwrap();
        assert_eq!(lines.feed(b"code 429\ncode 50"), None);
        for _ in 0..100 {
            lines.feed(&[b'x'; 4096]);
        }
        assert!(lines.line.len() <= 2 * TAIL);
        let mut cut = b"code 429".to_vec();
        cut.resize(TAIL, b'x');
        lines.feed(&cut);
        assert_eq!(lines.end(), None, "neither the end nor a whole line");
        // The end is searched, even if other lines follow the match.
        assert_eq!(lines.feed(b"\ncode 503\ncode 4"), None);
        assert_eq!(lines.feed(b"29\nbye\n"), None);
        assert_eq!((lines.end(), lines.end()), (Some(ParsedOutcome::Status(429)), None));
    }

    /// A command that runs longer may write more output.
    #[test]
    fn search_time_grows_with_the_run_time_of_the_command() {
        let mut lines = lines("([0-9]+)");
        lines.searched = 2 * LONGEST_IN_ALL;
        lines.began -= SHARE_OF_TIME * 2 * LONGEST_IN_ALL;
        assert_eq!(lines.feed(b"429\n"), Some(ParsedOutcome::Status(429)));
        assert!(!lines.gave_up);
        lines.searched += 2 * LONGEST_IN_ALL;
        lines.feed(b"503\n");
        assert_eq!(lines.feed(b"429\n"), None);
    }

    #[test]
    fn pattern_must_have_a_group() {
        assert!(pattern("too many").is_err());
        assert!(pattern("(unclosed").is_err());
        assert_eq!(
            lines("(429) x|code ([a-z]+)").feed(b"code throttled\n"),
            Some(ParsedOutcome::Status(429))
        );
    }
}
