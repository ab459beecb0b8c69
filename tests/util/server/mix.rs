//! A client that does everything that clients do, in random order.

use super::http::{self, End};
use crate::util::boot_time;
use shmlimit::{AcquireError, Limiter, NetError, Priority, Request};
use std::time::Duration;

/// Runs for this many milliseconds, from a seed. Returns how many calls were granted and how many refused.
pub fn run(limiter: &Limiter, port: u16, rest: &str) -> String {
    let (millis, seed) = rest.split_once(' ').expect("how long, and a seed");
    let end = boot_time() + millis.parse::<u64>().unwrap() * 1_000_000;
    let mut random = seed.parse::<u64>().unwrap();
    let mut below = |end: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % end
    };
    let (mut granted, mut refused) = (0, 0);
    while boot_time() < end {
        let priority = [Priority::Background, Priority::Background, Priority::User][below(3) as usize];
        let timeout = Duration::from_millis(1 + below(100));
        let request = Request::new().priority(priority).timeout(timeout);
        let answer = if below(4) == 0 { limiter.try_acquire(&request) } else { limiter.acquire(&request) };
        let grant = match answer {
            Ok(grant) => grant,
            Err(AcquireError::Refused(_)) => {
                refused += 1;
                // A refused client comes again a little later, as every program does.
                std::thread::sleep(Duration::from_millis(below(5)));
                continue;
            }
            Err(AcquireError::Failed(error)) => panic!("{error}"),
        };
        granted += 1;
        let path = match below(100) {
            0..=84 => "/a",
            85..=88 => "/status/404",
            89..=91 => "/status/503",
            92..=93 => "/status/429",
            94 => "/retry-after",
            95 => "/slow",
            96 => "never sent",
            97 => "dropped",
            98 => "no answer",
            _ => "owned",
        };
        match path {
            "never sent" => grant.cancel().unwrap(),
            "dropped" => drop(grant),
            "no answer" => {
                End::Failed(NetError::ReadTimeout).with_outcome(|outcome| grant.record(outcome).unwrap());
            }
            "owned" => {
                let end = http::get("127.0.0.1", port, "/a");
                end.with_outcome(|outcome| grant.into_owned().record(outcome).unwrap());
            }
            path => {
                http::get("127.0.0.1", port, path).with_outcome(|outcome| grant.record(outcome).unwrap());
            }
        }
    }
    format!("{granted} {refused}")
}
