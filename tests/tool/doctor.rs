//! `shmlimit doctor` finds and repairs problems of the directory, the machine and the processes that use limiters.

use crate::cli::commands::{READY, run};
use crate::cli::queue;
use crate::cli::queue::{Holder, start_waiting, waiting};
use crate::cli::{Answer, Home, ROOT, binary};
use crate::texts::regex_of;
use serde_json::Value;
use std::fs;
use std::process::Command;

/// Runs the doctor without the environment of the tests.
pub fn doctor(home: &Home, arguments: &[&str], variables: &[(&str, &str)]) -> Answer {
    let output = Command::new(binary())
        .arg("doctor")
        .args(arguments)
        .env_clear()
        // Windows needs this variable to find its own libraries.
        .envs(std::env::var_os("SystemRoot").map(|path| ("SystemRoot", path)))
        .env("SHMLIMIT_DIR", home.path())
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    Answer {
        code: output.status.code().expect("ended by itself"),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn lines(answer: &Answer) -> Vec<Value> {
    answer.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The findings that report a problem.
pub fn complaints(home: &Home, arguments: &[&str]) -> Vec<Value> {
    let all = lines(&doctor(home, &[&["--json"], arguments].concat(), &[]));
    all.into_iter().filter(|line| line["level"] != "ok").collect()
}

/// Checks that there is one complaint, with this level and all these parts.
#[track_caller]
pub fn complains(home: &Home, level: &str, parts: &[&str]) -> Value {
    let found = complaints(home, &[]);
    let [one] = &found[..] else { panic!("not one complaint: {found:?}") };
    assert_eq!((&one["level"], &one["fixed"]), (&level.into(), &false.into()), "{one}");
    for part in parts {
        assert!(one.to_string().contains(part), "{part:?} is not in {one}");
    }
    one.clone()
}

/// Checks that `--fix` repairs the only problem, and that a second `--fix` finds none.
#[track_caller]
pub fn is_fixed(home: &Home, parts: &[&str]) {
    let fixed = complaints(home, &["--fix"]);
    let [one] = &fixed[..] else { panic!("not one repair: {fixed:?}") };
    assert_eq!((&one["fixed"], &one["advice"]), (&true.into(), &Value::Null), "{one}");
    for part in parts {
        assert!(one.to_string().contains(part), "{part:?} is not in {one}");
    }
    assert_eq!(complaints(home, &["--fix"]), Vec::<Value>::new(), "the second run finds nothing to fix");
}

#[test]
fn a_healthy_directory_is_reported_as_such_and_not_changed() {
    let home = Home::with(&["api", "--rate", "35/s"]);
    let before = home.contents();
    let answer = doctor(&home, &[], &[]);
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(&regex_of(home.path().to_str().unwrap()), "DIR");
    settings.add_filter(r"booted \S+ ago", "booted TIME ago");
    settings.add_filter(r"owner \S+\)", "owner USER)");
    if cfg!(windows) {
        settings.add_filter(r"\(private,", "(mode 0700,");
    }
    settings.add_filter(r"in memory, emptied at boot|on a disk, survives a reboot", "SOMEWHERE");
    settings.bind(|| insta::assert_snapshot!("doctor_all_is_well", answer.succeeds()));
    assert!(home.contents() == before, "looking changed something");
}

#[test]
fn the_keys_of_json_are_a_contract() {
    let home = Home::with(&["api", "--rate", "35/s"]);
    let found = lines(&doctor(&home, &["--json"], &[]));
    for line in &found {
        let keys: Vec<&String> = line.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["advice", "check", "fixed", "level", "message", "subject"]);
    }
    let checks: Vec<&str> = found.iter().map(|line| line["check"].as_str().unwrap()).collect();
    assert_eq!(checks, ["clock", "environment", "directory", "storage", "limiter"]);
}

#[test]
fn r113_permits_and_places_of_killed_processes_are_found_and_returned() {
    let home = Home::with(&["api", "--concurrency", "2"]);
    let (mut child, _out, ready) = home.start(&run("api", READY));
    assert_eq!(ready, "ready");
    assert_eq!(complaints(&home, &[]), Vec::<Value>::new(), "a living holder is not a problem");
    child.kill().unwrap();
    child.wait().unwrap();
    complains(&home, "warn", &["api", "1 exited process", "1 permit is held by exited processes", "--fix"]);
    is_fixed(&home, &["1 slot freed"]);
    assert_eq!(home.status("api")["held_by_exited"], 0);
}

#[test]
fn calls_of_killed_processes_are_removed_from_the_queue() {
    let home = Home::with(&["api", "--concurrency", "1"]);
    let holder = Holder::new(&home, "api");
    let mut waiter = start_waiting(&home, "api", &["acquire", "api"], &[]);
    waiter.kill().unwrap();
    waiter.wait().unwrap();
    let found = complaints(&home, &[]);
    assert!(found[0].to_string().contains("1 call of exited processes is in the queue"), "{found:?}");
    is_fixed(&home, &["repaired"]);
    let status = home.status("api");
    assert_eq!(
        (waiting(&status).len(), &status["in_flight"]),
        (0, &1.into()),
        "living processes keep what they have"
    );
    holder.let_go();
}

#[cfg(unix)] // on Windows every creation of a file sweeps them up, the doctor's self-test included
#[test]
fn only_old_temporary_files_of_limiters_are_removed() {
    let home = Home::with(&["api", "--rate", "9/s"]);
    let path = |name: &str| home.path().join(name);
    use std::time::{Duration, SystemTime};
    let old = SystemTime::now() - Duration::from_secs(3600);
    let make = |name: &str| {
        let file = fs::File::create(path(name)).unwrap();
        file.set_modified(old).unwrap();
    };
    make(".shmlimit-123-18f0a.tmp");
    make(".shmlimit-123.tmp");
    make("notes.txt");
    fs::File::create(path(".shmlimit-124-18f0b.tmp")).unwrap();
    std::os::unix::fs::symlink(path("notes.txt"), path(".shmlimit-125-18f0c.tmp")).unwrap();
    complains(&home, "warn", &[".shmlimit-123-18f0a.tmp", "killed while it created a limiter"]);
    is_fixed(&home, &["removed"]);
    let left = [
        ".shmlimit-123.tmp",
        ".shmlimit-124-18f0b.tmp",
        ".shmlimit-125-18f0c.tmp",
        "api.shm",
        "notes.txt",
        "ratelimit.lock",
    ];
    assert_eq!(home.names(), left);
}

#[test]
fn a_missing_directory_is_fine_unless_it_cannot_be_created() {
    let home = Home::new();
    let there = home.path().join("new");
    let answer = doctor(&home, &["--dir", there.to_str().unwrap()], &[]);
    assert!(
        answer
            .succeeds()
            .contains("does not exist yet; the first limiter creates it (directory chosen by: --dir)")
    );
    assert!(!there.exists());
    let deep = home.path().join("no/such");
    let answer = doctor(&home, &["--dir", deep.to_str().unwrap()], &[]);
    assert_eq!(answer.code, 1);
    assert!(answer.out.contains(if cfg!(unix) { "mkdir -p" } else { "mkdir \"" }), "{}", answer.out);
}

#[test]
fn mistyped_variables_are_reported_with_the_nearest_name_and_bad_values_as_errors() {
    let home = Home::new();
    let near = doctor(&home, &[], &[("SHMLIMIT_CONCURENCY", "3"), ("ANIVAULT_DATABASE", "x")]);
    assert!(near.succeeds().contains("did you mean SHMLIMIT_CONCURRENCY?"), "{}", near.out);
    assert!(!near.out.contains("ANIVAULT_DATABASE"), "variables of other programs are ignored");
    let bad = doctor(&home, &[], &[("SHMLIMIT_CONCURRENCY", "lots")]);
    assert_eq!(bad.code, 1);
    assert!(bad.out.contains("SHMLIMIT_CONCURRENCY = \"lots\""), "{}", bad.out);
    let good = doctor(&home, &[], &[("SHMLIMIT_CONCURRENCY", "3")]);
    assert!(good.succeeds().contains("SHMLIMIT_CONCURRENCY=3"));
}

/// The doctor must know every variable that the library and the tool read; otherwise it would warn of valid ones.
#[test]
fn every_variable_that_the_source_reads_is_known() {
    let home = Home::new();
    let sources = ["src", "cli/src", "crates"];
    let mut folders: Vec<_> = sources.iter().map(|folder| std::path::Path::new(ROOT).join(folder)).collect();
    let mut read = std::collections::BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap_or_default();
            for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
                for part in line.split('"').filter(|part| part.starts_with("SHMLIMIT_") && part.len() > 9) {
                    let name: String =
                        part.chars().take_while(|c| c.is_ascii_uppercase() || *c == '_').collect();
                    // Only tests have these variables.
                    if !name.starts_with("SHMLIMIT_TEST_") && !path.ends_with("names.rs") {
                        read.insert(name);
                    }
                }
            }
        }
    }
    assert!(read.contains("SHMLIMIT_DIR") && read.contains("SHMLIMIT_GROUP"), "{read:?}");
    for name in read.iter().filter(|name| !["SHMLIMIT_DIR", "SHMLIMIT_CONCURENCY"].contains(&name.as_str())) {
        let answer = doctor(&home, &["--json"], &[(name, "1")]);
        assert!(!answer.out.contains("is no variable"), "{name}: {}", answer.out);
    }
}

#[test]
fn r142_every_long_stop_of_calls_is_reported_with_the_command_that_ends_it() {
    let home = Home::with(&["tmdb"]);
    home.tool(&["record", "tmdb", "--status", "429", "--retry-after", "900000"]).succeeds();
    complains(&home, "warn", &["paused by Retry-After, 23h left", "shmlimit force tmdb clear-gate"]);
    home.tool(&["force", "tmdb", "clear-gate"]).succeeds();
    home.tool(&["force", "tmdb", "offline"]).succeeds();
    complains(&home, "warn", &["an operator put it offline", "shmlimit force tmdb online"]);
    home.tool(&["force", "tmdb", "cache_only"]).succeeds();
    complains(&home, "warn", &["cache_only", "breaker.auto_recover is not set", "breaker.auto_recover 15m"]);
    home.tool(&["set", "tmdb", "breaker.auto_recover", "15m"]).succeeds();
    home.tool(&["force", "tmdb", "normal"]).succeeds();
    assert_eq!(complaints(&home, &[]), Vec::<Value>::new());
}

#[cfg(unix)] // Windows has no place that is emptied at boot
#[test]
fn r134_a_rule_of_an_hour_or_more_belongs_on_a_disk() {
    if !std::path::Path::new("/dev/shm").is_dir() {
        eprintln!("not tested: there is no place in memory here");
        return;
    }
    let home = Home::with(&["daily", "--rate", "1000/day"]);
    complains(&home, "warn", &["an hour or more", "lost when the machine boots"]);
}

#[test]
fn only_the_named_limiters_are_checked_and_a_mistyped_name_is_refused() {
    let home = Home::with(&["api", "--rate", "9/s"]);
    home.tool(&["init", "other", "--rate", "9/s"]).succeeds();
    let subjects = |arguments: &[&str]| {
        let all = lines(&doctor(&home, arguments, &[]));
        let of_limiters = all.into_iter().filter(|line| line["check"] == "limiter");
        of_limiters.map(|line| line["subject"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(subjects(&["--json"]), ["api", "other"]);
    assert_eq!(subjects(&["--json", "other"]), ["other"]);
    doctor(&home, &["othre"], &[]).fails(2, &["did you mean \"other\""]);
    doctor(&home, &["../other"], &[]).fails(2, &["bad limiter name"]);
}

/// Processes that attach, detach, get grants and change settings all the time must not look dead, damaged or lost.
#[test]
fn a_busy_limiter_has_no_findings_and_is_not_harmed() {
    let home = Home::with(&["api", "--concurrency", "3"]);
    let stop = std::sync::atomic::AtomicBool::new(false);
    let going = || !stop.load(std::sync::atomic::Ordering::Relaxed);
    // On a busy machine a caller that rarely gets the lock reports that after a second, so yield now and then.
    let use_it = |limiter: shmlimit::Limiter| {
        for _ in 0..200 {
            drop(limiter.try_acquire(&shmlimit::Request::new()));
        }
        std::thread::yield_now();
    };
    let open = || shmlimit::Limiter::builder("api").directory(home.path()).open_existing();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while going() {
                    if let Ok(limiter) = open() {
                        use_it(limiter);
                    }
                }
            });
        }
        scope.spawn(|| {
            let limiter = queue::open(&home, "api");
            for most in ["3", "4"].iter().cycle().take_while(|_| going()) {
                let _ = limiter.set("concurrency", most);
                std::thread::yield_now();
            }
        });
        let found: Vec<Value> =
            (0..20).flat_map(|i| complaints(&home, if i % 2 == 0 { &[] } else { &["--fix"] })).collect();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(found, Vec::<Value>::new());
    });
    let status = home.status("api");
    assert_eq!((&status["in_flight"], &status["resets"]), (&0.into(), &0.into()));
}
