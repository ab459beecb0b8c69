//! `examples/c/raw_status.c`, which knows a segment only from the header, prints the same as `shmlimit status
//! --json`.

// These tests use this machine's compiler. scripts/platforms/windows-c compiles and runs the same programs for
// Windows.
#![cfg(unix)]

mod raw;

use raw::{Home, Raw, programs};
use serde_json::{Value, json};
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Stdio};

/// Several rules, units and algorithms, a breaker, and a name of the maximum length.
const FULL: &str = r#"
provider = "a-provider-of-thirty-two-letters"
concurrency = 3
concurrency_background = 2
background_share = 0.1
[[rules]]
name = "rps"
algorithm = "gcra"
limit = 1000
period = "1s"
burst = 50
reserve = 5
[[rules]]
name = "day"
algorithm = "fixed_window"
limit = 100000
period = "1d"
[[rules]]
name = "tpm"
algorithm = "sliding_counter"
unit = "tokens"
limit = 90000
period = "1m"
[[rules]]
name = "log"
algorithm = "sliding_log"
limit = 500
period = "10s"
[[rules]]
name = "leak"
algorithm = "leaky_bucket"
limit = 7
period = "1ms"
burst = 9
[breaker]
kind = "fsm"
"#;

const CONSECUTIVE: &str = r#"
[[rules]]
algorithm = "token_bucket"
limit = 10
period = "1s"
[breaker]
kind = "consecutive"
failure_threshold = 2
"#;

/// Compares every value that both print. Only the raw file shows `dead` participants: the tool lists the live ones.
#[track_caller]
fn agree(raw: &Raw, status: &Value) {
    let number = |key: &str| raw.number(key);
    assert_eq!(raw.text("name"), status["name"]);
    assert_eq!(raw.text("provider"), status["provider"]);
    assert_eq!(number("layout_version"), u64::from(shmlimit_ffi::SHMLIMIT_LAYOUT_VERSION));
    // The policy has 0 where JSON has null.
    assert_eq!(number("concurrency"), status["concurrency"].as_u64().unwrap_or(0));
    for key in ["in_flight", "in_flight_background", "resets", "consec429", "failures"] {
        assert_eq!(number(key), status[key], "{key}");
    }
    assert_eq!(raw.text("state"), status["state"]);
    for class in ["ok", "429", "5xx", "net", "ignored"] {
        assert_eq!(number(class), status["outcomes"][class], "{class}");
    }
    for priority in ["background", "user", "webhook"] {
        let waiting =
            status["queue"].as_array().unwrap().iter().filter(|one| one["priority"] == priority).count();
        assert_eq!(number(&format!("waiting_{priority}")), waiting as u64, "{priority}");
    }
    let rules: Vec<Value> = raw
        .all("rule")
        .map(|rule| {
            let [name, unit, algorithm, numbers @ ..] = &rule[..] else { panic!("{rule:?}") };
            let [limit, period, capacity, reserve] = raw::numbers(numbers);
            json!([name, unit, algorithm, limit, period, capacity, reserve])
        })
        .collect();
    let wanted = status["rules"].as_array().unwrap().iter().map(|rule| {
        let keys = ["name", "unit", "algorithm", "limit", "period_ns", "capacity", "reserve"];
        Value::from(keys.map(|key| rule[key].clone()).to_vec())
    });
    assert_eq!(rules, wanted.collect::<Vec<_>>());
    let mut living = raw.participants(true);
    let wanted = status["participants"].as_array().unwrap().iter().map(|one| {
        let keys = ["pid", "held", "granted", "refused", "program"];
        Value::from(keys.map(|key| one[key].clone()).to_vec())
    });
    let mut wanted: Vec<Value> = wanted.collect();
    for list in [&mut living, &mut wanted] {
        list.sort_by_key(|one| one[0].as_u64());
    }
    assert_eq!(living, wanted);
}

/// The programs of both compilers agree with the tool and with each other.
#[track_caller]
fn all_agree(home: &Home, name: &str) -> Raw {
    let before = home.status(name);
    let looks: Vec<Raw> = programs().iter().map(|program| home.raw(program, name).unwrap()).collect();
    let after = home.status(name);
    for raw in &looks {
        agree(raw, &before);
        let [first, last] =
            [&before, &after].map(|status| status["gate"]["opens_in_ns"].as_u64().unwrap_or(0));
        let gate = raw.number("gate_ns");
        assert!((last..=first).contains(&gate), "{last} {gate} {first}");
    }
    looks.into_iter().next().unwrap()
}

#[test]
fn a_fresh_limiter_of_any_policy_reads_the_same() {
    let home = Home::new();
    home.init("full", FULL);
    home.init("consecutive", CONSECUTIVE);
    home.init("bare", "concurrency = 1\n");
    for preset in ["tmdb", "github", "binance"] {
        home.tool(&["init", preset]);
    }
    let looks = home.names().into_iter().map(|name| (all_agree(&home, &name), name));
    let rules: Vec<(String, usize)> = looks.map(|(raw, name)| (name, raw.all("rule").count())).collect();
    assert_eq!(rules.len(), 6);
    assert!(rules.contains(&("full".into(), 5)) && rules.contains(&("bare".into(), 0)), "{rules:?}");
}

#[test]
fn participants_waiters_outcomes_and_the_gate_read_the_same() {
    let home = Home::new();
    home.init("full", FULL);
    let holders = ["background", "user", "webhook"].map(|who| home.hold("full", who));
    let waiters = [("background", 1), ("background", 2), ("user", 3)].map(|(who, so_many)| {
        let child = home.start(&["run", "full", "--priority", who, "--cost", "tokens=900", "--", "true"]);
        home.wait_until("full", |status| status["queue"].as_array().unwrap().len() == so_many);
        child
    });
    let raw = all_agree(&home, "full");
    assert_eq!((raw.number("in_flight"), raw.number("in_flight_background")), (3, 1));
    assert_eq!((raw.number("waiting_background"), raw.number("waiting_user")), (2, 1));
    assert_eq!(raw.participants(true).len(), 6);

    for (option, value) in [
        ("--status", "200"),
        ("--status", "200"),
        ("--status", "503"),
        ("--status", "404"),
        ("--error", "dns"),
    ] {
        home.tool(&["record", "full", "-q", option, value]);
    }
    home.tool(&["record", "full", "-q", "--status", "429", "--retry-after", "3600"]);
    let raw = all_agree(&home, "full");
    let counts = ["ok", "429", "5xx", "net", "ignored", "consec429"].map(|key| raw.number(key));
    assert_eq!(counts, [2, 1, 1, 1, 1, 1]);
    assert!(raw.number("gate_ns") > 3_500_000_000_000);
    // The gate stays closed for an hour, and the waiting processes would wait as long.
    waiters.into_iter().for_each(raw::kill_group);
    holders.into_iter().for_each(raw::end);
}

#[test]
fn states_read_the_same_under_both_breakers() {
    let home = Home::new();
    home.init("five", FULL);
    home.init("three", CONSECUTIVE);
    assert_eq!(all_agree(&home, "three").text("state"), "closed");
    for _ in 0..3 {
        home.tool(&["record", "five", "-q", "--status", "429"]);
        home.tool(&["record", "three", "-q", "--status", "500"]);
    }
    assert_eq!(all_agree(&home, "five").text("state"), "throttle");
    assert_eq!(all_agree(&home, "three").text("state"), "open");
    for state in ["half_open", "cache_only", "normal"] {
        home.tool(&["force", "five", state]);
        assert_eq!(all_agree(&home, "five").text("state"), state);
    }
    home.tool(&["force", "five", "offline"]);
    assert_eq!(all_agree(&home, "five").text("state"), "sleep");
}

#[test]
fn a_killed_participant_is_shown_dead_and_the_others_alive() {
    let home = Home::new();
    home.init("full", FULL);
    let (lives, dies) = (home.hold("full", "user"), home.hold("full", "user"));
    let killed = u64::from(dies.id());
    raw::kill_group(dies);
    for program in programs() {
        let raw = home.raw(program, "full").unwrap();
        let pid = |list: Vec<Value>| list.iter().map(|one| one[0].as_u64().unwrap()).collect::<Vec<_>>();
        assert_eq!(pid(raw.participants(true)), [u64::from(lives.id())]);
        assert_eq!(pid(raw.participants(false)), [killed]);
        assert_eq!(raw.number("in_flight"), 2, "its permit is still out");
    }
    agree(&home.raw(&programs()[0], "full").unwrap(), &home.status("full"));
    raw::end(lives);
}

/// A role of this test program: changes the limiter as fast as it can until its standard input ends.
#[test]
fn hammer() {
    let Some(directory) = std::env::var_os("RAW_STATUS_HAMMER") else { return };
    let limiter = shmlimit::Limiter::builder("full").directory(directory).open_existing().unwrap();
    let user = shmlimit::Request::new().priority(shmlimit::Priority::User);
    std::thread::spawn(|| {
        let _ = std::io::read_to_string(std::io::stdin());
        std::process::exit(0);
    });
    loop {
        let both = [&user, &shmlimit::Request::new()].map(|request| limiter.try_acquire(request));
        let _ = both.map(|grant| grant.map(|grant| grant.record(&shmlimit::Outcome::http(200, &[]))));
    }
}

#[test]
fn a_copy_is_one_committed_state_while_others_write_at_full_speed() {
    let home = Home::new();
    home.init("full", "concurrency = 3\nconcurrency_background = 1\n");
    let mut hammers: Vec<Child> = (0..2)
        .map(|_| {
            let mut again = Command::new(std::env::current_exe().unwrap());
            again.args(["--exact", "hammer"]).env("RAW_STATUS_HAMMER", home.path());
            again.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap()
        })
        .collect();
    home.wait_until("full", |status| {
        let all = status["participants"].as_array().unwrap();
        all.len() == 2 && all.iter().all(|one| one["granted"].as_u64() > Some(1000))
    });
    let (mut calls, mut looks_with_news) = (0, 0);
    for _ in 0..20 {
        for program in programs() {
            let raw = home.raw(program, "full").unwrap();
            let [out, background, ok] =
                ["in_flight", "in_flight_background", "ok"].map(|key| raw.number(key));
            assert!(out <= 3 && background <= 1, "{out} out, {background} of them for the background");
            let held = raw.participants(true).iter().map(|one| one[1].as_u64().unwrap()).sum::<u64>();
            assert_eq!(held, out, "what is out is what the participants hold");
            assert!(ok >= calls, "counts only grow");
            looks_with_news += u32::from(ok > calls);
            calls = ok;
        }
    }
    assert!(looks_with_news > 1, "nobody wrote meanwhile");
    for hammer in &mut hammers {
        drop(hammer.stdin.take());
        hammer.wait().unwrap();
    }
    all_agree(&home, "full");
}

/// Changes the bytes at `at`, and returns the example's error message for the file.
fn refusal(home: &Home, at: u64, bytes: &[u8]) -> String {
    // The tool does not replace a file that is not a segment. So the file from the last change is deleted first.
    let _ = std::fs::remove_file(home.file("full"));
    home.tool(&["init", "full", "--rate", "10/s", "--burst", "10"]);
    let file = std::fs::OpenOptions::new().write(true).open(home.file("full")).unwrap();
    file.write_all_at(bytes, at).unwrap();
    let said: Vec<String> = programs().iter().map(|program| home.raw(program, "full").unwrap_err()).collect();
    assert!(said.windows(2).all(|pair| pair[0] == pair[1]), "{said:?}");
    said[0].clone()
}

#[test]
fn a_foreign_or_damaged_file_is_refused_and_left_unchanged() {
    let home = Home::new();
    let not_ours = "not a segment of this machine";
    assert!(refusal(&home, 0, b"NOTLIMIT").contains(not_ours));
    assert!(refusal(&home, 8, &0x0d0c_0b0a_u32.to_ne_bytes()).contains(not_ours), "the other byte order");
    assert!(refusal(&home, 12, &99_u32.to_ne_bytes()).contains("another layout"), "another version");
    assert!(refusal(&home, 16, &[1; 8]).contains("another layout"), "another hash");
    assert!(refusal(&home, 32, &[1; 8]).contains("header is damaged"), "when it was made");
    assert!(refusal(&home, 0x480 + 36 * 8, b"x").contains("configuration is damaged"));
    assert!(
        refusal(&home, 0x88, &1_u64.to_ne_bytes()).contains("stopped or dead"),
        "a transaction without end"
    );

    home.tool(&["init", "full", "--replace", "--rate", "10/s", "--burst", "10"]);
    let whole = std::fs::read(home.file("full")).unwrap();
    for (wrong, why) in [
        (Vec::new(), "too short"),
        (whole[..whole.len() - 1].to_vec(), "too short"),
        (vec![0; whole.len()], not_ours),
        ([&whole[..], &[0; 4096]].concat(), "header is damaged"),
    ] {
        std::fs::write(home.file("wrong"), &wrong).unwrap();
        for program in programs() {
            let said = home.raw(program, "wrong").unwrap_err();
            assert!(said.contains(why) && said.contains("wrong.shm"), "{said}");
        }
        assert!(std::fs::read(home.file("wrong")).unwrap() == wrong, "a reader never writes");
    }
    assert!(home.raw(&programs()[0], "missing").unwrap_err().contains("No such file"));
    assert_eq!(Command::new(&programs()[0]).stderr(Stdio::null()).status().unwrap().code(), Some(2), "usage");
}
