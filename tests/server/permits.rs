//! Permits as the server sees them (R113, R131): there are never more concurrent calls than permits, and the permits
//! of exited processes go to waiting calls.

use crate::util::server::client::{request, start};
use crate::util::server::{Answer, Server, breaker, limiter};
use crate::util::wait_until;
use nix::sys::signal::Signal;

#[test]
fn r113_the_server_never_sees_more_calls_at_once_than_there_are_permits() {
    let server = Server::start();
    let (directory, limiter) = limiter(breaker(100_000, Some(2), |_| {}));
    let mut clients = [(); 5].map(|()| start(directory.path(), &server));
    for (i, client) in clients.iter_mut().enumerate() {
        client.send(&format!("flood 700 /{}", if i < 2 { "slow" } else { "a" }));
    }
    for client in &mut clients {
        let said = client.receive();
        assert_ne!(said, "called 0", "every client has its turn");
    }
    assert_eq!(server.most_at_once(), 2);
    let now = limiter.snapshot().unwrap();
    assert_eq!((now.in_flight, now.condition.outcomes.ok), (0, server.seen().len() as u64));
}

#[test]
fn r113_permits_of_exited_processes_come_back_to_waiters_and_an_exited_waiter_is_skipped() {
    let server = Server::start();
    let (directory, limiter) = limiter(breaker(100_000, Some(2), |_| {}));
    let mut clients = [(); 5].map(|()| start(directory.path(), &server)).into_iter();
    let mut holders: Vec<_> = clients.by_ref().take(2).collect();
    server.plan("/slow", [(); 2].map(|()| Answer::Hang));
    for holder in &mut holders {
        assert_eq!(request(holder, "try"), "granted");
        holder.send("get /slow");
    }
    let mut waiters: Vec<_> = clients.collect();
    for (i, waiter) in waiters.iter_mut().enumerate() {
        waiter.send("call /a");
        wait_until("it waits", || limiter.snapshot().unwrap().queue.len() == i + 1);
    }
    wait_until("both are in the middle of a call", || server.seen().len() == 2);
    // Kill the first process in the queue, then the permit holders in the middle of their calls.
    waiters.remove(0).signal(Signal::SIGKILL);
    for holder in holders {
        holder.signal(Signal::SIGKILL);
    }
    for waiter in &mut waiters {
        assert!(waiter.receive().ends_with(" ok -"));
    }
    assert_eq!(server.seen_at("/a").len(), 2);
    let condition = limiter.snapshot().unwrap().condition;
    assert_eq!(
        (condition.state_name, condition.samples),
        ("normal", 2),
        "the death of a client says nothing about the server"
    );
}
