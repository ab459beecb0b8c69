//! Pastes the commands that messages suggest into a shell: every command works.

use crate::cli::{Home, binary};
use crate::util::raw;
use shmlimit::{Algorithm, Error, Limiter, OnMismatch, Policy, PolicyDraft, RuleDraft};
use shmlimit_segment::layout;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The commands that a message suggests, as a user would copy them.
fn suggested(message: &str) -> Vec<String> {
    let mut commands = Vec::new();
    for line in message.lines() {
        // The program name in front of a message is not a command.
        let line = line.strip_prefix("shmlimit: ").unwrap_or(line);
        for (at, _) in line.match_indices(": shmlimit ") {
            let command = &line[at + 2..];
            let ends = [", and ", "; ", ", or", ") "].iter().filter_map(|end| command.find(end));
            commands.push(command[..ends.min().unwrap_or(command.len())].trim_end_matches(')').to_owned());
        }
    }
    commands
}

/// Types a line in a shell in this directory, with these variables.
fn typed(home: &Home, inside: &Path, variables: &[(&str, &str)], line: &str) -> Output {
    let script = format!("shmlimit() {{ {} \"$@\"; }}\n{line}", binary());
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).current_dir(inside).env("SHMLIMIT_DIR", home.path());
    shell.envs(variables.iter().copied()).output().unwrap()
}

fn error_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Provokes a message and pastes all its suggestions, one after the other. Returns their number.
#[track_caller]
fn pasted(home: &Home, inside: &Path, provoke: &str) -> usize {
    let message = typed(home, inside, &[], provoke);
    let text = error_of(&message) + &String::from_utf8_lossy(&message.stdout);
    let commands = suggested(&text);
    assert!(!commands.is_empty(), "{provoke}: nothing is suggested in: {text}");
    for command in &commands {
        let answer = typed(home, inside, &[], command);
        assert!(answer.status.success(), "{provoke}\n{text}\n{command}\n{}", error_of(&answer));
    }
    commands.len()
}

#[test]
fn r144_the_commands_that_init_suggests_work_and_give_the_requested_settings() {
    let directory = tempfile::tempdir().unwrap();
    let blank = directory.path().join("a b");
    std::fs::create_dir(&blank).unwrap();
    std::fs::write(blank.join("my api.toml"), "concurrency = 3\n[[rules]]\nlimit = 50\n").unwrap();
    let limit = |home: &Home, name: &str| home.status(name)["rules"][0]["limit"].clone();
    for (make, provoke, name) in [
        ("shmlimit init api --rate 40/s", "shmlimit init api --rate 50/s", "api"),
        // Flags change only what they name: the burst, the permits and other rules stay.
        ("shmlimit init bucket --rate 40/s --burst 5", "shmlimit init bucket --rate 50/s", "bucket"),
        ("shmlimit init few --rate 40/s --concurrency 3", "shmlimit init few --rate 50/s", "few"),
        // A change that no update can make needs a new limiter.
        ("shmlimit init log --rate 40/s", "shmlimit init log --rate 50/s --burst 9", "log"),
        ("shmlimit init log --rate 50/s", "shmlimit init log --rate 50/s --algorithm fixed_window", "log"),
        ("shmlimit init log --rate 50/s", "shmlimit init log --rate 200k/s", "log"),
        ("shmlimit init api --rate 40/s", "shmlimit init api --config 'my api.toml'", "api"),
        ("shmlimit init tmdb", "shmlimit init tmdb --rate 50/s --burst 9", "tmdb"),
        ("shmlimit init --rate 40/s -- -x", "shmlimit init --rate 50/s -- -x", "-x"),
    ] {
        // Try each suggestion from the beginning.
        let ways = if name == "log" { 1 } else { 2 };
        for way in 0..ways {
            let home = Home::new();
            assert!(typed(&home, &blank, &[], make).status.success());
            let message = typed(&home, &blank, &[], provoke);
            assert_eq!(message.status.code(), Some(2));
            let commands = suggested(&error_of(&message));
            assert_eq!(commands.len(), ways, "{}", error_of(&message));
            let answer = typed(&home, &blank, &[], &commands[way]);
            assert!(answer.status.success(), "{}\n{}", commands[way], error_of(&answer));
            if name != "-x" && !provoke.contains("200k") {
                assert_eq!(limit(&home, name), 50, "{}", commands[way]);
            }
            assert!(
                typed(&home, &blank, &[], provoke).status.success(),
                "the limiter now has the requested settings"
            );
        }
    }
    // The suggestion repeats a directory that was typed.
    let home = Home::new();
    let make = "shmlimit --dir 'my limiters' init api --rate 40/s";
    std::fs::create_dir(blank.join("my limiters")).unwrap();
    crate::cli::make_private(&blank.join("my limiters"));
    assert!(typed(&home, &blank, &[], make).status.success());
    assert_eq!(pasted(&home, &blank, "shmlimit init api --rate 50/s --dir 'my limiters'"), 2);
    assert_eq!(pasted(&home, &blank, "shmlimit --dir 'my limiters' status web"), 1);
    for (provoke, count) in [
        ("shmlimit --dir 'my limiters' pause api", 1),
        ("shmlimit --dir 'my limiters' pause api && shmlimit --dir 'my limiters' acquire api --now", 2),
        ("shmlimit --dir 'my limiters' pause api && shmlimit --dir 'my limiters' status api", 2),
        (
            "shmlimit --dir 'my limiters' force tmdb offline && shmlimit --dir 'my limiters' acquire tmdb --now",
            2,
        ),
    ] {
        assert_eq!(pasted(&home, &blank, provoke), count, "{provoke}");
    }
    assert!(home.names().is_empty(), "nothing was created in the default directory: {:?}", home.names());
}

#[test]
fn the_commands_that_verbs_suggest_work_when_pasted() {
    let home = Home::with(&["api", "--rate", "40/s"]);
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("empty.toml"), "provider = 'web'\n").unwrap();
    home.tool(&["init", "busy", "--rate", "40/s"]).succeeds();
    let _user = Limiter::builder("busy").directory(home.path()).open_existing().unwrap();
    for (provoke, count) in [
        ("shmlimit status web", 1),
        ("shmlimit status musicbrainz", 1),
        ("shmlimit set api rules.0.algorithm gcra", 2),
        ("shmlimit set api rules.1.limit 5", 2),
        ("shmlimit set api rate 90000/s", 2),
        ("shmlimit force api throttle", 2),
        ("shmlimit force tmdb normal --auto-recover 15", 1),
        ("shmlimit init empty --config empty.toml", 1),
        ("shmlimit init api --shared-with \"$(id -g)\"", 1),
        // Both of these suggest to pause the limiter instead; then status suggests how to end that, too.
        ("shmlimit force tmdb offline && shmlimit acquire tmdb --now", 2),
        ("shmlimit force tmdb offline && shmlimit status tmdb", 3),
        ("shmlimit pause api && shmlimit acquire api --now", 2),
        ("shmlimit pause api --for 10m && shmlimit status api", 2),
        ("shmlimit force tmdb offline >/dev/null && shmlimit doctor | grep online", 1),
        ("shmlimit record tmdb --status 429 --retry-after 30 >&2; shmlimit status tmdb", 1),
        ("shmlimit rm busy", 1),
        // A name that begins with a hyphen must follow `--`.
        ("shmlimit init --rate 40/s -- -x; shmlimit pause -- -x && shmlimit acquire --now -- -x", 2),
    ] {
        assert_eq!(pasted(&home, directory.path(), provoke), count, "{provoke}");
    }
}

#[test]
fn r109_a_change_by_the_environment_is_reported_once_and_can_be_undone() {
    let home = Home::new();
    let directory = tempfile::tempdir().unwrap();
    let acquire = |variables: &[(&str, &str)]| {
        let answer = typed(&home, directory.path(), variables, "shmlimit acquire tmdb --now");
        assert!(answer.status.success(), "{}", error_of(&answer));
        error_of(&answer)
    };
    assert_eq!(acquire(&[]), "");
    let said =
        acquire(&[("SHMLIMIT_RATE_BASE", "20"), ("ANIVAULT_CONCURRENCY", "3"), ("SHMLIMIT_N_THROTTLE", "3")]);
    assert_eq!(
        said,
        "shmlimit: tmdb: SHMLIMIT_RATE_BASE=20 changed breaker.rate_base from auto to 20 for every program that uses it \
         (undo: shmlimit set tmdb breaker.rate_base auto)\n\
         shmlimit: tmdb: ANIVAULT_CONCURRENCY=3 changed concurrency from 4 to 3 for every program that uses it \
         (undo: shmlimit set tmdb concurrency 4)\n"
    );
    assert_eq!(acquire(&[("SHMLIMIT_RATE_BASE", "20")]), "", "the variable changes nothing now");
    assert_eq!(acquire(&[]), "");
    for undo in suggested(&said) {
        assert!(typed(&home, directory.path(), &[], &undo).status.success(), "{undo}");
    }
    let status = home.status("tmdb");
    assert_eq!((&status["concurrency"], &status["rate"]), (&4.into(), &35.0.into()));
    // Looking at a limiter changes nothing.
    let variables = [("SHMLIMIT_CONCURRENCY", "2")];
    assert_eq!(error_of(&typed(&home, directory.path(), &variables, "shmlimit status tmdb")), "");
    assert!(typed(&home, directory.path(), &[], "shmlimit rm tmdb").status.success());
    // A limiter that is created with a variable says so: users would expect the preset.
    let said = "shmlimit: tmdb: SHMLIMIT_CONCURRENCY=2 changed concurrency from 4 to 2 for every program that uses it \
                (undo: shmlimit set tmdb concurrency 4)\n";
    assert_eq!(acquire(&variables), said);
    assert_eq!(acquire(&variables), "");
    let replaced = typed(&home, directory.path(), &variables, "shmlimit init tmdb --rate 20/s --replace");
    assert_eq!(error_of(&replaced), said);
    // Flags take precedence over variables, and a command that fails changes nothing.
    let other = [("SHMLIMIT_CONCURRENCY", "9")];
    let refused = typed(&home, directory.path(), &other, "shmlimit init tmdb --concurrency 5");
    assert!(error_of(&refused).contains("concurrency: now 2, given 5"), "{}", error_of(&refused));
    assert_eq!(home.status("tmdb")["concurrency"], 2);
    // A library never prints, but the handle knows the changes.
    let limiter = Limiter::builder("tmdb").directory(home.path()).open().unwrap();
    assert_eq!(limiter.environment_changes(), []);
}

/// The library's suggestions name the directory, because only the program knows it.
#[test]
fn the_commands_that_the_library_suggests_work_in_any_directory() {
    let (home, directory) = (Home::new(), tempfile::tempdir().unwrap());
    let inside = directory.path().join("it's here");
    std::fs::create_dir(&inside).unwrap();
    crate::cli::make_private(&inside);
    let policy = |unit: &'static str, limit| {
        let rule =
            RuleDraft { unit: Some(unit), ..RuleDraft::new(Algorithm::Gcra, limit, Duration::from_secs(1)) };
        Policy::new(&PolicyDraft { rules: &[rule], ..PolicyDraft::default() }).unwrap()
    };
    let builder = |name: &str| Limiter::builder(name).directory(&inside);
    let paste = |error: Error, count: usize| {
        let text = error.to_string();
        let commands = suggested(&text);
        assert_eq!(commands.len(), count, "{text}");
        for command in commands {
            let answer = typed(&home, directory.path(), &[], &command);
            assert!(answer.status.success(), "{text}\n{command}\n{}", error_of(&answer));
        }
    };
    for name in ["web", "-x"] {
        paste(builder(name).open().unwrap_err(), 1);
        assert!(builder(name).open().is_ok(), "it was made");
        paste(builder(name).policy(policy("requests", 7)).create().unwrap_err(), 1);
        // An update can solve the first mismatch, so no command is suggested. Only a new limiter solves the second.
        paste(builder(name).policy(policy("requests", 7)).open().unwrap_err(), 0);
        paste(builder(name).policy(policy("tokens", 7)).open().unwrap_err(), 1);
        let limiter =
            builder(name).policy(policy("requests", 7)).open().expect("the removed limiter is created again");
        paste(
            builder(name).policy(policy("tokens", 7)).on_mismatch(OnMismatch::Update).open().unwrap_err(),
            2,
        );
        paste(limiter.force(shmlimit::BreakerCommand::Throttle).unwrap_err(), 2);
        drop(limiter);
        // Another version, then damage.
        let path = inside.join(format!("{name}.shm"));
        let raw = raw::Raw::map(&path);
        raw.word(layout::POLICY).fetch_xor(1, Ordering::Relaxed);
        raw.word(layout::POLICY_CHECKSUM).fetch_xor(2, Ordering::Relaxed);
        drop(raw);
        paste(builder(name).open().unwrap_err(), 1);
        builder(name).policy(policy("requests", 7)).create().unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[12] = 9;
        std::fs::write(&path, &bytes).unwrap();
        paste(builder(name).open_existing().unwrap_err(), 1);
    }
    assert!(home.names().is_empty(), "nothing was created in the default directory: {:?}", home.names());
}
