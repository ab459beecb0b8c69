//! Reads the lines of a script one at a time. Their length is bounded, because a script may be endless.

use std::io::{self, BufRead};

/// The maximum length of a line. A longer line is not an operation.
pub const LONGEST_LINE: usize = 1 << 20;

/// One line, or why there is none.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'b> {
    Text(&'b [u8]),
    /// The line was longer than [`LONGEST_LINE`] and was skipped.
    TooLong,
    End,
}

/// Reads the next line into `buffer`, without its line ending.
pub fn next<'b>(from: &mut impl BufRead, buffer: &'b mut Vec<u8>) -> io::Result<Line<'b>> {
    buffer.clear();
    let (mut any, mut too_long) = (false, false);
    loop {
        let chunk = match from.fill_buf() {
            Ok(chunk) => chunk,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if chunk.is_empty() {
            break;
        }
        any = true;
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let text = &chunk[..end.unwrap_or(chunk.len())];
        too_long |= buffer.len() + text.len() > LONGEST_LINE;
        if !too_long {
            buffer.extend_from_slice(text);
        }
        let taken = end.map_or(chunk.len(), |end| end + 1);
        from.consume(taken);
        if end.is_some() {
            break;
        }
    }
    Ok(match (any, too_long) {
        (false, _) => Line::End,
        (_, true) => Line::TooLong,
        _ => Line::Text(buffer),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    #[test]
    fn lines_are_split_correctly_however_they_arrive() {
        for size in [1, 2, 3, 100] {
            let mut from = BufReader::with_capacity(size, &b"one\n\ntwo\r\nlast"[..]);
            let mut buffer = Vec::new();
            for line in [&b"one"[..], b"", b"two\r", b"last"] {
                assert_eq!(next(&mut from, &mut buffer).unwrap(), Line::Text(line), "{size}");
            }
            assert_eq!(next(&mut from, &mut buffer).unwrap(), Line::End);
        }
    }

    #[test]
    fn too_long_line_is_skipped_and_not_stored() {
        let mut text = vec![b'x'; LONGEST_LINE];
        text.push(b'\n');
        text.extend(std::iter::repeat_n(b'y', LONGEST_LINE + 1));
        text.extend(b"\nnext\n");
        let mut from = BufReader::with_capacity(777, text.as_slice());
        let mut buffer = Vec::new();
        assert!(
            matches!(next(&mut from, &mut buffer).unwrap(), Line::Text(line) if line.len() == LONGEST_LINE)
        );
        assert_eq!(next(&mut from, &mut buffer).unwrap(), Line::TooLong);
        assert!(buffer.capacity() <= 2 * LONGEST_LINE);
        assert_eq!(next(&mut from, &mut buffer).unwrap(), Line::Text(b"next"));
        assert_eq!(next(&mut from, &mut buffer).unwrap(), Line::End);
    }
}
