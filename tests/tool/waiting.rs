//! The queue as users see it: `status`, refusals, deadlines.

use crate::cli;
use crate::cli::commands::{NOTHING, SAYS_HELLO, run};
use crate::cli::queue::{Holder, fill, open, start_waiting, waiting};
use crate::cli::{Home, ONE};
use shmlimit::{Priority, Request};
use std::process::Child;

const YEAR: u64 = 365 * 86_400 * 1_000_000_000;

#[test]
fn r136_status_shows_who_waits_in_order_of_service() {
    let home = Home::with(&ONE);
    let holder = Holder::new(&home, "one");
    let long = [&["run", "one", "--timeout", "365d", "--"][..], &NOTHING].concat();
    let first = start_waiting(&home, "one", &long, &[]);
    let second = start_waiting(&home, "one", &["acquire", "one"], &[]);
    let urgent = start_waiting(&home, "one", &["acquire", "one", "--priority", "user", "--cost", "3"], &[]);
    let status = home.status("one");
    let expected: Vec<u32> = [&urgent, &first, &second].map(|child| child.id()).to_vec();
    assert_eq!(waiting(&status), expected);
    let line = &status["queue"][0];
    assert_eq!((&line["priority"], &line["program"]), (&"user".into(), &"shmlimit".into()));
    assert_eq!((&line["cost"], &line["gives_up_in_ns"]), (&serde_json::json!({"requests": 3}), &().into()));
    let line = &status["queue"][1];
    assert_eq!(line["priority"], "background");
    assert!((YEAR - 86_400_000_000_000..YEAR).contains(&line["gives_up_in_ns"].as_u64().unwrap()));
    let screen = home.tool(&["status", "one"]).out;
    assert!(screen.contains("waiting    3 (1 user, 2 background"), "{screen}");
    let lines: Vec<&str> = screen.lines().skip_while(|line| !line.contains("WAITING")).skip(1).collect();
    for (line, pid) in lines.iter().zip(&expected) {
        assert!(line.trim_start().starts_with(&pid.to_string()), "{screen}");
    }
    assert!(lines[0].ends_with("requests=3") && lines[0].contains("never"), "{screen}");
    holder.let_go();
    for mut child in [first, second, urgent] {
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
    assert!(!home.tool(&["status", "one"]).out.contains("waiting"), "no call waits any more");
}

#[test]
fn the_keys_of_a_waiting_call_are_stable_and_documented() {
    let home = Home::with(&["day", "--rate", "1/day", "--fairness", "fifo", "--background-share", "0.3"]);
    let (limiter, request) = (open(&home, "day"), Request::new());
    home.tool(&["acquire", "day"]).succeeds();
    let _waiters = fill(&limiter, &request, 1);
    let status = home.status("day");
    let keys: Vec<&str> = status["queue"][0].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        [
            "cost",
            "gives_up_in_ns",
            "group",
            "late",
            "looks_in_ns",
            "pid",
            "priority",
            "program",
            "waited_for_ns"
        ]
    );
    let document = include_str!("../../docs/status-json.md");
    for key in keys {
        assert!(document.contains(&format!("`{key}`")), "{key} is not documented");
    }
    assert_eq!((&status["fairness"], &status["background_share"]), (&"fifo".into(), &0.3.into()));
}

/// The screens of `status` for a queue of `count` calls.
fn screen_of(count: usize) -> (String, String) {
    let home = Home::with(&["day", "--rate", "1/day", "--burst", "1"]);
    let (limiter, request) = (open(&home, "day"), Request::new());
    let urgent = Request::new().priority(Priority::Webhook);
    home.tool(&["acquire", "day"]).succeeds();
    let _waiters = fill(&limiter, &request, count.saturating_sub(1));
    let _urgent = fill(&limiter, &urgent, count.min(1));
    assert_eq!(waiting(&home.status("day")).len(), count);
    (home.tool(&["status", "day"]).out, home.tool(&["status", "day", "--all"]).out)
}

#[test]
fn a_queue_of_any_length_is_readable() {
    let (none, _) = screen_of(0);
    assert!(!none.contains("waiting") && !none.contains("PRIORITY"), "{none}");
    let (one, _) = screen_of(1);
    assert!(one.contains("waiting       1 (1 webhook") && !one.contains("… "), "{one}");
    for count in [30, 1000] {
        let (some, all) = screen_of(count);
        assert!(some.lines().count() <= 24, "{some}");
        assert!(
            some.contains(&format!("waiting       {count} (1 webhook, {} background", count - 1)),
            "{some}"
        );
        let others = format!("… {} more: {} background ", count - 8, count - 8);
        assert!(some.contains(&others), "{some}");
        let first = some.lines().skip_while(|line| !line.contains("PRIORITY")).nth(1).unwrap();
        assert!(first.contains("webhook"), "{some}");
        assert!(all.lines().count() > count && !all.contains("more:"), "{all}");
        assert!(!all.contains('\x1b'), "colours are for terminals");
    }
}

#[test]
fn r137_a_call_beyond_the_length_of_the_queue_is_refused_with_the_limit() {
    let home = Home::with(&["day", "--rate", "1/day"]);
    let (limiter, request) = (open(&home, "day"), Request::new());
    home.tool(&["acquire", "day"]).succeeds();
    let waiters = fill(&limiter, &request, 1024);
    for verb in [vec!["acquire", "day"], run("day", SAYS_HELLO)] {
        home.tool(&verb).fails(75, &["day: refused", "1024 calls wait already", "try again in"]);
    }
    drop(waiters);
    assert_eq!(home.status("day")["queue"], serde_json::json!([]));
}

/// Repeats a command until the answer is right. On a busy machine a waiter may be late for a moment and is then
/// passed over, so a correct tool may need several tries. A tool that is never right fails.
fn eventually(answer: impl Fn() -> cli::Answer, right: impl Fn(&cli::Answer) -> bool) -> cli::Answer {
    let mut last = None;
    for _ in 0..20 {
        let answer = answer();
        if right(&answer) {
            return answer;
        }
        last = Some(answer.out + &answer.err);
    }
    panic!("not once in twenty tries; the last: {last:?}");
}

#[test]
fn r131_a_call_that_does_not_wait_is_refused_while_others_wait() {
    let home = Home::with(&["day", "--rate", "1000/day", "--burst", "100"]);
    home.tool(&["acquire", "day", "--cost", "50"]).succeeds();
    let mut waiter = start_waiting(&home, "day", &["acquire", "day", "--cost", "90"], &[]);
    let refused = eventually(|| home.tool(&["acquire", "day", "--now"]), |answer| answer.code == 75);
    refused.fails(75, &["day: refused: other calls wait before this one; try again in "]);
    // A call of higher priority than the waiting ones may pass.
    home.tool(&["acquire", "day", "--now", "--priority", "user"]).succeeds();
    waiter.kill().unwrap();
    waiter.wait().unwrap();
    // The exited process is passed over once its wake time has passed.
    while home.tool(&["acquire", "day", "--now"]).code == 75 {}
}

#[test]
fn r132_a_deadline_that_waiting_calls_make_impossible_is_refused_with_the_time_of_the_turn() {
    let home = Home::with(&["hour", "--rate", "1/h"]);
    home.tool(&["acquire", "hour"]).succeeds();
    let mut waiters: Vec<Child> = (0..3)
        .map(|_| start_waiting(&home, "hour", &["acquire", "hour", "--timeout", "365d"], &[]))
        .collect();
    // Alone, its turn would come in an hour; behind three calls it comes in four.
    let answer = eventually(
        || home.tool(&["acquire", "hour", "--timeout", "3h"]),
        |answer| {
            ["3h59m", "4h00m00s"].iter().any(|time| {
                let text = format!("needs 1 request, 0 left in rule sliding_log, and other calls wait before this one; try again in {time}");
                answer.err.contains(&text)
            })
        },
    );
    answer.fails(75, &["hour: refused"]);
    home.tool(&[&["run", "hour", "--timeout", "5s", "--"][..], &SAYS_HELLO].concat())
        .fails(75, &["try again in"]);
    for waiter in &mut waiters {
        waiter.kill().unwrap();
        waiter.wait().unwrap();
    }
}

#[test]
fn timeouts_of_zero_and_of_a_year_are_accepted() {
    let home = Home::with(&ONE);
    home.tool(&["acquire", "one", "--timeout", "0"]).succeeds();
    home.tool(&["acquire", "one", "--timeout", "365d"]).succeeds();
    home.tool(&["acquire", "one", "--timeout", "18446744073709551615ns"]).succeeds();
    let holder = Holder::new(&home, "one");
    home.tool(&["acquire", "one", "--timeout", "0"])
        .fails(75, &["1 call is in flight, and no more are allowed at a time", "when a call ends"]);
    let mut long = start_waiting(&home, "one", &["acquire", "one", "--timeout", "365d"], &[]);
    holder.let_go();
    assert_eq!(long.wait().unwrap().code(), Some(0));
}

#[test]
fn r6_a_peek_does_not_wait_behind_others() {
    let home = Home::with(&ONE);
    let holder = Holder::new(&home, "one");
    let mut waiter = start_waiting(&home, "one", &["acquire", "one"], &[]);
    home.tool(&["acquire", "one", "--cost", "0", "--timeout", "0"]).succeeds();
    home.tool(&["acquire", "one", "--cost", "0", "--now"]).succeeds();
    assert_eq!(waiting(&home.status("one")), [waiter.id()]);
    holder.let_go();
    assert_eq!(waiter.wait().unwrap().code(), Some(0));
}
