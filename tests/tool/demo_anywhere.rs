//! The parts of `shmlimit demo` that are the same on every platform.

use crate::cli::Home;
use serde_json::Value;

/// Includes the first program, whose connection the later ones may inherit.
#[test]
fn every_program_calls_in_both_halves_and_shmlimit_keeps_the_promise() {
    let answer = Home::new().tool(&["demo", "--json", "--seconds", "4"]);
    let object: Value = serde_json::from_str(answer.succeeds()).unwrap();
    for half in ["without", "with"] {
        let programs = object[half]["programs"].as_array().unwrap();
        assert_eq!(programs.len(), 4);
        assert!(programs.iter().all(|one| one["calls"].as_u64().unwrap() > 0), "{half}: {object}");
    }
    assert_eq!((&object["held"], &object["with"]["total"]["throttled"]), (&true.into(), &0.into()));
}
