//! Implements the part of HTTP/1.1 that a scrape needs. No client is trusted: reads are bounded in size and time.

use super::hosts::without_port;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// The maximum length of a request in bytes. Longer requests are refused.
const LONGEST: usize = 8192;
/// The time limit for a request from its first byte to its last, and again for the client to read the answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// How many more bytes are read after a request was refused, so that the answer reaches the client.
const MOST_DRAINED: usize = 65_536;

/// A request.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub accept: String,
    /// The host that the request names, without a port. Old programs name none; every browser does.
    pub host: Option<String>,
}

/// Why there is no valid request.
#[derive(Debug, PartialEq, Eq)]
pub enum Bad {
    /// It is not an HTTP request.
    Garbage,
    /// It is too long.
    Long,
    /// It did not arrive in time.
    Late,
    /// The client disconnected or sent nothing.
    Gone,
}

/// An answer.
pub struct Answer {
    pub status: &'static str,
    pub content_type: &'static str,
    pub more: &'static str,
    pub body: String,
}

impl Answer {
    /// Returns a page that contains only its status.
    pub fn plain(status: &'static str) -> Answer {
        Answer { status, content_type: "text/plain; charset=utf-8", more: "", body: format!("{status}\n") }
    }
}

/// Returns when the exchange with a client that connects now must be complete.
pub fn deadline() -> Instant {
    Instant::now() + REQUEST_TIMEOUT
}

/// Reads the head of a request.
pub fn read(mut stream: &TcpStream, until: Instant) -> Result<Request, Bad> {
    let mut head = Vec::new();
    let mut part = [0; 1024];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
            return Err(Bad::Late);
        }
        let count = match stream.read(&mut part) {
            Ok(0) => return Err(if head.is_empty() { Bad::Gone } else { Bad::Garbage }),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Err(Bad::Late);
            }
            Err(_) => return Err(Bad::Gone),
        };
        head.extend_from_slice(&part[..count]);
        if let Some(end) = end_of_head(&head) {
            return if end > LONGEST { Err(Bad::Long) } else { parse(&head[..end]).ok_or(Bad::Garbage) };
        }
        if head.len() > LONGEST {
            return Err(Bad::Long);
        }
    }
}

fn end_of_head(bytes: &[u8]) -> Option<usize> {
    let find = |end: &[u8]| bytes.windows(end.len()).position(|part| part == end);
    find(b"\r\n\r\n").into_iter().chain(find(b"\n\n")).min()
}

fn parse(head: &[u8]) -> Option<Request> {
    let head = std::str::from_utf8(head).ok()?;
    let mut lines = head.split('\n').map(|line| line.trim_end_matches('\r'));
    let mut words = lines.next()?.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    let is_name = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
    if words.next().is_some() || !is_name || !version.starts_with("HTTP/1.") {
        return None;
    }
    // The form for proxies has the host before the path. That host counts.
    let (mut host, path) = match target.strip_prefix("http://") {
        Some(rest) => {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            (Some(without_port(host)?), if path.is_empty() { "/" } else { path })
        }
        None => (None, target),
    };
    let path = path.split(['?', '#']).next()?;
    if !path.starts_with('/') {
        return None;
    }
    let (mut accepts, mut named) = (Vec::new(), 0);
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        // Some servers accept `Host :` as a Host header and others do not. A proxy and this server could disagree
        // about the host.
        if name.contains(char::is_whitespace) {
            return None;
        }
        if name.eq_ignore_ascii_case("accept") {
            accepts.push(value.trim());
        } else if name.eq_ignore_ascii_case("host") {
            named += 1;
            host = host.or(Some(without_port(value.trim())?));
        }
    }
    let host = host.map(str::to_owned);
    let request =
        Request { method: method.to_owned(), path: path.to_owned(), accept: accepts.join(","), host };
    // A request with two Host headers tries to deceive a proxy.
    (named <= 1).then_some(request)
}

/// Formats the head of an answer.
fn head(Answer { status, content_type, more, body }: &Answer) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n{more}Cache-Control: \
         no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
        body.len()
    )
}

/// Writes as much of an answer as possible without waiting. It first reads the request that has arrived, so that
/// closing the connection does not discard the answer.
pub fn answer_at_once(mut stream: &TcpStream, answer: &Answer) {
    if stream.set_nonblocking(true).is_ok() {
        let _ = stream.read(&mut [0; LONGEST]);
        let _ = stream.write(format!("{}{}", head(answer), answer.body).as_bytes());
    }
}

/// Writes an answer and ends the connection. The body is left out if only the head was requested.
pub fn answer(stream: &TcpStream, answer: &Answer, head_only: bool, until: Instant) {
    let mut text = head(answer);
    if !head_only {
        text += &answer.body;
    }
    // If the client does not read, the connection ends without an answer.
    if write(stream, text.as_bytes(), until).is_ok() {
        finish(stream, until);
    }
}

fn write(mut stream: &TcpStream, mut bytes: &[u8], until: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_write_timeout(Some(left))?;
        match stream.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads the rest of the request: closing the connection earlier would discard the answer.
fn finish(mut stream: &TcpStream, until: Instant) {
    let _ = stream.shutdown(Shutdown::Write);
    let (mut read, mut part) = (0, [0; 4096]);
    while read < MOST_DRAINED {
        let left = until.saturating_duration_since(Instant::now()).min(Duration::from_secs(1));
        if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
            return;
        }
        match stream.read(&mut part) {
            Ok(0) | Err(_) => return,
            Ok(count) => read += count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_parsed_strictly() {
        let request =
            parse(b"GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\naccept: text/plain\r\nAccept: */*").unwrap();
        assert_eq!((request.method.as_str(), request.path.as_str()), ("GET", "/metrics"));
        assert_eq!(request.accept, "text/plain,*/*");
        assert_eq!(request.host.as_deref(), Some("a"));
        let proxied = parse(b"GET http://host:1/metrics HTTP/1.0\r\nHost: other").unwrap();
        assert_eq!((proxied.path.as_str(), proxied.host.as_deref()), ("/metrics", Some("host")));
        assert_eq!(parse(b"GET http://[::1]:1 HTTP/1.0").unwrap().host.as_deref(), Some("[::1]"));
        assert_eq!(parse(b"GET / HTTP/1.0").unwrap().host, None);
        assert_eq!(end_of_head(b"GET / HTTP/1.1\n\nrest"), Some(14));
        for garbage in [
            &b""[..],
            b"GET",
            b"GET /",
            b"get / HTTP/1.1",
            b"GET / HTTP/2",
            b"GET x HTTP/1.1",
            b"\xff / HTTP/1.1",
            b"GET / HTTP/1.1 x",
            b"GET / HTTP/1.1\r\nHost: a\r\nhost: a",
            b"GET / HTTP/1.1\r\nHost: a b",
            b"GET / HTTP/1.1\r\nHost:",
            b"GET http:///x HTTP/1.1",
        ] {
            assert_eq!(parse(garbage), None, "{garbage:?}");
        }
    }
}
