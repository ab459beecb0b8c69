//! `--listen`: a small HTTP server. Each scrape reads the limiters again, so limiters may be created and removed
//! meanwhile.

use super::connections::{Connection, Connections, Phase};
use super::hosts::{Hosts, without_port};
use super::http::{self, Answer, Bad, Request};
use super::observation;
use crate::options::Location;
use crate::platform::Stop;
use crate::ui::failure::Failure;
use crate::ui::{escape, output};
use shmlimit::metrics::Format;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long the server waits for unfinished answers when it shuts down.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

const PAGE: &str = "<!doctype html><html lang=\"en\"><title>shmlimit</title><h1>shmlimit</h1>\
                    <p><a href=\"/metrics\">Metrics</a></p></html>\n";

struct Server {
    location: Location,
    name: Option<String>,
    /// Allows one observation at a time, however many requests there are.
    looking: Mutex<()>,
    hosts: Hosts,
    connections: Connections,
}

/// A socket address, and the host name that it was given as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    address: SocketAddr,
    name: Option<String>,
}

/// Serves until a signal ends the process. Requests may name the hosts in `allowed` in addition to the server's own.
pub fn run(
    location: &Location,
    name: Option<&str>,
    listen: &Listen,
    allowed: &[String],
) -> Result<ExitCode, Failure> {
    let address = listen.address;
    let listener = TcpListener::bind(address).map_err(|error| cannot_listen(address, &error))?;
    let address = listener.local_addr()?;
    let stop = Stop::on_signals()?;
    if !address.ip().is_loopback() {
        output::remark(&format!(
            "note: every machine that reaches {address} can read the names and counts of all limiters; to allow only \
             this machine, listen on 127.0.0.1"
        ));
    }
    let server = Arc::new(Server {
        location: Location {
            dir: location.dir.clone().map(absolute),
            allow_network_fs: location.allow_network_fs,
        },
        name: name.map(str::to_owned),
        looking: Mutex::new(()),
        hosts: Hosts::new(address, listen.name.as_deref(), allowed),
        connections: Connections::default(),
    });
    // The server also works if standard output is closed.
    let _ = output::line(&format!("listening on http://{address}/metrics"));
    let accepting = Arc::clone(&server);
    std::thread::Builder::new().name("accept".to_owned()).spawn(move || accept(&listener, &accepting))?;
    stop.wait();
    let until = Instant::now() + SHUTDOWN_TIMEOUT;
    while server.connections.count() > 0 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(ExitCode::SUCCESS)
}

fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}

fn cannot_listen(address: SocketAddr, error: &io::Error) -> Failure {
    let (why, remedy) = match error.kind() {
        ErrorKind::AddrInUse => {
            ("another program has that port".to_owned(), "; choose another one, or port 0 for any free one")
        }
        ErrorKind::PermissionDenied => ("not permitted".to_owned(), "; ports below 1024 are for root"),
        ErrorKind::AddrNotAvailable => ("this machine does not have that address".to_owned(), ""),
        _ => (error.to_string(), ""),
    };
    Failure::Command(format!("cannot listen on {address}: {why}{remedy}"), 1)
}

fn accept(listener: &TcpListener, server: &Arc<Server>) {
    for stream in listener.incoming() {
        // The error may be temporary, such as too many open files.
        let Ok(stream) = stream else {
            std::thread::sleep(Duration::from_millis(50));
            continue;
        };
        let connection = match server.connections.enter(stream) {
            Ok(connection) => connection,
            Err(stream) => {
                // Answer without waiting, because this thread accepts all clients.
                http::answer_at_once(&stream, &Answer::plain("503 Service Unavailable"));
                continue;
            }
        };
        let serving = Arc::clone(server);
        // If the thread cannot start, the connection is dropped and closed.
        let _ =
            std::thread::Builder::new().name("scrape".to_owned()).spawn(move || serving.serve(&connection));
    }
}

impl Server {
    fn serve(&self, connection: &Connection) {
        let stream = &*connection.stream;
        let (answer, head_only) = match http::read(stream, http::deadline()) {
            Ok(request) => {
                connection.enter(Phase::Answering);
                (self.answer(&request), request.method == "HEAD")
            }
            Err(Bad::Gone) => return,
            Err(Bad::Garbage) => (Answer::plain("400 Bad Request"), false),
            Err(Bad::Long) => (Answer::plain("431 Request Header Fields Too Large"), false),
            Err(Bad::Late) => (Answer::plain("408 Request Timeout"), false),
        };
        connection.enter(Phase::Writing);
        // A request that arrived in time has the full time for its answer.
        http::answer(stream, &answer, head_only, http::deadline());
    }

    fn answer(&self, request: &Request) -> Answer {
        if let Some(host) = request.host.as_deref().filter(|host| !self.hosts.has(host)) {
            return misdirected(host);
        }
        match (request.method.as_str(), request.path.as_str()) {
            ("GET" | "HEAD", "/metrics") => self.metrics(&request.accept),
            ("GET" | "HEAD", "/") => Answer {
                status: "200 OK",
                content_type: "text/html; charset=utf-8",
                more: "",
                body: PAGE.to_owned(),
            },
            (_, "/metrics" | "/") => {
                Answer { more: "Allow: GET, HEAD\r\n", ..Answer::plain("405 Method Not Allowed") }
            }
            _ => Answer::plain("404 Not Found"),
        }
    }

    fn metrics(&self, accept: &str) -> Answer {
        let seen = {
            let _one_at_a_time = self.looking.lock();
            observation::observe(&self.location, self.name.as_deref())
        };
        match seen {
            Ok(seen) => {
                let format = if wants_openmetrics(accept) { Format::OpenMetrics } else { Format::Prometheus };
                let body = observation::text(&seen, format);
                Answer { status: "200 OK", content_type: format.content_type(), more: "", body }
            }
            Err(failure) => {
                let body = escape::lines(&format!("{failure}\n")).into_owned();
                Answer { body, ..Answer::plain("500 Internal Server Error") }
            }
        }
    }
}

/// Returns the answer for a foreign host. The host was checked and has plain characters only.
fn misdirected(host: &str) -> Answer {
    let body = format!(
        "This server does not answer for the host {host}. Ask for it by its address, or start it with --allow-host {host}.\n"
    );
    Answer { body, ..Answer::plain("421 Misdirected Request") }
}

/// Returns whether the client accepts OpenMetrics, and not as its last choice.
fn wants_openmetrics(accept: &str) -> bool {
    accept.split(',').any(|kind| {
        let mut parts = kind.split(';').map(str::trim);
        let is_it =
            parts.next().is_some_and(|name| name.eq_ignore_ascii_case("application/openmetrics-text"));
        let refused = parts.any(|part| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"));
        is_it && !refused
    })
}

/// Parses `127.0.0.1:9464`, `[::1]:9464`, `localhost:9464`, or a port alone.
pub fn address(text: &str) -> Result<Listen, String> {
    let whole = if text.parse::<u16>().is_ok() { format!("127.0.0.1:{text}") } else { text.to_owned() };
    let mut found = whole.to_socket_addrs().map_err(|_| "must be an address such as 127.0.0.1:9464")?;
    let address = found.next().ok_or_else(|| "has no address".to_owned())?;
    Ok(Listen { address, name: without_port(&whole).map(str::to_owned) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept_header_chooses_the_format() {
        let prometheus_2 =
            "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        assert!(wants_openmetrics(prometheus_2));
        for accept in ["", "*/*", "text/plain", "application/openmetrics-text; q=0, text/plain"] {
            assert!(!wants_openmetrics(accept), "{accept}");
        }
    }

    #[test]
    fn addresses_are_parsed() {
        assert_eq!(address("9464").unwrap().address.to_string(), "127.0.0.1:9464");
        assert_eq!(address("[::1]:0").unwrap().address.to_string(), "[::1]:0");
        assert_eq!(address("localhost:1").unwrap().name.as_deref(), Some("localhost"));
        assert!(address("nowhere").is_err() && address("127.0.0.1:99999").is_err());
    }
}
