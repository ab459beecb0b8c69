//! A mistyped word is answered with the word that was probably meant; quantities are read as people write them.

use crate::cli::Home;
use std::fmt::Write;

#[test]
fn a_typo_is_answered_with_the_nearest_word() {
    let home = Home::with(&["api", "--rate", "35/s", "--concurrency", "4"]);
    home.tool(&["init", "tmdb"]).succeeds();
    let mut table = String::new();
    for typed in [
        &["statsu"][..],
        &["acquire", "--tiemout", "3s", "api"],
        &["acquire", "apj"],
        &["acquire", "tmbd"],
        &["status", "githbu"],
        &["status", "tvdb"],
        &["doctor", "apii"],
        &["rm", "apii"],
        &["rm", "github"],
        &["man", "rn"],
        &["completions", "bsh"],
        &["presets", "tmbd"],
        &["set", "tmdb", "concurency", "4"],
        &["set", "tmdb", "breaker.p_throtle", "0.3"],
        &["set", "tmdb", "concurrency", "four"],
        &["force", "tmdb", "Cahce_only"],
        &["acquire", "api", "--priority", "usr"],
        &["acquire", "api", "--cost", "request=1"],
        &["acquire", "api", "--cost", "ten"],
        &["acquire", "api", "--timeout", "soon"],
        &["init", "x", "--rate", "35"],
        &["init", "x", "--rate", "5/fortnight"],
        &["init", "x", "--rate", "5/s", "--algorithm", "gcar"],
        &["init", "x", "--rate", "5/s", "--fairness", "fiof"],
        &["init", "x", "--rate", "5/s", "--burst", "2x"],
        &["record", "tmdb", "--status", "42"],
    ] {
        let answer = home.tool(typed);
        assert_eq!(answer.code, 2, "{typed:?}: {}{}", answer.out, answer.err);
        writeln!(table, "$ shmlimit {}", typed.join(" ")).unwrap();
        let said = answer.err.lines().filter(|line| {
            !line.is_empty() && !line.starts_with("Usage:") && !line.starts_with("For more information")
        });
        said.for_each(|line| writeln!(table, "{line}").unwrap());
    }
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(&crate::texts::regex_of(home.path().to_str().unwrap()), "DIR");
    settings.bind(|| insta::assert_snapshot!("typos", table));
}

#[test]
fn quantities_are_read_as_people_write_them() {
    let home = Home::new();
    for (rate, limit, seconds) in [
        ("35/s", 35, 1_u64),
        ("1000/day", 1000, 86_400),
        ("35 per second", 35, 1),
        ("40/10s", 40, 10),
        ("10k/hour", 10_000, 3600),
        ("1_000/min", 1000, 60),
    ] {
        home.tool(&["init", "api", "--rate", rate, "--replace"]).succeeds();
        let rule = &home.status("api")["rules"][0];
        assert_eq!(
            (&rule["limit"], &rule["period_ns"]),
            (&limit.into(), &(seconds * 1_000_000_000).into()),
            "{rate}"
        );
    }
    home.tool(&["init", "tmdb"]).succeeds();
    for (time, shown) in
        [("15m", "15m"), ("1h30m", "90m"), ("1.5s", "1500ms"), ("500ms", "500ms"), ("2 hours", "2h")]
    {
        let said = home.tool(&["set", "tmdb", "breaker.auto_recover", time]).succeeds().to_owned();
        assert!(said.contains(&format!("breaker.auto_recover = {shown} ")), "{time}: {said}");
    }
    // The same forms work where a time, a size or a number is an option or a value.
    home.tool(&["acquire", "api", "--timeout", "1h30m", "--cost", "1"]).succeeds();
    home.tool(&["init", "api", "--rate", "1k/s", "--burst", "2k", "--replace"]).succeeds();
    assert_eq!(home.status("api")["rules"][0]["capacity"], 2000);
    home.tool(&["set", "api", "rules.0.burst", "1_500"]).succeeds();
    home.tool(&["acquire", "api", "--cost", "1.5k"]).succeeds();
    let status = home.status("api");
    assert!(status["rules"][0]["remaining"].as_u64().unwrap() < 1500, "{status}");
}
