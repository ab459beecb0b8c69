//! One budget, one circuit breaker and one queue for every program on the machine that calls the same API.
#[doc(hidden)]
pub mod kernel;
#[allow(dead_code, unused_imports)]
mod sys;
