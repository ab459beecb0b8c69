//! One HTTP call as a small program makes it: connect, send, read the head of the answer, each with a time limit.

use shmlimit::{NetError, Outcome};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// The time limit for connecting, and for the answer of most paths.
const WAIT_TIMEOUT: Duration = Duration::from_millis(300);

/// How a call ended.
#[derive(Clone, Debug)]
pub enum End {
    /// With an answer.
    Answered(u16, Vec<(String, String)>),
    /// Without an answer.
    Failed(NetError),
}

impl End {
    /// A short text for people and for tests.
    pub fn in_words(&self) -> String {
        match self {
            End::Answered(status, _) => status.to_string(),
            End::Failed(error) => error.as_str().to_owned(),
        }
    }

    /// Passes the outcome to `work` in the limiter's type.
    pub fn with_outcome<R>(&self, work: impl FnOnce(&Outcome<'_>) -> R) -> R {
        match self {
            End::Failed(error) => work(&Outcome::error(*error)),
            End::Answered(status, headers) => {
                let headers: Vec<(&str, &str)> =
                    headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
                work(&Outcome::http(*status, &headers))
            }
        }
    }
}

/// Calls `http://HOST:PORT/PATH`.
pub fn get(host: &str, port: u16, path: &str) -> End {
    match talk(host, port, path) {
        Ok(end) => end,
        Err(error) => End::Failed(error),
    }
}

fn talk(host: &str, port: u16, path: &str) -> Result<End, NetError> {
    let address = (host, port).to_socket_addrs().ok().and_then(|mut all| all.next()).ok_or(NetError::Dns)?;
    let mut stream =
        TcpStream::connect_timeout(&address, WAIT_TIMEOUT).map_err(|error| match error.kind() {
            ErrorKind::TimedOut | ErrorKind::WouldBlock => NetError::ConnectTimeout,
            _ => NetError::Connection,
        })?;
    // Slow answers arrive within their limit; answers that never come time out.
    let timeout = if path.starts_with("/slow") { Duration::from_secs(10) } else { WAIT_TIMEOUT };
    stream.set_read_timeout(Some(timeout)).map_err(|_| NetError::Connection)?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(|_| NetError::Connection)?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).map_err(|error| match error.kind() {
        ErrorKind::TimedOut | ErrorKind::WouldBlock => NetError::ReadTimeout,
        _ => NetError::Connection,
    })?;
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.lines();
    let status = lines.next().and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    let status = status.ok_or(NetError::Connection)?;
    let pair =
        |line: &str| line.split_once(':').map(|(name, value)| (name.to_owned(), value.trim().to_owned()));
    Ok(End::Answered(status, lines.map_while(pair).collect()))
}
