//! What every benchmark needs: a clock, rounds, medians, limiters in memory, and the designs we compare with.

#![allow(dead_code, reason = "each benchmark uses its own part")]

pub mod baselines;

use nix::libc;
use shmlimit::kernel::policy::{Breaker, BreakerKind};
use shmlimit::{Algorithm, Limiter, Nanos, Policy, PolicyDraft, RuleDraft};
use std::path::Path;
use std::process::ExitCode;

/// One precise clock read by vDSO, as the limiter makes it: the unit of every ratio.
#[inline(always)]
pub fn clock() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a live, writable timespec, and the call keeps no pointer to it.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut time) };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// Nanoseconds per operation over `count` of them, the first few untimed so that caches are warm again after the
/// other subjects of the round.
#[inline(always)]
pub fn per_operation(count: u32, mut operation: impl FnMut()) -> f64 {
    for _ in 0..count / 8 {
        operation();
    }
    let start = clock();
    for _ in 0..count {
        operation();
    }
    (clock() - start) as f64 / f64::from(count)
}

/// The middle value, and 0 of nothing.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// The value below which that part of the values lies.
pub fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1) as f64;
    sorted.get((last * part).round() as usize).copied().unwrap_or(0.0)
}

/// A private directory in memory if there is one, so that no disk is measured.
pub fn directory() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    tempfile::Builder::new()
        .prefix("shmlimit-bench-")
        .tempdir_in(place)
        .expect("a directory for the benchmark")
}

/// The rules the benchmarks need.
#[derive(Clone, Copy)]
pub enum Budget {
    /// 35 a second and a burst that outlasts any benchmark: every call is granted.
    Plenty,
    /// One an hour.
    Scarce,
}

impl Budget {
    fn rule(self) -> RuleDraft<'static> {
        match self {
            Budget::Plenty => RuleDraft {
                burst: Some(1 << 32),
                ..RuleDraft::new(Algorithm::TokenBucket, 35, Nanos::from_secs(1))
            },
            Budget::Scarce => RuleDraft::new(Algorithm::Gcra, 1, Nanos::from_secs(3600)),
        }
    }

    /// A policy of `count` such rules.
    pub fn policy(self, count: usize, concurrency: Option<u64>) -> Policy {
        let rules = vec![self.rule(); count];
        let draft = PolicyDraft { concurrency, rules: &rules, ..PolicyDraft::default() };
        Policy::new(&draft).expect("a valid policy")
    }

    /// A policy of one such rule with everything on: the five-state breaker, permits, a reserve, a background bound.
    pub fn guarded(self) -> Policy {
        let rule = RuleDraft { algorithm: Algorithm::TokenBucket, reserve: 1, ..self.rule() };
        let draft = PolicyDraft {
            concurrency: Some(4096),
            concurrency_background: Some(4096),
            rules: &[rule],
            breaker: Breaker::of(BreakerKind::Fsm),
            ..PolicyDraft::default()
        };
        Policy::new(&draft).expect("a valid policy")
    }
}

/// Opens a limiter of that policy.
pub fn limiter(directory: &Path, name: &str, policy: Policy) -> Limiter {
    Limiter::builder(name).directory(directory).policy(policy).open().expect("a limiter")
}

/// What the user asked of a benchmark. `cargo bench` adds `--bench`, which means nothing here.
#[derive(Clone, Default)]
pub struct Options {
    /// One JSON object instead of a table.
    pub json: bool,
    /// Exit code 1 if a required target is missed.
    pub check: bool,
    /// Only see whether it runs: a few short rounds, and no target is judged.
    pub smoke: bool,
    /// Everything else.
    pub rest: Vec<String>,
}

impl Options {
    /// Reads the command line.
    pub fn read() -> Options {
        let mut options = Options::default();
        for argument in std::env::args().skip(1) {
            match argument.as_str() {
                "--json" => options.json = true,
                "--check" => options.check = true,
                "--smoke" => options.smoke = true,
                "--bench" => {}
                other => options.rest.push(other.to_owned()),
            }
        }
        options
    }

    /// So many rounds, or a few.
    pub fn rounds(&self, usual: usize) -> usize {
        if self.smoke { usual.min(3) } else { usual }
    }

    /// How the program ends.
    pub fn verdict(&self, met: bool) -> ExitCode {
        if self.check && !self.smoke && !met { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}

/// A bound on a figure, and what the figure was.
pub struct Target {
    /// What is bounded.
    pub name: &'static str,
    /// The figure.
    pub measured: f64,
    /// The bound.
    pub bound: Bound,
    /// A goal is printed, a requirement is checked.
    pub required: bool,
}

/// Which side of a number is the good one.
#[derive(Clone, Copy)]
pub enum Bound {
    /// The figure must be this or less.
    AtMost(f64),
    /// The figure must be this or more.
    AtLeast(f64),
}

impl Target {
    /// Whether the figure keeps the bound.
    pub fn met(&self) -> bool {
        self.met_within(1.0)
    }

    /// Whether it keeps the bound when the bound is widened by a factor.
    fn met_within(&self, slack: f64) -> bool {
        match self.bound {
            Bound::AtMost(most) => self.measured <= most * slack,
            Bound::AtLeast(least) => self.measured >= least / slack,
        }
    }
}

/// What a machine with other work on it may add to a median.
const NOISE: f64 = 1.1;

/// Prints the targets as lines of a table; says whether every required one is met but for noise.
pub fn report_targets(targets: &[Target]) -> bool {
    println!("\n{:<44} {:>9}  {:>9}", "target", "measured", "bound");
    for target in targets {
        let (sign, bound) = match target.bound {
            Bound::AtMost(most) => ("<=", most),
            Bound::AtLeast(least) => (">=", least),
        };
        let verdict = match (target.met(), target.required) {
            (true, _) => "ok",
            (false, true) => "MISSED",
            (false, false) => "goal not reached",
        };
        println!("{:<44} {:>9.2}  {sign} {bound:>6.2}  {verdict}", target.name, target.measured);
    }
    all_met(targets)
}

/// Whether every required target is met but for noise.
pub fn all_met(targets: &[Target]) -> bool {
    targets.iter().all(|target| !target.required || target.met_within(NOISE))
}

/// The targets as JSON.
pub fn targets_as_json(targets: &[Target]) -> serde_json::Value {
    let one = |target: &Target| {
        let (kind, bound) = match target.bound {
            Bound::AtMost(most) => ("at_most", most),
            Bound::AtLeast(least) => ("at_least", least),
        };
        serde_json::json!({
            "name": target.name, "measured": target.measured, kind: bound,
            "required": target.required, "met": target.met(),
        })
    };
    targets.iter().map(one).collect()
}
