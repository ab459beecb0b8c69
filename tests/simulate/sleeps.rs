//! The length of a Sleep and its reported end (R57).

use super::{SECOND, TMDB, simulate};
use serde_json::{Value, json};

const ACQUIRE: &str = r#"{"op":"acquire"}"#;

fn at(t: u64, line: &str) -> String {
    format!("{},\"t\":{t}}}\n", line.trim_end_matches('}'))
}

fn force(state: &str) -> String {
    format!("{{\"op\":\"force\",\"state\":\"{state}\"}}\n")
}

fn eta(line: &Value) -> u64 {
    line["eta_ns"].as_u64().unwrap()
}

#[test]
fn r57_the_eta_of_a_sleep_includes_a_gate_that_lasts_longer() {
    let long = r#"{"op":"record","status":503,"retry_after":"60"}"#;
    let script = at(0, long)
        + &at(SECOND, "{\"op\":\"force\",\"state\":\"sleep\"}")
        + &at(2 * SECOND, ACQUIRE)
        + &at(3 * SECOND, ACQUIRE);
    let lines = simulate(TMDB, &script);
    let left: Vec<_> = lines.iter().map(|line| eta(line) / SECOND).collect();
    assert_eq!(left, [0, 59, 58, 0]);
    // A refusal names the wait of the layer that it names (R4).
    assert_eq!((&lines[2]["reason"], &lines[2]["retry_after_ns"]), (&json!("sleep"), &json!(SECOND)));
    assert_eq!(
        (&lines[3]["reason"], &lines[3]["retry_after_ns"]),
        (&json!("retry_after"), &json!(57 * SECOND))
    );
    let offline = at(0, long) + &force("offline");
    assert_eq!(eta(&simulate(TMDB, &offline)[1]), 0, "the end is unknown");
}

#[test]
fn r57_cooldowns_of_any_size_grow_by_their_factor() {
    let config =
        format!("{TMDB}[breaker]\nsleep_min = \"1ns\"\nsleep_max = \"1h\"\ncooldown_factor = 1.25\n");
    let script: String = (0..30).map(|_| force("sleep")).collect();
    let left: Vec<u64> = simulate(&config, &script).iter().map(eta).collect();
    assert_eq!(left[..9], [1, 1, 1, 1, 2, 3, 3, 4, 5]);
    assert_eq!(left[29], 646, "1.25^29 = 646.2");
}
