//! Calls, tells everybody how that ended, and heeds the advice: `cargo run --example record`.

use shmlimit::{Limiter, Outcome, Request};
use std::time::Instant;

/// Stands in for an HTTP client: a status and its headers. The server is busy at first.
fn call(attempt: u32) -> (u16, Vec<(&'static str, &'static str)>) {
    match attempt {
        1 => (429, vec![("Retry-After", "1")]),
        2 => (503, vec![]),
        _ => (200, vec![]),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let limiter = Limiter::builder("demo").directory(directory.path()).concurrency(4).open()?;
    for attempt in 1.. {
        // Waits its turn, and also until a Retry-After that any program was given is over.
        let grant = limiter.acquire(&Request::new())?;
        let start = Instant::now();
        let (status, headers) = call(attempt);
        let outcome = Outcome::http(status, &headers).attempt(attempt).latency(start.elapsed());
        let advice = grant.record(&outcome)?;
        println!("attempt {attempt}: {status}, wait {:?}, try again: {}", advice.wait, advice.retry);
        if !advice.retry {
            break;
        }
        std::thread::sleep(advice.wait);
    }
    let now = limiter.snapshot()?.condition;
    println!(
        "{} well, {} throttled, {} failed",
        now.outcomes.ok, now.outcomes.throttled, now.outcomes.server
    );
    Ok(())
}
