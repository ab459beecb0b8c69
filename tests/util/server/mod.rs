//! A real HTTP server on this machine that answers by plan and records every request.

pub mod client;
pub mod http;
pub mod mix;

use crate::util::crash::builder;
use crate::util::{boot_time, directory};
use shmlimit::{Algorithm, Limiter, Policy, PolicyDraft, RuleDraft};
use shmlimit_kernel::policy::{Breaker, BreakerKind};
use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

/// The server's reaction to a request.
#[derive(Clone, Debug)]
pub enum Answer {
    /// A status and headers.
    Status(u16, Vec<(String, String)>),
    /// A status after a delay.
    Slow(Duration, u16),
    /// No answer: the connection stays open until the client leaves.
    Hang,
    /// Closes the connection without an answer.
    Close,
}

impl Answer {
    /// A status without special headers.
    pub fn status(status: u16) -> Answer {
        Answer::Status(status, Vec::new())
    }

    /// A status with a `Retry-After`.
    pub fn retry_after(status: u16, value: &str) -> Answer {
        Answer::Status(status, vec![("Retry-After".to_owned(), value.to_owned())])
    }
}

/// A request as the server saw it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The requested path.
    pub path: String,
    /// The time of the request, on the limiters' clock.
    pub at: u64,
    /// The status of the answer.
    pub status: u16,
    /// The number of requests that waited for an answer, including this one and without those whose clients had
    /// left.
    pub open: usize,
}

#[derive(Default)]
struct Book {
    plans: HashMap<String, VecDeque<Answer>>,
    seen: Vec<Seen>,
    /// Connections whose requests are not answered yet. `most` is the greatest number of them at one time.
    open: Vec<RawFd>,
    most: usize,
    /// The paths of requests whose clients left before the answer.
    left: Vec<String>,
}

impl Book {
    fn answered(&mut self, stream: &TcpStream) {
        self.open.retain(|open| *open != stream.as_raw_fd());
    }
}

/// Whether the client of a connection, which has sent its whole request, is still connected.
fn is_there(stream: RawFd) -> bool {
    let mut byte = 0u8;
    let flags = nix::libc::MSG_PEEK | nix::libc::MSG_DONTWAIT;
    // SAFETY: room for the one byte that may come; the descriptor belongs to a connection in the book, and stays
    // open while it is there.
    unsafe { nix::libc::recv(stream, (&raw mut byte).cast(), 1, flags) != 0 }
}

/// The server; it ends when this is dropped.
pub struct Server {
    address: SocketAddr,
    book: Arc<Mutex<Book>>,
    stop: Arc<AtomicBool>,
}

impl Server {
    /// Starts the server. It answers 200, unless a [plan](Self::plan) says otherwise.
    pub fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let book = Arc::<Mutex<Book>>::default();
        let stop = Arc::<AtomicBool>::default();
        let (theirs, stopped) = (Arc::clone(&book), Arc::clone(&stop));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                let book = Arc::clone(&theirs);
                // A failure of one connection affects only that client.
                std::thread::spawn(move || drop(serve(&stream, &book)));
            }
        });
        Server { address, book, stop }
    }

    /// The port on which it listens.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Plans the next answers on a path, one per request. After them it answers 200 again.
    pub fn plan(&self, path: &str, answers: impl IntoIterator<Item = Answer>) {
        self.book.lock().unwrap().plans.entry(path.to_owned()).or_default().extend(answers);
    }

    /// Every request so far, in the order of arrival.
    pub fn seen(&self) -> Vec<Seen> {
        self.book.lock().unwrap().seen.clone()
    }

    /// The most requests that waited for an answer at one time.
    pub fn most_at_once(&self) -> usize {
        self.book.lock().unwrap().most
    }

    /// How many clients left before a slow answer on this path.
    pub fn left(&self, path: &str) -> usize {
        self.book.lock().unwrap().left.iter().filter(|left| *left == path).count()
    }

    /// The requests for one path.
    pub fn seen_at(&self, path: &str) -> Vec<Seen> {
        self.seen().into_iter().filter(|seen| seen.path == path).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // The accepting thread checks the flag only when a connection comes.
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(mut stream: &TcpStream, book: &Mutex<Book>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split_whitespace().nth(1).unwrap_or("/").to_owned();
    while line.trim_end() != "" {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            break;
        }
    }
    let answer = {
        let mut book = book.lock().unwrap();
        let planned = book.plans.get_mut(&path).and_then(VecDeque::pop_front);
        let answer = planned.unwrap_or_else(|| by_path(&path));
        let status = match answer {
            Answer::Status(status, _) | Answer::Slow(_, status) => status,
            Answer::Hang | Answer::Close => 0,
        };
        // Under the lock, so that the order of the book is the order of the times.
        book.open.push(stream.as_raw_fd());
        book.most = book.most.max(book.open.len());
        let open = book.open.iter().filter(|open| is_there(**open)).count();
        book.seen.push(Seen { path: path.clone(), at: boot_time(), status, open });
        answer
    };
    // Before the client can know that it was answered.
    let answered = || book.lock().unwrap().answered(stream);
    let (status, headers) = match answer {
        Answer::Close => {
            answered();
            return Ok(());
        }
        Answer::Hang => {
            let _ = stream.read(&mut [0]);
            answered();
            return Ok(());
        }
        Answer::Slow(delay, status) => {
            std::thread::sleep(delay);
            if !is_there(stream.as_raw_fd()) {
                book.lock().unwrap().left.push(path);
            }
            (status, Vec::new())
        }
        Answer::Status(status, headers) => (status, headers),
    };
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!("HTTP/1.1 {status} X\r\n{headers}Content-Length: 0\r\nConnection: close\r\n\r\n");
    answered();
    stream.write_all(head.as_bytes())
}

/// `/status/503` is answered with 503, `/retry-after` with 429. Paths that begin with `/slow` are answered slowly,
/// and all others with 200.
fn by_path(path: &str) -> Answer {
    match path {
        "/retry-after" => Answer::retry_after(429, "0"),
        slow if slow.starts_with("/slow") => Answer::Slow(Duration::from_millis(20), 200),
        _ => Answer::status(
            path.strip_prefix("/status/").and_then(|status| status.parse().ok()).unwrap_or(200),
        ),
    }
}

/// A port on which connecting never succeeds: its backlog is full, and no connection is accepted.
pub struct Deaf {
    listener: TcpListener,
    _queued: Vec<TcpStream>,
}

impl Deaf {
    /// Fills the backlog.
    pub fn start() -> Deaf {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        // SAFETY: an open socket of this server; listening again only shortens the backlog.
        assert_eq!(unsafe { nix::libc::listen(listener.as_raw_fd(), 0) }, 0);
        let address = listener.local_addr().unwrap();
        let come = || TcpStream::connect_timeout(&address, Duration::from_millis(100)).ok();
        let queued = std::iter::from_fn(come).take(8).collect();
        Deaf { listener, _queued: queued }
    }

    /// The port on which nothing is accepted.
    pub fn port(&self) -> u16 {
        self.listener.local_addr().unwrap().port()
    }
}

/// A policy with this limit per second, which is also its burst, and a five-state breaker. `change` modifies the
/// breaker's defaults.
pub fn breaker(per_second: u64, concurrency: Option<u64>, change: impl FnOnce(&mut Breaker)) -> Policy {
    let mut breaker = Breaker::of(BreakerKind::Fsm);
    change(&mut breaker);
    let rule = RuleDraft::new(Algorithm::TokenBucket, per_second, Duration::from_secs(1));
    Policy::new(&PolicyDraft { concurrency, rules: &[rule], breaker, ..PolicyDraft::default() }).unwrap()
}

/// The same with limits that no test reaches.
pub fn roomy(change: impl FnOnce(&mut Breaker)) -> Policy {
    breaker(100_000, None, change)
}

/// A limiter in a temporary directory.
pub fn limiter(policy: Policy) -> (TempDir, Limiter) {
    let directory = directory();
    let limiter = builder(directory.path()).policy(policy).create().unwrap();
    (directory, limiter)
}
