//! The health half of the kernel against a slow oracle written from the requirements. It covers outcomes, breaker,
//! gate, backoff, pace, and their effects on rule 0 and on the permits.

mod bucket;
mod damage;
mod limiter;
mod machine;
mod pace;
mod pair;
mod policy;
mod strategy;

use pair::Pair;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, max_shrink_iters: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// R1 to R8, R42 to R93, R106 to R110, R128 to R130, R133, R139 to R142, R145: every answer, at every step.
    #[test]
    fn the_kernel_and_the_requirements_agree(
        numbers in strategy::numbers(),
        ops in prop::collection::vec((strategy::step(), strategy::op()), 1..120),
    ) {
        let mut pair = Pair::new(numbers);
        for (i, (step, op)) in ops.iter().enumerate() {
            pair.run(step, op).map_err(|error| TestCaseError::fail(format!("step {i}, {op:?}: {error}")))?;
        }
    }
}
