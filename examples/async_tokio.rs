//! Twenty tasks share 10 calls a second, 3 at a time: `cargo run --example async_tokio`.
//!
//! Run it twice at the same time with the same directory (`cargo run --example async_tokio -- /dev/shm/demo`).
//! Together both processes keep the limit, and each gets half of it.

use shmlimit::{AcquireError, Algorithm, Limiter, Request};
use std::path::PathBuf;
use std::time::{Duration, Instant};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let temporary = tempfile::tempdir()?;
    let directory = std::env::args_os().nth(1).map_or(temporary.path().to_owned(), PathBuf::from);
    let builder = Limiter::builder("demo").rate("10/s").burst(2).algorithm(Algorithm::Gcra).concurrency(3);
    let limiter = builder.directory(&directory).open()?;

    let start = Instant::now();
    let tasks: Vec<_> = (0..20)
        .map(|number| {
            let limiter = limiter.clone();
            tokio::spawn(async move {
                let grant = limiter.acquire_async(&Request::new(), tokio::time::sleep).await?;
                println!("{:4} ms: call {number} goes", start.elapsed().as_millis());
                tokio::time::sleep(Duration::from_millis(50)).await; // the call itself
                grant.release()?;
                Ok::<_, AcquireError>(())
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }

    // A call that cannot be granted in time is refused at once.
    while let Ok(grant) = limiter.try_acquire(&Request::new()) {
        grant.release()?;
    }
    let hasty = Request::new().timeout(Duration::from_millis(5));
    match limiter.acquire_async(&hasty, tokio::time::sleep).await {
        Ok(grant) => grant.release()?,
        Err(AcquireError::Refused(refusal)) => println!("a call with 5 ms to wait: {refusal}"),
        Err(failed) => return Err(failed.into()),
    }
    Ok(())
}
