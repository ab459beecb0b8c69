//! The decisions of the kernel: every rate algorithm, the breaker and the pacing, checked by requirement number and
//! against slow oracles.

mod algorithms;
mod algorithms_edge_cases;
mod algorithms_log;
mod algorithms_oracle;
mod health;
mod health_oracle;
mod kernel_agreement;
mod kernel_oracle;
mod rational;
mod record_agreement;
mod rule_oracle;
