//! The breaker with real processes and a real server (R120, R121, R122, R133, R139, R140): all processes obey what
//! one process learns about the server.

use crate::util::crash::child_process::ChildProcess;
use crate::util::server::client::{request, start, start_at};
use crate::util::server::{Answer, Deaf, Server, breaker, limiter, roomy};
use crate::util::wait_until;
use nix::sys::signal::Signal;
use shmlimit::Limiter;
use shmlimit_kernel::policy::Breaker;
use std::path::Path;
use std::time::Duration;

/// Sets short sleeps and a probe rate so high that it never limits.
fn brisk(breaker: &mut Breaker) {
    breaker.sleep_min = Duration::from_millis(50);
    breaker.probe_rate = shmlimit_kernel::policy::PerSecond::whole(100_000);
}

/// A client's answer about a call, without the time in front.
fn led_to(said: &str) -> &str {
    said.split_once(' ').map_or(said, |(_, rest)| rest)
}

fn state(limiter: &Limiter) -> &'static str {
    limiter.snapshot().unwrap().condition.state_name
}

fn fail(server: &Server, path: &str, status: u16, times: usize) {
    server.plan(path, std::iter::repeat_n(Answer::status(status), times));
}

/// Puts the limiter to sleep with five 429 in a row, and waits until it probes.
fn to_half_open(client: &mut ChildProcess, server: &Server, limiter: &Limiter) {
    fail(server, "/bad", 429, 5);
    let said: Vec<String> = (0..5).map(|_| request(client, "call /bad")).collect();
    assert_eq!(led_to(&said[2]), "429 normal>throttle(consec_429)");
    assert_eq!(led_to(&said[4]), "429 throttle>sleep(consec_429)");
    wait_until("the sleep is over", || state(limiter) == "half_open");
}

#[test]
fn r120_the_eleventh_error_of_fifty_calls_throttles_every_process() {
    let server = Server::start();
    let (directory, limiter) = limiter(breaker(1000, Some(8), |_| {}));
    let mut clients = [(); 4].map(|()| start(directory.path(), &server));
    for i in 0..39 {
        assert_eq!(led_to(&request(&mut clients[i % 4], "call /a")), "ok -");
    }
    fail(&server, "/a", 500, 11);
    for i in 0..10 {
        assert_eq!(led_to(&request(&mut clients[i % 4], "call /a")), "5xx -", "error {}", i + 1);
        assert_eq!(state(&limiter), "normal");
    }
    assert_eq!(led_to(&request(&mut clients[2], "call /a")), "5xx normal>throttle(error_ratio)");
    // The next call of another process already sees half the permits.
    for client in &mut clients[..2] {
        assert_eq!(request(client, "try"), "granted");
        assert_eq!(request(client, "try"), "granted");
    }
    assert!(request(&mut clients[3], "try").starts_with("refused concurrency "));
    let condition = limiter.snapshot().unwrap().condition;
    assert_eq!(
        (condition.state_name, condition.rate, condition.concurrency_now),
        ("throttle", 500.0, Some(4))
    );
    assert_eq!((condition.samples, condition.outcomes.ok, condition.outcomes.server), (50, 39, 11));
}

#[test]
fn r121_five_successful_probes_of_five_lead_to_normal() {
    let server = Server::start();
    let (directory, limiter) = limiter(roomy(brisk));
    let mut clients = [(); 2].map(|()| start(directory.path(), &server));
    to_half_open(&mut clients[0], &server, &limiter);
    for i in 0..4 {
        assert_eq!(led_to(&request(&mut clients[i % 2], "call /a")), "ok -");
        assert_eq!(state(&limiter), "half_open");
    }
    assert_eq!(led_to(&request(&mut clients[0], "call /a")), "ok half_open>normal(probe_ok)");
    assert_eq!(request(&mut clients[1], "state"), "normal");
}

#[test]
fn r121_one_failed_probe_of_three_leads_to_sleep_and_a_404_changes_nothing() {
    let server = Server::start();
    let (directory, limiter) = limiter(roomy(brisk));
    let mut clients = [(); 2].map(|()| start(directory.path(), &server));
    to_half_open(&mut clients[0], &server, &limiter);
    assert_eq!(led_to(&request(&mut clients[0], "call /status/404")), "ignored -");
    assert_eq!(led_to(&request(&mut clients[0], "call /a")), "ok -");
    assert_eq!(led_to(&request(&mut clients[1], "call /status/304")), "ok -");
    assert_eq!(led_to(&request(&mut clients[0], "call /status/503")), "5xx half_open>sleep(probe_failed)");
    // The next call finds the limiter still asleep, for twice as long as the first time.
    wait_until("probing again", || state(&limiter) == "half_open");
    let transitions = limiter.snapshot().unwrap().condition.transitions;
    let slept = |from: usize| transitions[from].ago - transitions[from + 1].ago;
    assert_eq!((slept(1), slept(3)), (Duration::from_millis(50), Duration::from_millis(100)));
}

/// Makes ten good calls, then calls that fail in one way until the breaker throttles. Returns how many failed.
fn calls_until_throttle(client: &mut ChildProcess, bad: &str, class: &str) -> usize {
    for _ in 0..10 {
        assert_eq!(led_to(&request(client, "call /a")), "ok -");
    }
    let said = (1..20).map(|i| (i, request(client, bad)));
    for (i, said) in said {
        match led_to(&said).split_once(' ') {
            Some((kind, "-")) => assert_eq!(kind, class),
            Some((kind, to)) => {
                assert_eq!((kind, to), (class, "normal>throttle(error_ratio)"));
                return i;
            }
            None => panic!("{said}"),
        }
    }
    panic!("{bad} never throttles");
}

#[test]
fn r122_unresolved_names_missing_answers_and_broken_connections_throttle() {
    let server = Server::start();
    for (bad, end) in [("no-such-host/", "dns"), ("/hang", "read_timeout"), ("/break", "connection")] {
        let (directory, limiter) = limiter(roomy(|_| {}));
        server.plan("/hang", std::iter::repeat_n(Answer::Hang, 5));
        server.plan("/break", std::iter::repeat_n(Answer::Close, 5));
        let mut client = start(directory.path(), &server);
        assert_eq!(request(&mut client, &format!("get {bad}")), end);
        // 3 of 13 is the first ratio of at least a fifth; 4 of 14 is the second.
        assert_eq!(calls_until_throttle(&mut client, &format!("call {bad}"), "net"), 4, "{end}");
        assert_eq!(limiter.snapshot().unwrap().condition.outcomes.net, 4);
    }
}

#[test]
fn r122_connections_that_take_too_long_throttle() {
    let deaf = Deaf::start();
    let (directory, limiter) = limiter(roomy(|breaker| breaker.hysteresis = 1));
    let mut client = start_at(directory.path(), deaf.port());
    assert_eq!(request(&mut client, "get /a"), "connect_timeout");
    for _ in 0..9 {
        assert_eq!(led_to(&request(&mut client, "call no-such-host/")), "net -");
    }
    assert_eq!(led_to(&request(&mut client, "call /a")), "net normal>throttle(error_ratio)");
    assert_eq!(state(&limiter), "throttle");
}

#[test]
fn r122_404_never_throttles_and_r139_network_errors_can_be_excluded() {
    let server = Server::start();
    let (directory, limiter) = limiter(roomy(|breaker| *breaker = breaker.with_network_errors(false)));
    let mut client = start(directory.path(), &server);
    for status in [401, 403, 404, 422] {
        for _ in 0..10 {
            assert_eq!(led_to(&request(&mut client, &format!("call /status/{status}"))), "ignored -");
        }
    }
    server.plan("/break", std::iter::repeat_n(Answer::Close, 20));
    for _ in 0..20 {
        assert_eq!(led_to(&request(&mut client, "call /break")), "net -");
    }
    let condition = limiter.snapshot().unwrap().condition;
    assert_eq!((condition.state_name, condition.samples, condition.error_ratio), ("normal", 0, 0.0));
    assert_eq!((condition.outcomes.ignored, condition.outcomes.net), (40, 20), "they are still counted");
}

/// A limiter in the half-open state, with a probe of the first client under way.
fn probing(
    probe_timeout: Duration,
    server: &Server,
    probes: impl FnOnce(&Path) -> Vec<ChildProcess>,
) -> (tempfile::TempDir, Limiter, Vec<ChildProcess>) {
    let policy = |probe_timeout| {
        roomy(|breaker| {
            brisk(breaker);
            breaker.probe_timeout = probe_timeout;
        })
    };
    let (directory, limiter) = limiter(policy(probe_timeout));
    let mut clients = probes(directory.path());
    to_half_open(&mut clients[0], server, &limiter);
    assert_eq!(request(&mut clients[0], "try"), "granted");
    // Only this probe may be written off, however slow the machine is.
    limiter.set_policy(&policy(NEVER)).unwrap();
    (directory, limiter, clients)
}

const NEVER: Duration = Duration::from_secs(3600);

#[test]
fn r60_eight_busy_processes_send_one_probe_at_a_time() {
    let server = Server::start();
    let some = |directory: &Path| (0..8).map(|_| start(directory, &server)).collect();
    let (_directory, limiter, mut clients) = probing(NEVER, &server, some);
    let before = server.seen().len();
    // The probe is under way, so no other client is granted one, however often it asks.
    for client in &mut clients[1..] {
        client.send("hammer 2000 /a");
    }
    for client in &mut clients[1..] {
        assert_eq!(client.receive(), "called 0");
    }
    assert_eq!(server.seen().len(), before, "the server received no further call");
    // Now every client asks for probes in an endless loop. The server must still see one at a time.
    assert_eq!(request(&mut clients[0], "drop"), "dropped");
    server.plan("/slow", std::iter::repeat_n(Answer::Slow(Duration::from_millis(20), 200), 5));
    for client in &mut clients {
        client.send("call /slow");
    }
    let said: Vec<String> = clients.iter_mut().map(ChildProcess::receive).collect();
    let probed = said.iter().filter(|said| led_to(said) == "ok half_open>normal(probe_ok)").count();
    assert_eq!(probed, 1, "{said:?}");
    let seen = server.seen_at("/slow");
    let apart = seen[..5].windows(2).filter(|two| two[1].at - two[0].at >= 20_000_000).count();
    assert_eq!(apart, 4, "a probe began before the previous one had ended: {seen:?}");
    assert_eq!(state(&limiter), "normal");
}

#[test]
fn r133_a_killed_probe_gives_its_permit_back() {
    let server = Server::start();
    let some = |directory: &Path| (0..2).map(|_| start(directory, &server)).collect();
    let (_directory, limiter, mut clients) = probing(NEVER, &server, some);
    assert!(request(&mut clients[1], "try").starts_with("refused concurrency "));
    let dead = clients.remove(0);
    dead.signal(Signal::SIGKILL);
    // The client that already waits gets the permit without asking again.
    assert_eq!(led_to(&request(&mut clients[0], "call /a")), "ok -");
    assert_eq!(state(&limiter), "half_open");
}

#[test]
fn r133_a_hanging_probe_is_written_off_and_its_late_result_is_ignored() {
    let server = Server::start();
    let some = |directory: &Path| (0..3).map(|_| start(directory, &server)).collect();
    let (_directory, limiter, mut clients) = probing(Duration::from_millis(300), &server, some);
    server.plan("/hang", [Answer::Hang]);
    assert_eq!(request(&mut clients[0], "get /hang"), "read_timeout");
    // The hanging probe does not report. Another probe is granted, one at a time.
    assert_eq!(request(&mut clients[1], "acquire"), "granted");
    assert!(request(&mut clients[2], "try").starts_with("refused concurrency "));
    assert_eq!(limiter.snapshot().unwrap().in_flight, 2);
    // The permit that was written off comes back. There is still no room for a third probe.
    assert_eq!(request(&mut clients[0], "drop"), "dropped");
    assert!(request(&mut clients[2], "try").starts_with("refused concurrency "));
    assert_eq!(request(&mut clients[1], "get /a"), "200");
    assert_eq!(led_to(&request(&mut clients[1], "record")), "ok -");
}

/// Like the previous test, but the probe's process dies instead of reporting.
#[test]
fn r133_a_written_off_probe_that_dies_leaves_room_for_exactly_one_probe() {
    let server = Server::start();
    let some = |directory: &Path| (0..3).map(|_| start(directory, &server)).collect();
    let (_directory, limiter, mut clients) = probing(Duration::from_millis(300), &server, some);
    assert_eq!(request(&mut clients[1], "acquire"), "granted");
    assert_eq!(limiter.snapshot().unwrap().in_flight, 2);
    let dead = clients.remove(0);
    dead.signal(Signal::SIGKILL);
    drop(dead);
    for _ in 0..20 {
        assert!(
            request(&mut clients[1], "try").starts_with("refused concurrency "),
            "one probe is under way"
        );
    }
    assert_eq!(limiter.snapshot().unwrap().in_flight, 1, "the exited process was found");
}

#[test]
fn r140_outcomes_of_calls_from_before_the_sleep_do_not_count_as_probe_results() {
    let server = Server::start();
    let (directory, limiter) = limiter(roomy(|breaker| {
        brisk(breaker);
        // Calls from before the sleep occupy the probe's place until they end (R60), so allow several places.
        breaker.probe_concurrency = 3;
    }));
    let mut clients = [(); 3].map(|()| start(directory.path(), &server));
    assert_eq!(request(&mut clients[1], "try"), "granted");
    assert_eq!(request(&mut clients[2], "try"), "granted");
    to_half_open(&mut clients[0], &server, &limiter);
    assert_eq!(request(&mut clients[1], "get /status/500"), "500");
    assert_eq!(led_to(&request(&mut clients[1], "record")), "5xx -", "late: nothing moves");
    assert_eq!(request(&mut clients[2], "get /a"), "200");
    assert_eq!(led_to(&request(&mut clients[2], "record")), "ok -");
    let condition = limiter.snapshot().unwrap().condition;
    assert_eq!((condition.state_name, condition.samples), ("half_open", 0));
    assert_eq!((condition.outcomes.server, condition.outcomes.ok), (1, 1), "but they are counted");
    // For an outcome without a grant nothing is known about its start: it counts as a probe.
    assert_eq!(request(&mut clients[1], "get /status/500"), "500");
    assert_eq!(led_to(&request(&mut clients[1], "tell")), "5xx half_open>sleep(probe_failed)");
}
