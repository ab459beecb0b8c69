//! `--plot` draws a valid picture for any script.

use super::{Simulation, TMDB, times};

/// The SVG text that a script produces.
fn drawn(config: &str, script: &str) -> String {
    let simulation = Simulation::new(config);
    let path = simulation.path("p.svg");
    let output = simulation.run_with(&["--plot", path.to_str().unwrap()], script);
    assert_eq!(output.code, 0, "{}", output.err);
    std::fs::read_to_string(path).unwrap()
}

/// Checks that every start tag has an end tag; a missing one would break the whole picture.
fn is_well_formed(svg: &str) -> bool {
    let opened = ["svg", "text", "title"].map(|tag| svg.matches(&format!("<{tag}")).count());
    let closed = ["svg", "text", "title"].map(|tag| svg.matches(&format!("</{tag}>")).count());
    let shapes = ["<rect", "<line", "<path"].iter().map(|tag| svg.matches(tag).count()).sum::<usize>();
    opened == closed && svg.matches("/>").count() == shapes && !svg.contains("NaN") && !svg.contains("inf")
}

#[test]
fn any_script_gives_a_picture_of_bounded_size() {
    let one = "{\"op\":\"acquire\"}\n";
    let far =
        "{\"op\":\"acquire\",\"t\":1000000000000000000}\n{\"op\":\"acquire\",\"t\":18446744073709551615}\n";
    let many: String = (0..100_000_u64)
        .map(|i| {
            format!(
                "{{\"op\":\"{}\",\"t\":{}}}\n",
                if i % 2 == 0 { "acquire" } else { "release" },
                i * 77_777_777
            )
        })
        .collect();
    for config in [TMDB, "", "[breaker]\nkind = \"consecutive\"\n"] {
        for script in ["", one, far, &many] {
            let svg = drawn(config, script);
            assert!(svg.starts_with("<svg") && is_well_formed(&svg), "{}: {config}", script.len());
            assert!(svg.len() < 120_000, "{} bytes", svg.len());
        }
    }
}

#[test]
fn the_plot_shows_the_states_and_the_decisions() {
    let bad = "{\"op\":\"record\",\"status\":429}";
    let script =
        times(5, bad) + "{\"op\":\"acquire\",\"t\":1000000000}\n{\"op\":\"acquire\",\"t\":3000000000}\n";
    let svg = drawn(TMDB, &script);
    for text in [
        "1 granted, 1 refused, in 3s",
        ">half_open<",
        ">sleep<",
        ">granted<",
        "calls in flight",
        "rate in force",
    ] {
        assert!(svg.contains(text), "{text}");
    }
    assert!(!svg.contains(">cache_only<"), "a state that never occurred is not in the legend");
    assert!(!drawn("", &script).contains(">state<"), "no breaker, no states");
}
