//! A limiter's file is deleted by hand while programs use it, and a newcomer creates the limiter again.

use crate::cli::queue;
use crate::cli::{Answer, Home};

/// The answer to a newcomer that creates the limiter again while another, idle program has the deleted file open.
fn newcomer(home: &Home, name: &str, arguments: &[&str]) -> Answer {
    let idle = queue::open(home, name);
    home.delete(name);
    let answer = home.tool(arguments);
    drop(idle);
    answer
}

const WHY: [&str; 3] = ["starts used up", "was deleted while programs use it", "shmlimit init "];

fn says_why(answer: &Answer, remedy: &str) {
    for part in WHY.iter().chain([&remedy]) {
        assert!(answer.err.contains(part), "{part:?} is not in: {}", answer.err);
    }
}

#[test]
fn a_limiter_that_starts_used_up_says_so_and_is_not_called_damaged() {
    for flags in [&["--rate", "1000/day"][..], &["--rate", "1000/day", "--burst", "9"]] {
        let home = Home::with(&[&["dd"], flags].concat());
        let made = newcomer(&home, "dd", &[&["init", "dd"], flags].concat());
        assert!(made.succeeds().starts_with("dd: created in"), "{}", made.out);
        says_why(&made, "shmlimit init dd --replace");
        let status = home.status("dd");
        assert_eq!(
            (&status["rules"][0]["remaining"], &status["resets"]),
            (&0.into(), &0.into()),
            "{flags:?}"
        );
        assert!(!home.tool(&["status", "dd"]).out.contains("damage"));
        assert!(!home.tool(&["doctor"]).out.contains("damage"));
        home.tool(&["acquire", "dd", "--now"]).fails(75, &["needs 1 request, 0 left"]);
        let afresh = home.tool(&["init", "dd", "--replace"]);
        assert!(!afresh.err.contains("used up"), "{}", afresh.err);
        home.tool(&["acquire", "dd", "--now"]).succeeds();
    }
}

#[test]
fn a_call_that_creates_a_used_up_limiter_says_so() {
    for arguments in [&["acquire", "github", "--now"][..], &["run", "github", "--timeout", "0", "--", "true"]]
    {
        let home = Home::with(&["github"]);
        let refused = newcomer(&home, "github", arguments);
        assert_eq!(refused.code, 75, "{}", refused.err);
        says_why(&refused, "shmlimit init github --replace");
        let again = home.tool(arguments);
        assert!(!again.err.contains("used up"), "only the process that creates it says so: {}", again.err);
    }
}
