//! An API with a real limit: an HTTP/1.1 server on this machine. It allows a number of calls per second for all
//! callers together, and answers further calls with 429.
//!
//! A program that keeps to shmlimit never gets a 429 here, however late anything runs on a busy machine. The reason:
//! the limiter grants at most *rate × t + burst* calls in any time *t*. Each of the four programs makes one call at a
//! time, so at most four granted calls are in progress at any moment. At most *rate × t + burst + 4* calls therefore
//! arrive in *t*. The server's own burst is larger than that ([`Limit::SPARE`]). Clocks are never compared with each
//! other.

use super::clients::{CLIENTS, Half};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The limit of the server.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    /// Calls per second.
    pub rate: u32,
    /// The number of calls that may arrive at once.
    pub burst: u32,
}

impl Limit {
    /// How much smaller the limiter's burst is than the server's: the calls in progress, plus one.
    const SPARE: u32 = CLIENTS as u32 + 1;

    pub fn of(rate: u32) -> Limit {
        Limit { rate, burst: (rate / 2).max(Limit::SPARE + 1) }
    }

    /// Returns the burst for the limiter. Its programs cannot tell how long a call is in progress.
    pub fn burst_of_limiter(self) -> u32 {
        self.burst - Limit::SPARE
    }
}

/// The wait that a 429 asks for.
pub const RETRY_AFTER: Duration = Duration::from_secs(1);
/// The connection ends if the program sends no request within this time.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum length of a request head. No program of the demo sends a longer one.
const LONGEST_HEAD: u64 = 8192;

/// Counts of calls by their result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Score {
    pub ok: u64,
    pub throttled: u64,
}

impl Score {
    pub fn calls(self) -> u64 {
        self.ok + self.throttled
    }

    fn add(&mut self, other: Score) {
        self.ok += other.ok;
        self.throttled += other.throttled;
    }

    pub fn sum(scores: &[Score]) -> Score {
        scores.iter().fold(Score::default(), |mut sum, score| {
            sum.add(*score);
            sum
        })
    }
}

/// The calls received during one half.
#[derive(Debug, Clone, Default)]
pub struct HalfCounts {
    pub programs: [Score; CLIENTS],
    pub seconds: Vec<Score>,
}

/// A deliberate Retry-After for one client, and the calls of all clients during the wait.
#[derive(Debug, Clone)]
pub struct RetryAfterProbe {
    pub client: usize,
    at: Instant,
    /// For each call of the other clients during the wait: its time since the Retry-After.
    pub others: Vec<Duration>,
    /// The number of calls of the client that was told to wait.
    pub own: usize,
}

impl RetryAfterProbe {
    /// Returns whether the wait is over.
    pub fn is_over(&self) -> bool {
        self.at.elapsed() >= RETRY_AFTER
    }
}

/// The state of the server.
#[derive(Debug)]
struct ServerState {
    limit: Limit,
    /// The current half. Calls of another half are late and are not counted.
    half: Option<Half>,
    began: Instant,
    /// The fill level of the leaky bucket as a time since `began`: the time at which the bucket will be empty.
    due: Duration,
    counts: [HalfCounts; 2],
    ready: [bool; CLIENTS],
    /// The client whose next call is answered with a Retry-After.
    probe_next: Option<usize>,
    probe: Option<RetryAfterProbe>,
    /// How long calls of this half are counted. The limit holds longer than that.
    length: Duration,
}

impl ServerState {
    fn new(limit: Limit) -> ServerState {
        ServerState {
            limit,
            half: None,
            began: Instant::now(),
            due: Duration::ZERO,
            counts: Default::default(),
            ready: [false; CLIENTS],
            probe_next: None,
            probe: None,
            length: Duration::ZERO,
        }
    }
}

pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<ServerState>,
    started: Condvar,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, ServerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Server {
    /// Listens on a free port. The server's threads run as long as this process.
    pub fn start(limit: Limit) -> io::Result<Server> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let state = ServerState::new(limit);
        let shared = Arc::new(Shared { state: Mutex::new(state), started: Condvar::new() });
        let server = Server { address, shared: Arc::clone(&shared) };
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || drop(serve(&shared, client)));
            }
        });
        Ok(server)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns which clients wait for the start of a half.
    pub fn ready(&self) -> [bool; CLIENTS] {
        self.shared.state().ready
    }

    /// Begins a half with a full burst, and starts all clients at once.
    pub fn start_half(&self, half: Half, length: Duration) {
        let mut state = self.shared.state();
        (state.half, state.began, state.due) = (Some(half), Instant::now(), Duration::ZERO);
        state.length = length;
        drop(state);
        self.shared.started.notify_all();
    }

    /// Ends the half. Later calls are refused.
    pub fn end_half(&self) {
        let mut state = self.shared.state();
        (state.half, state.ready) = (None, [false; CLIENTS]);
    }

    pub fn counts(&self, half: Half) -> HalfCounts {
        self.shared.state().counts[half as usize].clone()
    }

    /// Makes the server answer this client's next call with a Retry-After.
    pub fn start_probe(&self, client: usize) {
        self.shared.state().probe_next = Some(client);
    }

    pub fn probe(&self) -> Option<RetryAfterProbe> {
        self.shared.state().probe.clone()
    }
}

/// The possible answers to a call.
#[derive(Clone, Copy)]
enum Answer {
    Ok,
    TooMany,
    Late,
    NotFound,
}

impl ServerState {
    /// Handles a call and returns the answer.
    fn call(&mut self, half: Half, client: usize) -> Answer {
        if self.half != Some(half) {
            return Answer::Late;
        }
        let now = self.began.elapsed();
        if let Some(probe) = &mut self.probe
            && probe.at.elapsed() < RETRY_AFTER
        {
            if client == probe.client {
                probe.own += 1;
            } else {
                probe.others.push(probe.at.elapsed());
            }
        }
        if self.probe_next == Some(client) {
            self.probe_next = None;
            self.probe = Some(RetryAfterProbe { client, at: Instant::now(), others: Vec::new(), own: 0 });
            return Answer::TooMany;
        }
        let granted = self.charge(now);
        if now < self.length {
            let score = if granted { Score { ok: 1, throttled: 0 } } else { Score { ok: 0, throttled: 1 } };
            let counts = &mut self.counts[half as usize];
            counts.programs[client].add(score);
            let second = usize::try_from(now.as_secs()).unwrap_or(usize::MAX);
            counts.seconds.resize(counts.seconds.len().max(second + 1), Score::default());
            counts.seconds[second].add(score);
        }
        if granted { Answer::Ok } else { Answer::TooMany }
    }

    /// Takes one call from the bucket. Returns whether there was room.
    fn charge(&mut self, now: Duration) -> bool {
        let step = Duration::from_secs(1) / self.limit.rate;
        let next = self.due.max(now) + step;
        let granted = next - now <= step * self.limit.burst;
        if granted {
            self.due = next;
        }
        granted
    }
}

/// Serves one call on one connection.
fn serve(shared: &Shared, mut client: TcpStream) -> io::Result<()> {
    client.set_read_timeout(Some(READ_TIMEOUT))?;
    client.set_nodelay(true)?;
    let mut head = BufReader::new((&client).take(LONGEST_HEAD));
    let mut request = String::new();
    head.read_line(&mut request)?;
    let mut line = String::new();
    while head.read_line(&mut line)? > 2 {
        line.clear();
    }
    drop(head);
    let answer = match parse(&request) {
        None => Answer::NotFound,
        Some(("start", half, client)) => wait_for_start(shared, half, client),
        Some((_, half, client)) => shared.state().call(half, client),
    };
    let (status, more) = match answer {
        Answer::Ok => ("200 OK", String::new()),
        Answer::TooMany => ("429 Too Many Requests", format!("Retry-After: {}\r\n", RETRY_AFTER.as_secs())),
        Answer::Late => ("410 Gone", String::new()),
        Answer::NotFound => ("404 Not Found", String::new()),
    };
    client.write_all(
        format!("HTTP/1.1 {status}\r\n{more}Content-Length: 0\r\nConnection: close\r\n\r\n").as_bytes(),
    )?;
    // On Windows another program that was started meanwhile has inherited the connection. Closing the connection here
    // would not end it then, and the client would wait as long as the other program runs.
    client.shutdown(Shutdown::Write)
}

/// Parses a request such as `GET /call/with/2 HTTP/1.1`: the action, the half, and the client.
fn parse(request: &str) -> Option<(&str, Half, usize)> {
    let path = request.strip_prefix("GET /")?.split(' ').next()?;
    let mut words = path.split('/');
    let what = words.next().filter(|what| ["start", "call"].contains(what))?;
    let half = Half::parse(words.next()?)?;
    let client = words.next()?.parse().ok().filter(|client| *client < CLIENTS)?;
    Some((what, half, client))
}

fn wait_for_start(shared: &Shared, half: Half, client: usize) -> Answer {
    let mut state = shared.state();
    state.ready[client] = true;
    let raised = shared.started.wait_timeout_while(state, READ_TIMEOUT, |state| state.half != Some(half));
    let (state, _) = raised.unwrap_or_else(PoisonError::into_inner);
    if state.half == Some(half) { Answer::Ok } else { Answer::Late }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(limit: Limit) -> ServerState {
        ServerState { half: Some(Half::With), length: Duration::from_secs(60), ..ServerState::new(limit) }
    }

    #[test]
    fn bucket_holds_a_burst_and_refills_at_the_rate() {
        let mut state = state(Limit::of(20));
        let at = |ms| Duration::from_millis(ms);
        let granted = |state: &mut ServerState, ms| (0..100).filter(|_| state.charge(at(ms))).count();
        assert_eq!(granted(&mut state, 0), 10);
        assert_eq!(granted(&mut state, 49), 0);
        assert_eq!(granted(&mut state, 50), 1);
        assert_eq!(granted(&mut state, 5000), 10, "never more than the burst, however long nobody came");
    }

    /// Tests the bound of the module documentation: bursts of the limiter, and all calls late at once.
    #[test]
    fn burst_of_the_limiter_and_calls_in_progress_fit_into_the_burst_of_the_server() {
        for rate in [5, 20, 50] {
            let limit = Limit::of(rate);
            assert!(limit.burst_of_limiter() >= 1);
            assert!(limit.burst_of_limiter() + CLIENTS as u32 <= limit.burst);
        }
    }

    #[test]
    fn call_of_another_half_is_late_and_not_counted() {
        let mut state = state(Limit::of(20));
        assert!(matches!(state.call(Half::Without, 0), Answer::Late));
        assert!(matches!(state.call(Half::With, 0), Answer::Ok));
        assert_eq!(state.counts[0].programs[0].calls(), 0);
        assert_eq!(state.counts[1].programs[0], Score { ok: 1, throttled: 0 });
    }

    #[test]
    fn requests_are_parsed_strictly() {
        assert_eq!(parse("GET /call/with/2 HTTP/1.1\r\n"), Some(("call", Half::With, 2)));
        assert_eq!(parse("GET /start/without/0 HTTP/1.1\r\n"), Some(("start", Half::Without, 0)));
        for bad in ["", "GET / HTTP/1.1", "POST /call/with/2 H", "GET /call/with/4 H", "GET /call/x/1 H"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
