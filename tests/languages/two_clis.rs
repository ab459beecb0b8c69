//! Several programs share one budget against a real server (R123): they never exceed it in any window, they use all
//! of it, and their shares are equal.
//!
//! The budget is checked on every run. Whether all of it is used, and how equally, depends on the machine:
//! `scripts/proofs/two-clis` checks that with longer, repeated runs, and takes the median.

use crate::util::crash::NAME;
use crate::util::server::client::start;
use crate::util::server::{Seen, Server, limiter};
use shmlimit::{Algorithm, Limiter, Policy, PolicyDraft, RuleDraft};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;

/// A number that the script sets in the environment.
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

struct Budget {
    rate: u64,
    burst: u64,
}

impl Budget {
    fn policy(&self) -> Policy {
        let rule = RuleDraft {
            burst: Some(self.burst),
            ..RuleDraft::new(Algorithm::TokenBucket, self.rate, Duration::from_secs(1))
        };
        Policy::new(&PolicyDraft { rules: &[rule], ..PolicyDraft::default() }).unwrap()
    }

    /// The most that may be granted within a time that begins with a full bucket.
    fn within(&self, nanos: u64) -> u64 {
        self.burst + (u128::from(self.rate) * u128::from(nanos) / u128::from(SECOND)) as u64
    }

    /// Checks every window between two requests. A call that was granted before a window may arrive in it, but each
    /// program has only one call under way.
    fn is_kept(&self, seen: &[Seen], programs: usize) {
        for (i, first) in seen.iter().enumerate() {
            for (j, last) in seen.iter().enumerate().skip(i) {
                let count = (j - i + 1) as u64;
                let most = self.within(last.at - first.at) + programs as u64;
                assert!(count <= most, "{count} calls in {} ns, {most} at most", last.at - first.at);
            }
        }
    }
}

const PROGRAMS: Budget = Budget { rate: 100, burst: 5 };
/// The budget of the shells: each call starts three processes, which takes time on a busy machine.
const SHELLS: Budget = Budget { rate: 10, burst: 5 };

type Run = fn(&Path, &Server, usize, u64);

/// Programs that use the library.
fn library(directory: &Path, server: &Server, programs: usize, seconds: u64) {
    let mut clients: Vec<_> = (0..programs).map(|_| start(directory, server)).collect();
    for (i, client) in clients.iter_mut().enumerate() {
        client.send(&format!("flood {} /{i}", seconds * 1000));
    }
    // They answer when they are done, which takes longer than actors are normally given.
    std::thread::sleep(Duration::from_secs(seconds));
    for client in &mut clients {
        assert!(client.receive().starts_with("called "));
    }
}

/// Shells that run `curl` through the tool, one call after the other.
fn shells(directory: &Path, server: &Server, programs: usize, seconds: u64) {
    let stop = directory.join("stop");
    let start = |i: usize| -> Child {
        let url = format!("http://127.0.0.1:{}/{i}", server.port());
        let script = r#"while [ ! -e "$1" ]; do "$2" run "$3" -- curl -s -o /dev/null "$4" || exit 1; done"#;
        Command::new("sh")
            .args(["-c", script, "sh"])
            .arg(&stop)
            .args([crate::cli::binary(), NAME, &url])
            .env("SHMLIMIT_DIR", directory)
            .env("SHMLIMIT_GROUP", format!("shell-{i}"))
            .stdin(Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut all: Vec<Child> = (0..programs).map(start).collect();
    std::thread::sleep(Duration::from_secs(seconds) + Duration::from_millis(500));
    std::fs::write(&stop, "").unwrap();
    for shell in &mut all {
        assert!(shell.wait().unwrap().success());
    }
}

/// Measures one run, in percent: how much of the budget was used, and how far the worst share is from the equal one.
fn measure(budget: &Budget, run: Run, programs: usize, seconds: u64) -> (f64, f64) {
    let server = Server::start();
    let (directory, limiter): (_, Limiter) = limiter(budget.policy());
    run(directory.path(), &server, programs, seconds);
    let seen = server.seen();
    budget.is_kept(&seen, programs);
    drop(limiter);
    let end = seen[0].at + (seconds * SECOND).saturating_sub(SECOND / 2);
    let counted: Vec<&Seen> = seen.iter().filter(|seen| seen.at <= end).collect();
    let used = counted.len() as f64 / budget.within(end - seen[0].at) as f64;
    let share = |i: usize| counted.iter().filter(|seen| seen.path == format!("/{i}")).count() as f64;
    assert!((0..programs).all(|i| share(i) > 0.0), "every program has its turn");
    let equal = counted.len() as f64 / programs as f64;
    let worst = (0..programs).map(|i| (share(i) / equal - 1.0).abs()).fold(0.0, f64::max);
    ((used - 1.0) * 100.0, worst * 100.0)
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn converges(what: &str, budget: &Budget, run: Run, programs: usize) {
    let (seconds, repeats) =
        (setting("SHMLIMIT_TWO_CLIS_SECONDS", 2), setting("SHMLIMIT_TWO_CLIS_REPEATS", 1));
    let runs = (0..repeats).map(|_| measure(budget, run, programs, seconds));
    let (used, worst): (Vec<f64>, Vec<f64>) = runs.unzip();
    let (used, worst) = (middle(used), middle(worst));
    println!(
        "two-clis: {programs} {what}, {} calls/s, {seconds} s, {repeats} times: {used:+.2} % of the budget, worst share {worst:.2} % from equal",
        budget.rate
    );
    if setting("SHMLIMIT_TWO_CLIS_JUDGE", 0) == 1 {
        // A call is the smallest step of these figures.
        let call = 100.0 / (budget.rate * seconds) as f64;
        assert!(used.abs() <= 1.0 + call, "{used:+.2} % off the budget");
        assert!(worst <= 2.0 + call * programs as f64, "a share is {worst:.2} % off");
    }
}

#[test]
fn r123_two_programs_keep_to_one_budget() {
    converges("programs", &PROGRAMS, library, 2);
}

#[test]
fn r123_four_programs_keep_to_one_budget() {
    converges("programs", &PROGRAMS, library, 4);
}

#[test]
fn r123_two_shells_keep_to_one_budget() {
    converges("shells", &SHELLS, shells, 2);
}

#[test]
fn r123_four_shells_keep_to_one_budget() {
    converges("shells", &SHELLS, shells, 4);
}
