//! The text of a response's head, as servers and `curl -D` write it.

use super::Header;

/// The status and the headers of the last response in a text: after redirects there are several. Lines that are no
/// headers are ignored (R94).
///
/// ```
/// use shmlimit::headers::response;
///
/// let text = "HTTP/1.1 301 Moved\r\nLocation: /x\r\n\r\nHTTP/2 429\r\nretry-after: 7\r\n\r\n";
/// assert_eq!(response(text), (Some(429), vec![("retry-after", "7")]));
/// ```
pub fn response(text: &str) -> (Option<u16>, Vec<Header<'_>>) {
    let (mut status, mut headers) = (None, Vec::new());
    for line in text.lines().map(str::trim_end) {
        if line.starts_with("HTTP/") {
            status = line.split_whitespace().nth(1).and_then(|code| code.parse().ok());
            headers.clear();
        } else if let Some((name, value)) = line.split_once(':') {
            headers.push((name.trim(), value.trim()));
        }
    }
    (status, headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_response_of_a_dump_counts() {
        let dump =
            "HTTP/1.1 301 Moved\r\nLocation: /x\r\n\r\nHTTP/2 429\r\nretry-after: 7\r\nnonsense\r\n\r\n";
        assert_eq!(response(dump), (Some(429), vec![("retry-after", "7")]));
        assert_eq!(response("HTTP/1.1 abc"), (None, vec![]));
        assert_eq!(response(""), (None, vec![]));
    }
}
