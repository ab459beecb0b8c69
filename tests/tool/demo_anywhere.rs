//! `shmlimit demo`, as far as it is the same on every platform.

use crate::cli::Home;
use serde_json::Value;

/// Also the first of them, whose connection those that are started after it may inherit.
#[test]
fn every_program_calls_in_both_halves_and_with_shmlimit_the_promise_holds() {
    let answer = Home::new().tool(&["demo", "--json", "--seconds", "4"]);
    let object: Value = serde_json::from_str(answer.succeeds()).unwrap();
    for half in ["without", "with"] {
        let programs = object[half]["programs"].as_array().unwrap();
        assert_eq!(programs.len(), 4);
        assert!(programs.iter().all(|one| one["calls"].as_u64().unwrap() > 0), "{half}: {object}");
    }
    assert_eq!((&object["held"], &object["with"]["total"]["throttled"]), (&true.into(), &0.into()));
}
