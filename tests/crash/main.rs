//! Processes that are killed or stopped at any moment, and segments with damaged bytes: every limit holds, and every call
//! ends.

#[cfg(target_os = "linux")]
mod chaos;
mod corrupt_every_byte;
mod corrupt_queue;
mod corruption;
mod health_lasts;
mod invalid_lock_words;
#[cfg(target_os = "linux")]
mod kill_algorithms;
#[cfg(target_os = "linux")]
mod kill_every_instruction;
#[cfg(target_os = "linux")]
mod kill_for_real;
#[cfg(target_os = "linux")]
mod kill_health;
#[cfg(target_os = "linux")]
mod kill_queue;
#[cfg(target_os = "linux")]
mod kill_storm;
#[cfg(target_os = "linux")]
mod kill_waiters;
#[path = "../util/mod.rs"]
mod util;
