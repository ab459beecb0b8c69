//! Limits how many connections are served at a time, and chooses which one to close for a new one.
//!
//! A client that connects and sends or reads nothing must not block others. Until all places are taken, a new
//! connection gets one at once. After that, the server closes the oldest connection that is still sending its
//! request, else the oldest that is still reading its answer. A connection whose answer is being computed stays open,
//! because that ends by itself. If all connections are in that phase, the new one waits.

use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The maximum number of connections at a time.
const CONNECTIONS: usize = 16;
/// The maximum number of threads at a time. It is larger, because the thread of a closed connection takes a moment to
/// notice.
const THREADS: usize = 64;
/// How long a new connection waits for a thread to notice that its connection is closed, or for an answer to be
/// computed. Both end by themselves, but on a busy machine not at once.
const ENTER_TIMEOUT: Duration = Duration::from_secs(2);

/// The event that a connection is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The request from the client.
    Reading,
    /// The client, which reads the answer.
    Writing,
    /// The answer, which the server computes.
    Answering,
}

struct Open {
    number: u64,
    phase: Phase,
    stream: Arc<TcpStream>,
}

#[derive(Default)]
struct State {
    /// The oldest connection is first.
    open: Vec<Open>,
    numbers: u64,
    threads: usize,
}

impl State {
    /// Returns whether a new connection would be refused: all connections are in use, and none may be closed.
    fn is_full(&self) -> bool {
        let answering = || self.open.iter().all(|one| one.phase == Phase::Answering);
        self.threads >= THREADS || (self.open.len() >= CONNECTIONS && answering())
    }
}

/// All connections of a server.
#[derive(Clone, Default)]
pub struct Connections(Arc<(Mutex<State>, Condvar)>);

/// One connection, which counts until it is dropped.
pub struct Connection {
    all: Connections,
    number: u64,
    pub stream: Arc<TcpStream>,
}

impl Connections {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection, or returns it if there are too many.
    pub fn enter(&self, stream: TcpStream) -> Result<Connection, TcpStream> {
        let full = |state: &mut State| state.is_full();
        let waited = self.0.1.wait_timeout_while(self.state(), ENTER_TIMEOUT, full);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if state.is_full() {
            return Err(stream);
        }
        if state.open.len() >= CONNECTIONS {
            let open = state.open.iter().enumerate();
            let given_up = open.filter(|(_, one)| one.phase != Phase::Answering);
            let Some((oldest, _)) = given_up.min_by_key(|(_, one)| (one.phase, one.number)) else {
                return Err(stream);
            };
            // The connection's thread notices that it is closed.
            let _ = state.open.remove(oldest).stream.shutdown(Shutdown::Both);
        }
        let (number, stream) = (state.numbers, Arc::new(stream));
        state.open.push(Open { number, phase: Phase::Reading, stream: Arc::clone(&stream) });
        state.numbers += 1;
        state.threads += 1;
        Ok(Connection { all: self.clone(), number, stream })
    }

    /// Returns the number of open connections.
    pub fn count(&self) -> usize {
        self.state().threads
    }
}

impl Connection {
    /// Sets what the connection waits for from now on.
    pub fn enter(&self, phase: Phase) {
        let mut state = self.all.state();
        if let Some(one) = state.open.iter_mut().find(|one| one.number == self.number) {
            one.phase = phase;
        }
        self.all.0.1.notify_one();
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut state = self.all.state();
        state.open.retain(|one| one.number != self.number);
        state.threads -= 1;
        self.all.0.1.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::TcpListener;

    /// Both ends of a new connection.
    fn connect(listener: &TcpListener) -> (TcpStream, TcpStream) {
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    #[test]
    fn oldest_sender_is_closed_before_oldest_reader() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connect = || connect(&listener);
        let all = Connections::default();
        let mut clients = Vec::new();
        let mut entered = Vec::new();
        for number in 0..CONNECTIONS {
            let (client, server) = connect();
            clients.push(client);
            entered.push(all.enter(server).ok().unwrap());
            entered[number].enter([Phase::Answering, Phase::Writing, Phase::Reading][number.min(2)]);
        }
        let mut is_closed = |number: usize| {
            clients[number].set_nonblocking(true).unwrap();
            clients[number].read(&mut [0]).is_ok_and(|count| count == 0)
        };
        let mut later = Vec::new();
        for expected in [2, 3] {
            later.push(all.enter(connect().1).ok().unwrap());
            assert!(is_closed(expected), "{expected}");
        }
        for one in entered[4..].iter().chain(&later) {
            one.enter(Phase::Answering);
        }
        later.push(all.enter(connect().1).ok().unwrap());
        assert!(is_closed(1) && !is_closed(0));
        later[2].enter(Phase::Answering);
        assert!(all.enter(connect().1).is_err(), "all answers are being made");
        drop((entered, later));
        assert_eq!(all.count(), 0);
    }

    /// A closed connection keeps its thread until the thread notices, however long that takes on a busy machine.
    #[test]
    fn new_connection_waits_until_closed_one_has_noticed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connect = || connect(&listener);
        let all = Connections::default();
        let mut slow: Vec<_> = (0..THREADS).map(|_| all.enter(connect().1).ok().unwrap()).collect();
        let server = connect().1;
        std::thread::scope(|scope| {
            let entering = scope.spawn(|| all.enter(server).is_ok());
            // The new connection may or may not be waiting already.
            drop(slow.remove(0));
            assert!(entering.join().unwrap());
        });
    }

    #[test]
    fn new_connection_waits_until_an_answer_is_computed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connect = || connect(&listener);
        let all = Connections::default();
        let entered: Vec<_> = (0..CONNECTIONS).map(|_| all.enter(connect().1).ok().unwrap()).collect();
        entered.iter().for_each(|one| one.enter(Phase::Answering));
        let server = connect().1;
        std::thread::scope(|scope| {
            let entering = scope.spawn(|| all.enter(server).is_ok());
            entered[5].enter(Phase::Writing);
            assert!(entering.join().unwrap());
        });
    }
}
