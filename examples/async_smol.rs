//! Ten tasks share 10 calls a second on smol, and one of them is for a user: `cargo run --example async_smol`.

use shmlimit::{AcquireError, Algorithm, Limiter, Priority, Rate, Request};
use std::time::{Duration, Instant};

/// The sleep function of smol.
async fn sleep(time: Duration) {
    smol::Timer::after(time).await;
}

async fn call(limiter: Limiter, request: Request<'static>, name: String) -> Result<(), AcquireError> {
    let start = Instant::now();
    let grant = limiter.acquire_async(&request, sleep).await?;
    println!("{name} goes after {} ms", start.elapsed().as_millis());
    grant.release()?;
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let builder = Limiter::builder("demo").rate(Rate::per_second(10)).burst(2).algorithm(Algorithm::Gcra);
    let limiter = builder.directory(directory.path()).open()?;
    smol::block_on(async {
        let mut tasks: Vec<_> = (0..9)
            .map(|number| {
                smol::spawn(call(limiter.clone(), Request::new(), format!("background call {number}")))
            })
            .collect();
        let urgent = Request::new().priority(Priority::User);
        tasks.push(smol::spawn(call(limiter.clone(), urgent, "the user's call, asked for last,".to_owned())));
        for task in tasks {
            task.await?;
        }
        Ok(())
    })
}
