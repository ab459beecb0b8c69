//! `metrics --listen` serves every scrape, whatever other clients send (R116).

use crate::cli::Home;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// The server, which ends with the test.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(home: &Home, arguments: &[&str]) -> Server {
        let mut child = home
            .as_a_shell_would()
            .args(["metrics", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address =
            line.trim().strip_prefix("listening on http://").unwrap().strip_suffix("/metrics").unwrap();
        Server { address: address.to_owned(), child }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// Sends bytes and reads the whole answer. Returns its head and its body.
    fn send(&self, bytes: &[u8]) -> (String, String) {
        let mut stream = self.connect();
        // A server that answers early may stop reading.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        // A client that is refused before it is read may find the connection reset.
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        (head.to_owned(), body.to_owned())
    }

    fn get(&self, path: &str, headers: &str) -> (String, String) {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n").as_bytes())
    }

    #[cfg(unix)] // console events end it too; the tests of `run` cover them
    fn end(mut self, signal: nix::sys::signal::Signal) -> Option<i32> {
        let pid = nix::unistd::Pid::from_raw(self.child.id().cast_signed());
        nix::sys::signal::kill(pid, signal).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_client_chooses_the_format() {
    let home = Home::with(&["api", "--rate", "3/day"]);
    let server = Server::start(&home, &[]);
    let (head, body) = server.get("/metrics", "");
    assert!(
        head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"),
        "{head}"
    );
    assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
    assert!(
        body.contains("# TYPE shmlimit_granted_total counter\nshmlimit_granted_total{limiter=\"api\"} 0\n")
    );
    let accept =
        "Accept: application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2\r\n";
    let (head, body) = server.get("/metrics?x=y", accept);
    assert!(
        head.contains("Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"),
        "{head}"
    );
    assert!(body.ends_with("# EOF\n"));
    let (head, body) = server.send(b"HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 OK") && body.is_empty(), "{head}");
    assert!(server.get("/", "").1.contains("href=\"/metrics\""));
}

#[test]
fn unknown_paths_and_methods_get_an_error_status() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let long = format!("GET /metrics HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(9000));
    let endless = "GET /".repeat(4000);
    for (bytes, status) in [
        (&b"GET /other HTTP/1.1\r\n\r\n"[..], "404 Not Found"),
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", "405 Method Not Allowed"),
        (b"DELETE / HTTP/1.1\r\n\r\n", "405 Method Not Allowed"),
        (b"\x16\x03\x01\x02\x00\x01\x00\n\n", "400 Bad Request"),
        (b"hello\r\n\r\n", "400 Bad Request"),
        (b"GET /metrics HTTP/3\r\n\r\n", "400 Bad Request"),
        (b"GET metrics HTTP/1.1\r\n\r\n", "400 Bad Request"),
        (long.as_bytes(), "431 Request Header Fields Too Large"),
        (endless.as_bytes(), "431 Request Header Fields Too Large"),
    ] {
        let (head, _) = server.send(bytes);
        assert!(head.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{head}");
    }
    assert!(server.send(b"PUT /metrics HTTP/1.1\r\n\r\n").0.contains("\r\nAllow: GET, HEAD\r\n"));
    assert!(server.get("/metrics", "").0.starts_with("HTTP/1.1 200"), "the server still answers");
}

/// Clients that send nothing or little, and clients that read nothing, many more than the server has places.
#[test]
fn slow_clients_delay_no_scrape() {
    let home = Home::with(&["api", "--rate", "5/s"]);
    let server = Server::start(&home, &[]);
    let mut slow = Vec::new();
    for (count, said) in
        [(64, &b"GET /metr"[..]), (8, b""), (64, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")]
    {
        for _ in 0..count {
            let mut stream = server.connect();
            let _ = stream.write_all(said);
            slow.push(stream);
        }
        for _ in 0..3 {
            let (head, body) = server.get("/metrics", "");
            assert!(head.starts_with("HTTP/1.1 200"), "beside {} slow ones: {head:?}", slow.len());
            assert!(body.contains("shmlimit_up{limiter=\"api\"} 1\n"));
        }
    }
}

/// The bytes come one by one, each in time, but the request as a whole takes too long.
#[test]
fn a_request_must_be_complete_in_time() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let mut stream = server.connect();
    stream.set_read_timeout(Some(Duration::from_millis(250))).unwrap();
    let (until, mut answer) = (Instant::now() + Duration::from_secs(60), Vec::new());
    stream.write_all(b"GET /").unwrap();
    while answer.is_empty() && Instant::now() < until {
        let _ = stream.write_all(b"x");
        let mut part = [0; 100];
        if let Ok(count) = stream.read(&mut part) {
            answer.extend_from_slice(&part[..count]);
        }
    }
    assert!(answer.starts_with(b"HTTP/1.1 408 Request Timeout"), "{}", String::from_utf8_lossy(&answer));
}

/// A page in a browser can make its own name resolve to this server (DNS rebinding), but it cannot change the name in
/// its requests.
#[test]
fn requests_for_other_hosts_are_not_answered() {
    let home = Home::with(&["api", "--rate", "5/s"]);
    let request = |server: &Server, host: &str| {
        server.send(format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes())
    };
    let server = Server::start(&home, &["--allow-host", "metrics.example.org"]);
    for host in
        ["localhost", "LocalHost:9464", "127.0.0.1", "127.1.2.3:1", "[::1]:9464", "metrics.example.org"]
    {
        assert!(request(&server, host).0.starts_with("HTTP/1.1 200"), "{host}");
    }
    for host in ["evil.example", "evil.example:9464", "localhost.evil.example", "10.0.0.1"] {
        let (head, body) = request(&server, host);
        assert!(head.starts_with("HTTP/1.1 421 Misdirected Request"), "{host}: {head}");
        assert!(body.contains("--allow-host") && !body.contains("api"), "{body}");
    }
    for nonsense in ["a b", "<x>", ""] {
        assert!(request(&server, nonsense).0.starts_with("HTTP/1.1 400"), "{nonsense}");
    }
    for name in ["Host ", " Host", "Host\t"] {
        let blank =
            server.send(format!("GET /metrics HTTP/1.1\r\n{name}: evil.example\r\n\r\n").as_bytes()).0;
        assert!(blank.starts_with("HTTP/1.1 400"), "{name:?}: {blank}");
    }
    let none = server.send(b"GET /metrics HTTP/1.0\r\n\r\n").0;
    assert!(none.starts_with("HTTP/1.1 200"), "a request without a host is not from a browser: {none}");
    assert!(
        request(&Server::start(&home, &["--allow-host", "*"]), "evil.example").0.starts_with("HTTP/1.1 200")
    );
    home.tool(&["metrics", "--allow-host", "a"]).fails(2, &["--listen"]);
    home.tool(&["metrics", "--listen", "0", "--allow-host", "a:1"]).fails(2, &["without a port"]);
}

#[test]
fn the_server_follows_new_removed_and_damaged_limiters() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let metrics = || server.get("/metrics", "").1;
    assert!(!metrics().contains("limiter="));
    home.tool(&["init", "first", "--rate", "5/s"]).succeeds();
    assert!(metrics().contains("shmlimit_up{limiter=\"first\"} 1\n"));
    std::fs::write(home.path().join("second.shm"), b"garbage").unwrap();
    let text = metrics();
    assert!(text.contains("shmlimit_up{limiter=\"first\"} 1\nshmlimit_up{limiter=\"second\"} 0\n"), "{text}");
    home.delete("first");
    assert!(!metrics().contains("first"));
    assert!(home.tool(&["status"]).err.contains("second"), "the server itself is not a participant");
}

#[test]
fn the_metrics_server_is_not_a_participant() {
    let home = Home::with(&["api", "--rate", "5/s"]);
    let server = Server::start(&home, &["api"]);
    for _ in 0..3 {
        assert!(server.get("/metrics", "").1.contains("shmlimit_participants{limiter=\"api\"} 0\n"));
    }
    assert_eq!(home.status("api")["participants"].as_array().unwrap().len(), 0);
}

#[cfg(unix)]
#[test]
fn signals_end_the_server_cleanly() {
    use nix::sys::signal::Signal;
    let home = Home::new();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        assert_eq!(Server::start(&home, &[]).end(signal), Some(0), "{signal}");
    }
}

#[test]
fn a_port_in_use_is_reported_with_the_remedy() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let taken = home.tool(&["metrics", "--listen", &server.address]);
    taken.fails(
        1,
        &[&format!("cannot listen on {}", server.address), "another program has that port", "port 0"],
    );
    home.tool(&["metrics", "--listen", "nowhere"]).fails(2, &["127.0.0.1:9464"]);
    home.tool(&["metrics", "--listen", "0", "--format", "ndjson"]).fails(2, &["not ndjson"]);
    home.tool(&["metrics", "--listen", "0", "--every", "1s"]).fails(2, &["--every"]);
}

#[test]
fn listening_beyond_loopback_causes_a_warning() {
    let home = Home::new();
    let mut child = home
        .as_a_shell_would()
        .args(["metrics", "--listen", "0.0.0.0:0"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(line.contains("note: every machine that reaches 0.0.0.0:"), "{line}");
}
