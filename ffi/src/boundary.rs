//! The border between Rust and C: no panic crosses it.

use std::panic::{UnwindSafe, catch_unwind};

/// Runs `work`; if it panics, the caller gets `otherwise` instead of an unwinding stack or an abort.
///
/// The library is written not to panic. This is the net below it: a program in C has no way to catch one.
pub(crate) fn guard<R>(otherwise: R, work: impl FnOnce() -> R + UnwindSafe) -> R {
    match catch_unwind(work) {
        Ok(value) => value,
        Err(panic) => {
            // A payload may itself panic when it is dropped; one leaked box is the lesser evil.
            std::mem::forget(panic);
            otherwise
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct PanicsWhenDropped;

    impl Drop for PanicsWhenDropped {
        fn drop(&mut self) {
            panic!("in drop");
        }
    }

    #[test]
    fn a_value_passes_the_border_unchanged() {
        assert_eq!(guard(-1, || 7), 7);
    }

    #[test]
    fn a_panic_ends_at_the_border() {
        assert_eq!(guard(-1, || panic!("inside")), -1);
    }

    #[test]
    fn a_payload_that_panics_when_dropped_ends_there_too() {
        assert_eq!(guard(-1, || std::panic::panic_any(PanicsWhenDropped)), -1);
    }
}
