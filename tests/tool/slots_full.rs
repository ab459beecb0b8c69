//! The tool on a limiter whose common slots are all taken (R137).

use crate::cli::Home;
use shmlimit::Limiter;
use shmlimit_segment::layout;

#[test]
fn r137_every_verb_of_observers_and_operators_works_while_all_common_slots_are_taken() {
    let home = Home::with(&["tmdb"]);
    let open = || Limiter::builder("tmdb").directory(home.path()).open_existing();
    let handles: Vec<Limiter> = (0..layout::COMMON_SLOTS).map(|_| open().unwrap()).collect();
    let refused = home.tool(&["acquire", "tmdb", "--now"]);
    assert!(refused.code != 0 && refused.err.contains("504"), "{}", refused.err);
    for arguments in [
        &["status", "tmdb"][..],
        &["status", "--all"],
        &["status", "tmdb", "--toml"],
        &["metrics"],
        &["metrics", "--json"],
        &["doctor"],
        &["set", "tmdb", "rules.0.limit", "20"],
        &["force", "tmdb", "throttle"],
        &["force", "tmdb", "clear-gate"],
        &["pause", "tmdb", "--for", "1h"],
        &["resume", "tmdb"],
        &["record", "tmdb", "--status", "200"],
        &["init", "tmdb", "--rate", "30/s", "--burst", "30", "--update"],
    ] {
        let answer = home.tool(arguments);
        assert_eq!(answer.code, 0, "{arguments:?}: {}{}", answer.out, answer.err);
    }
    assert_eq!(home.status("tmdb")["participants"].as_array().unwrap().len(), layout::COMMON_SLOTS);
    assert!(home.tool(&["rm", "tmdb"]).err.contains("in use"), "{}", home.tool(&["rm", "tmdb"]).err);
    home.tool(&["init", "tmdb", "--rate", "40/s", "--replace"]).succeeds();
    home.tool(&["rm", "tmdb", "--force"]).succeeds();
    drop(handles);
}
