//! Makes calls, records their outcomes for all programs, and follows the advice: `cargo run --example record`.

use shmlimit::{Limiter, Outcome, Request};
use std::time::Instant;

/// Simulates an HTTP client: returns a status and headers. The server is busy at first.
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
        // Waits for its turn, and until the end of a Retry-After that any program received.
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
