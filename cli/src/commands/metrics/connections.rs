//! Limits how many connections are served at a time, and chooses which one to close for a new one.
//!
//! A client that connects and sends or reads nothing must not block others. A new connection always gets a place: if all are
//! taken, the oldest connection that still sends its request is closed, else the oldest that still reads its answer. A
//! connection whose answer is being made is left alone, because that ends by itself; if all
//! are like that, the new one waits.

use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Connections at a time.
const PLACES: usize = 16;
/// Threads at a time: a connection that was closed takes a moment to notice.
const THREADS: usize = 64;
/// How long a new connection waits for one of them to notice, or for one of the answers that are being made. Both end by
/// themselves, but on a busy machine not at once.
const PLACE_TIMEOUT: Duration = Duration::from_secs(2);

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The request.
    Reading,
    /// The client, to read the answer.
    Writing,
    /// The answer.
    Answering,
}

struct Place {
    number: u64,
    phase: Phase,
    stream: Arc<TcpStream>,
}

#[derive(Default)]
struct State {
    /// The oldest first.
    places: Vec<Place>,
    numbers: u64,
    threads: usize,
}

impl State {
    /// Whether there is no place for another one, nor one that would give way.
    fn is_full(&self) -> bool {
        let answering = || self.places.iter().all(|place| place.phase == Phase::Answering);
        self.threads >= THREADS || (self.places.len() >= PLACES && answering())
    }
}

/// All connections of a server.
#[derive(Clone, Default)]
pub struct Connections(Arc<(Mutex<State>, Condvar)>);

/// One connection in its place, until it is dropped.
pub struct Connection {
    all: Connections,
    number: u64,
    pub stream: Arc<TcpStream>,
}

impl Connections {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection; returns it if there is no place.
    pub fn enter(&self, stream: TcpStream) -> Result<Connection, TcpStream> {
        let full = |state: &mut State| state.is_full();
        let waited = self.0.1.wait_timeout_while(self.state(), PLACE_TIMEOUT, full);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if state.is_full() {
            return Err(stream);
        }
        if state.places.len() >= PLACES {
            let places = state.places.iter().enumerate();
            let given_up = places.filter(|(_, place)| place.phase != Phase::Answering);
            let Some((oldest, _)) = given_up.min_by_key(|(_, place)| (place.phase, place.number)) else {
                return Err(stream);
            };
            // Its thread finds the connection closed.
            let _ = state.places.remove(oldest).stream.shutdown(Shutdown::Both);
        }
        let (number, stream) = (state.numbers, Arc::new(stream));
        state.places.push(Place { number, phase: Phase::Reading, stream: Arc::clone(&stream) });
        state.numbers += 1;
        state.threads += 1;
        Ok(Connection { all: self.clone(), number, stream })
    }

    /// How many connections are open.
    pub fn count(&self) -> usize {
        self.state().threads
    }
}

impl Connection {
    /// Sets what the connection waits for from here on.
    pub fn enter(&self, phase: Phase) {
        let mut state = self.all.state();
        if let Some(place) = state.places.iter_mut().find(|place| place.number == self.number) {
            place.phase = phase;
        }
        self.all.0.1.notify_one();
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut state = self.all.state();
        state.places.retain(|place| place.number != self.number);
        state.threads -= 1;
        self.all.0.1.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::TcpListener;

    #[test]
    fn the_oldest_that_sends_gives_way_before_the_oldest_that_reads() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connect = || {
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (client, listener.accept().unwrap().0)
        };
        let all = Connections::default();
        let mut clients = Vec::new();
        let mut places = Vec::new();
        for number in 0..PLACES {
            let (client, server) = connect();
            clients.push(client);
            places.push(all.enter(server).ok().unwrap());
            places[number].enter([Phase::Answering, Phase::Writing, Phase::Reading][number.min(2)]);
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
        for place in places[4..].iter().chain(&later) {
            place.enter(Phase::Answering);
        }
        later.push(all.enter(connect().1).ok().unwrap());
        assert!(is_closed(1) && !is_closed(0));
        later[2].enter(Phase::Answering);
        assert!(all.enter(connect().1).is_err(), "all answers are being made");
        drop((places, later));
        assert_eq!(all.count(), 0);
    }

    /// Connections that gave way keep their threads until these have noticed, however long that takes on a busy machine.
    #[test]
    fn new_connection_waits_until_one_that_gave_way_has_noticed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connect = || {
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (client, listener.accept().unwrap().0)
        };
        let all = Connections::default();
        let mut slow: Vec<_> = (0..THREADS).map(|_| all.enter(connect().1).ok().unwrap()).collect();
        let server = connect().1;
        std::thread::scope(|scope| {
            let entering = scope.spawn(|| all.enter(server).is_ok());
            // Whether it waits already or not.
            drop(slow.remove(0));
            assert!(entering.join().unwrap());
        });
    }

    #[test]
    fn new_connection_waits_until_one_of_the_answers_is_made() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connect = || {
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (client, listener.accept().unwrap().0)
        };
        let all = Connections::default();
        let places: Vec<_> = (0..PLACES).map(|_| all.enter(connect().1).ok().unwrap()).collect();
        places.iter().for_each(|place| place.enter(Phase::Answering));
        let server = connect().1;
        std::thread::scope(|scope| {
            let entering = scope.spawn(|| all.enter(server).is_ok());
            places[5].enter(Phase::Writing);
            assert!(entering.join().unwrap());
        });
    }
}
