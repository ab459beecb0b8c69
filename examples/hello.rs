//! Takes a few grants and prints the remaining budget: `cargo run --example hello`.

use shmlimit::{AcquireError, Limiter, Request};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let limiter = Limiter::open("tmdb")?;
    println!("tmdb lives in {}", limiter.directory().display());
    for _ in 0..3 {
        match limiter.try_acquire(&Request::new()) {
            Ok(grant) => grant.release()?,
            Err(AcquireError::Refused(refusal)) => println!("not now: {refusal}"),
            Err(failed) => return Err(failed.into()),
        }
    }
    for rule in limiter.snapshot()?.rules {
        println!("{}: {} of {} left", rule.name, rule.remaining, rule.capacity);
    }
    Ok(())
}
