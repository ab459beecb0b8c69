//! Waiting calls: order, fairness, deadlines, wake-ups, futures, and forks while calls wait.

mod async_calls;
mod deadlines;
mod fairness;
#[cfg(target_os = "linux")]
mod fork_waiting;
mod machine;
mod oracle;
mod owned_grant;
mod pair;
mod queue_oracle;
mod test_clock;
#[path = "../util/mod.rs"]
mod util;
mod waiting_by_steps;
mod waiting_edge_cases;
mod wakeups;
