//! An API with a real limit: HTTP/1.1 on this machine, so many calls a second for all who call, else 429.
//!
//! Why a program that keeps to shmlimit never gets a 429 here, however late anything runs on a busy machine: the limiter
//! grants at most *rate × t + burst* calls in any time *t*. Each of the four programs makes one call at a time, so at
//! most four granted calls are under way at any moment, and what arrives in *t* is at most *rate × t + burst + 4*. The
//! server's own burst is larger than that ([`Limit::SPARE`]). No clock is compared with another.

use super::clients::{CLIENTS, Half};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What the server allows.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    /// Calls a second.
    pub rate: u32,
    /// Calls at once.
    pub burst: u32,
}

impl Limit {
    /// How much smaller the limiter's burst is than the server's: those under way, and one.
    const SPARE: u32 = CLIENTS as u32 + 1;

    pub fn of(rate: u32) -> Limit {
        Limit { rate, burst: (rate / 2).max(Limit::SPARE + 1) }
    }

    /// The burst that programs may use which cannot tell how long a call is under way.
    pub fn burst_of_limiter(self) -> u32 {
        self.burst - Limit::SPARE
    }
}

/// What a 429 tells its caller to wait.
pub const RETRY_AFTER: Duration = Duration::from_secs(1);
/// A program that asks for nothing is no longer listened to.
const PATIENCE: Duration = Duration::from_secs(30);
/// No program of ours asks for so much.
const LONGEST_HEAD: u64 = 8192;

/// How calls ended.
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

/// What came in during one half.
#[derive(Debug, Clone, Default)]
pub struct Account {
    pub programs: [Score; CLIENTS],
    pub seconds: Vec<Score>,
}

/// One program was told to wait, on purpose: who came in meanwhile.
#[derive(Debug, Clone)]
pub struct Told {
    pub who: usize,
    at: Instant,
    /// How long after it each call of the others came in, while the wait lasted.
    pub others: Vec<Duration>,
    /// The same of the one that was told.
    pub own: usize,
}

impl Told {
    /// Whether the wait is over.
    pub fn is_over(&self) -> bool {
        self.at.elapsed() >= RETRY_AFTER
    }
}

/// The server's book.
#[derive(Debug)]
struct Book {
    limit: Limit,
    /// The half that is played; calls of another one are late and not counted.
    half: Option<Half>,
    began: Instant,
    /// Since when the bucket is as full as it is: the one number of a leaky bucket, as time since `began`.
    due: Duration,
    accounts: [Account; 2],
    here: [bool; CLIENTS],
    /// Who shall be told to wait at its next call.
    tell: Option<usize>,
    told: Option<Told>,
    /// How long calls of this half are counted. The limit holds for longer.
    length: Duration,
}

pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    book: Mutex<Book>,
    curtain: Condvar,
}

impl Shared {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Server {
    /// Listens on a free port, in threads of their own, for as long as this process lives.
    pub fn start(limit: Limit) -> io::Result<Server> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let book = Book {
            limit,
            half: None,
            began: Instant::now(),
            due: Duration::ZERO,
            accounts: Default::default(),
            here: [false; CLIENTS],
            tell: None,
            told: None,
            length: Duration::ZERO,
        };
        let shared = Arc::new(Shared { book: Mutex::new(book), curtain: Condvar::new() });
        let server = Server { address, shared: Arc::clone(&shared) };
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || drop(attend(&shared, client)));
            }
        });
        Ok(server)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Which programs wait for the curtain.
    pub fn here(&self) -> [bool; CLIENTS] {
        self.shared.book().here
    }

    /// Begins a half, with a full bucket and everybody at once.
    pub fn raise_curtain(&self, half: Half, length: Duration) {
        let mut book = self.shared.book();
        (book.half, book.began, book.due) = (Some(half), Instant::now(), Duration::ZERO);
        book.length = length;
        drop(book);
        self.shared.curtain.notify_all();
    }

    /// Whoever calls now is late.
    pub fn drop_curtain(&self) {
        let mut book = self.shared.book();
        (book.half, book.here) = (None, [false; CLIENTS]);
    }

    pub fn account(&self, half: Half) -> Account {
        self.shared.book().accounts[half as usize].clone()
    }

    /// The next call of this program is told to wait.
    pub fn tell(&self, who: usize) {
        self.shared.book().tell = Some(who);
    }

    pub fn told(&self) -> Option<Told> {
        self.shared.book().told.clone()
    }
}

/// What the server says.
#[derive(Clone, Copy)]
enum Answer {
    Ok,
    TooMany,
    Late,
    NotFound,
}

impl Book {
    /// A call arrives.
    fn call(&mut self, half: Half, who: usize) -> Answer {
        if self.half != Some(half) {
            return Answer::Late;
        }
        let now = self.began.elapsed();
        if let Some(told) = &mut self.told
            && told.at.elapsed() < RETRY_AFTER
        {
            if who == told.who {
                told.own += 1;
            } else {
                told.others.push(told.at.elapsed());
            }
        }
        if self.tell == Some(who) {
            self.tell = None;
            self.told = Some(Told { who, at: Instant::now(), others: Vec::new(), own: 0 });
            return Answer::TooMany;
        }
        let granted = self.charge(now);
        if now < self.length {
            let score = if granted { Score { ok: 1, throttled: 0 } } else { Score { ok: 0, throttled: 1 } };
            let account = &mut self.accounts[half as usize];
            account.programs[who].add(score);
            let second = usize::try_from(now.as_secs()).unwrap_or(usize::MAX);
            account.seconds.resize(account.seconds.len().max(second + 1), Score::default());
            account.seconds[second].add(score);
        }
        if granted { Answer::Ok } else { Answer::TooMany }
    }

    /// Whether the bucket has room; if so, takes it.
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

/// One connection, one call.
fn attend(shared: &Shared, mut client: TcpStream) -> io::Result<()> {
    client.set_read_timeout(Some(PATIENCE))?;
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
        Some(("start", half, who)) => wait_for_curtain(shared, half, who),
        Some((_, half, who)) => shared.book().call(half, who),
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
    // On Windows a program that was started meanwhile has inherited the connection: closing it here would not end it, and
    // the one who asked would wait for its end as long as the other lives.
    client.shutdown(Shutdown::Write)
}

/// `GET /call/with/2 HTTP/1.1`: what is asked for, in which half, by whom.
fn parse(request: &str) -> Option<(&str, Half, usize)> {
    let path = request.strip_prefix("GET /")?.split(' ').next()?;
    let mut words = path.split('/');
    let what = words.next().filter(|what| ["start", "call"].contains(what))?;
    let half = Half::parse(words.next()?)?;
    let who = words.next()?.parse().ok().filter(|who| *who < CLIENTS)?;
    Some((what, half, who))
}

fn wait_for_curtain(shared: &Shared, half: Half, who: usize) -> Answer {
    let mut book = shared.book();
    book.here[who] = true;
    let raised = shared.curtain.wait_timeout_while(book, PATIENCE, |book| book.half != Some(half));
    let (book, _) = raised.unwrap_or_else(PoisonError::into_inner);
    if book.half == Some(half) { Answer::Ok } else { Answer::Late }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn book(limit: Limit) -> Book {
        Book {
            limit,
            half: Some(Half::With),
            began: Instant::now(),
            due: Duration::ZERO,
            accounts: Default::default(),
            here: [false; CLIENTS],
            tell: None,
            told: None,
            length: Duration::from_secs(60),
        }
    }

    #[test]
    fn the_bucket_holds_a_burst_and_refills_at_the_rate() {
        let mut book = book(Limit::of(20));
        let at = |ms| Duration::from_millis(ms);
        let granted = |book: &mut Book, ms| (0..100).filter(|_| book.charge(at(ms))).count();
        assert_eq!(granted(&mut book, 0), 10);
        assert_eq!(granted(&mut book, 49), 0);
        assert_eq!(granted(&mut book, 50), 1);
        assert_eq!(granted(&mut book, 5000), 10, "never more than the burst, however long nobody came");
    }

    /// The bound of the file's head: bursts of the limiter, and everybody late at once.
    #[test]
    fn the_limiters_burst_and_all_who_are_under_way_fit_into_the_servers() {
        for rate in [5, 20, 50] {
            let limit = Limit::of(rate);
            assert!(limit.burst_of_limiter() >= 1);
            assert!(limit.burst_of_limiter() + CLIENTS as u32 <= limit.burst);
        }
    }

    #[test]
    fn a_call_of_another_half_is_late_and_not_counted() {
        let mut book = book(Limit::of(20));
        assert!(matches!(book.call(Half::Without, 0), Answer::Late));
        assert!(matches!(book.call(Half::With, 0), Answer::Ok));
        assert_eq!(book.accounts[0].programs[0].calls(), 0);
        assert_eq!(book.accounts[1].programs[0], Score { ok: 1, throttled: 0 });
    }

    #[test]
    fn requests_are_read_strictly() {
        assert_eq!(parse("GET /call/with/2 HTTP/1.1\r\n"), Some(("call", Half::With, 2)));
        assert_eq!(parse("GET /start/without/0 HTTP/1.1\r\n"), Some(("start", Half::Without, 0)));
        for bad in ["", "GET / HTTP/1.1", "POST /call/with/2 H", "GET /call/with/4 H", "GET /call/x/1 H"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
