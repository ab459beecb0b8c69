//! The demo client that is written in Rust and uses the library.

use super::clients::{Half, LIMITER, RetryStyle};
use crate::ui::failure::{Failure, REFUSED};
use crate::ui::limiter::refusal::{self, Needs};
use shmlimit::headers::response;
use shmlimit::{Limiter, Outcome, Request};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Makes calls until the server says that the half is over.
pub fn run(words: &[String]) -> Result<ExitCode, Failure> {
    let [server, half, client, gap, retry_style] = words else { return Err(misused()) };
    let (Some(half), Ok(gap)) = (Half::parse(half), gap.parse::<f64>()) else { return Err(misused()) };
    let get = |what: &str| get(server, &format!("/{what}/{}/{client}", half.as_str()));
    let limiter = match half {
        Half::Without => None,
        Half::With => Some(Limiter::builder(LIMITER).open_existing()?),
    };
    get("start")?;
    loop {
        let began = Instant::now();
        let answer = match &limiter {
            None => get("call")?,
            Some(limiter) => {
                let grant = limiter
                    .acquire(&Request::new())
                    .map_err(|error| refusal::failure(limiter, error, Needs::ONE_CALL, REFUSED))?;
                let answer = get("call")?;
                let (status, headers) = response(&answer);
                grant.record(&Outcome::http(status.unwrap_or(0), &headers))?;
                answer
            }
        };
        match response(&answer) {
            (Some(200), _) => {}
            // With a limiter, the limiter does the waiting.
            (Some(429), headers) if limiter.is_none() && retry_style == RetryStyle::Polite.as_str() => {
                sleep(retry_after(&headers));
            }
            (Some(429), _) => {}
            _ => return Ok(ExitCode::SUCCESS),
        }
        sleep(Duration::from_secs_f64(gap).saturating_sub(began.elapsed()));
    }
}

fn retry_after(headers: &[(&str, &str)]) -> Duration {
    let found = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("retry-after"));
    Duration::from_secs(found.and_then(|(_, value)| value.parse().ok()).unwrap_or(1))
}

fn get(server: &str, path: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(server)?;
    stream.set_nodelay(true)?;
    stream.write_all(
        format!("GET {path} HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\n\r\n").as_bytes(),
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

fn misused() -> Failure {
    Failure::Usage("--act-as is for the tool's own processes".to_owned())
}
