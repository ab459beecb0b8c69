//! The C and C++ examples compile against the header, link with the static library, and do what they show. They run
//! at the same time as each other and the command-line tool, against a server that counts calls.

// These tests use this machine's compiler. scripts/platforms/windows-c compiles and runs the same programs for
// Windows.
#![cfg(unix)]

#[allow(dead_code)]
mod support;

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::Program;

/// Answers every call with 200, except the calls with these numbers (from 1): these get 429 and `Retry-After: 1`.
struct Server {
    url: String,
    calls: Arc<AtomicU64>,
}

impl Server {
    fn new(throttled: &'static [u64]) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/movie/603", listener.local_addr().unwrap());
        let calls = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&calls);
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let Ok(mut connection) = connection else { continue };
                let mut lines = BufReader::new(connection.try_clone().unwrap()).lines();
                assert_eq!(lines.next().unwrap().unwrap(), "GET /movie/603 HTTP/1.1");
                while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
                let number = counted.fetch_add(1, Ordering::SeqCst) + 1;
                let answer = if throttled.contains(&number) {
                    "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"
                } else {
                    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
                };
                let _ = connection.write_all(answer.as_bytes());
            }
        });
        Server { url, calls }
    }

    fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }
}

fn make(tool: &Path, limiters: &Path, name: &str, arguments: &[&str]) {
    let made =
        Command::new(tool).args(["init", name, "--dir"]).arg(limiters).args(arguments).output().unwrap();
    assert!(made.status.success(), "{}", support::text(&made));
}

fn summary(ran: &Output) -> Value {
    assert!(ran.status.success(), "{}", support::text(ran));
    serde_json::from_slice(&ran.stdout).unwrap()
}

fn status(tool: &Path, limiters: &Path, name: &str) -> Value {
    let said = Command::new(tool).args(["status", name, "--json", "--dir"]).arg(limiters).output().unwrap();
    serde_json::from_slice(&said.stdout).unwrap()
}

/// Waits until a call is in the queue.
fn until_it_waits(tool: &Path, limiters: &Path, name: &str) {
    let late = Instant::now() + Duration::from_secs(30);
    while status(tool, limiters, name)["queue"].as_array().unwrap().is_empty() {
        assert!(Instant::now() < late, "nobody waits");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn interrupt(child: &Child) {
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

#[test]
fn workers_in_c_and_cpp_share_tmdb_with_the_tool() {
    let tool = support::tool();
    let c = Program::new("examples/c/worker.c");
    let cpp = Program::new("examples/cpp/worker.cpp");
    let limiters = &c.limiters;
    make(&tool, limiters, "tmdb", &[]);
    let server = Server::new(&[5]);
    let start = |program: &Program| {
        let mut command = program.command();
        command.args([
            "tmdb",
            "--url",
            &server.url,
            "--count",
            "12",
            "--priority",
            "user",
            "--timeout",
            "30",
        ]);
        command.arg("--dir").arg(limiters).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let started = [start(&c), start(&cpp)];
    let ended = started.map(|child| summary(&child.wait_with_output().unwrap()));
    let sum = |key: &str| ended.iter().map(|one| one[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("granted"), sum("ok"), sum("throttled"), sum("errors")), (24, 23, 1, 0), "{ended:?}");
    assert_eq!(server.calls(), 24);
    let said = status(&tool, limiters, "tmdb");
    assert_eq!((said["outcomes"]["ok"].as_u64(), said["outcomes"]["429"].as_u64()), (Some(23), Some(1)));
    assert_eq!(said["in_flight"], 0);
    let run = Command::new(&tool).args(["run", "tmdb", "--dir"]).arg(limiters).args(["--", "true"]).status();
    assert!(run.unwrap().success());
}

#[test]
fn workers_record_a_missing_server() {
    let tool = support::tool();
    // This listener is closed at once, so no server listens at its address.
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for source in ["examples/c/worker.c", "examples/cpp/worker.cpp"] {
        let program = Program::new(source);
        make(&tool, &program.limiters, "api", &["--rate", "1000/s"]);
        let url = format!("http://{nobody}/");
        let ran = program.command().args(["api", "--count", "1", "--url", &url]).output().unwrap();
        assert_eq!(summary(&ran)["errors"], 1, "{source}");
        assert_eq!(status(&tool, &program.limiters, "api")["outcomes"]["net"], 1, "{source}");
    }
}

#[test]
fn workers_hold_permits_without_a_url_and_stop_at_a_signal() {
    let tool = support::tool();
    for source in ["examples/c/worker.c", "examples/cpp/worker.cpp"] {
        let program = Program::new(source);
        let limiters = &program.limiters;
        make(&tool, limiters, "api", &["--rate", "1/h", "--burst", "3"]);
        let mut command = program.command();
        command.args(["api", "--hold", "1", "--timeout", "86400"]).stdout(Stdio::piped());
        let child = command.spawn().unwrap();
        until_it_waits(&tool, limiters, "api");
        interrupt(&child);
        let ended = summary(&child.wait_with_output().unwrap());
        assert_eq!(
            (ended["granted"].as_u64(), ended["ok"].as_u64()),
            (Some(3), Some(3)),
            "{source}: {ended}"
        );
        let said = status(&tool, limiters, "api");
        assert_eq!((&said["in_flight"], said["queue"].as_array().unwrap().len()), (&Value::from(0), 0));
    }
}

#[test]
fn an_event_loop_waits_for_several_calls_and_reads_its_input_meanwhile() {
    let tool = support::tool();
    let program = Program::new("examples/c/event_loop.c");
    make(&tool, &program.limiters, "api", &["--rate", "1000/s", "--concurrency", "1"]);
    // Its standard input stays open to the end.
    let mut command = program.command();
    let mut child = command
        .args(["api", "--count", "50", "--at-once", "8"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let input = child.stdin.take();
    assert_eq!(summary(&child.wait_with_output().unwrap())["granted"], 50);
    drop(input);

    make(&tool, &program.limiters, "slow", &["--rate", "1/h", "--burst", "2"]);
    let mut child = program
        .command()
        .args(["slow", "--count", "9", "--at-once", "5"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until_it_waits(&tool, &program.limiters, "slow");
    let mut input = child.stdin.take().unwrap();
    let mut heard = child.stderr.take().unwrap();
    input.write_all(b"hello\n").unwrap();
    let mut said = [0; 10];
    heard.read_exact(&mut said).unwrap();
    assert_eq!(&said, b"heard whil", "it hears while calls wait");
    drop(input);
    let ended = summary(&child.wait_with_output().unwrap());
    assert_eq!((ended["granted"].as_u64(), ended["given_up"].as_u64()), (Some(2), Some(5)), "{ended}");
    assert!(status(&tool, &program.limiters, "slow")["queue"].as_array().unwrap().is_empty());
}
