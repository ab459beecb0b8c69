//! Bad input: the message says what is wrong, where, and what to do; nothing changes and no file is left behind.

use crate::cli::{Home, make_private};
#[cfg(unix)]
use std::os::unix::fs::PermissionsExt;
#[cfg(unix)]
use std::process::Command;

/// Runs the tool and checks that the directory is unchanged, byte for byte.
#[track_caller]
fn changes_nothing(home: &Home, arguments: &[&str], code: i32, parts: &[&str]) {
    let before = home.contents();
    home.tool(arguments).fails(code, parts);
    assert!(home.contents() == before, "{arguments:?} changed the directory");
}

#[test]
fn an_unknown_limiter_is_refused_with_the_nearest_name_and_the_command_to_create_it() {
    let home = Home::with(&["github", "--rate", "5000/h"]);
    for verb in [&["run", "gihtub", "--", "echo"][..], &["acquire", "gihtub"], &["status", "gihtub"]] {
        let directory = home.path().to_str().unwrap();
        changes_nothing(
            &home,
            verb,
            2,
            &["gihtub", directory, "did you mean \"github\"", "shmlimit init gihtub"],
        );
    }
    changes_nothing(&home, &["acquire", "tmbd"], 2, &["did you mean \"tmdb\""]);
    changes_nothing(&home, &["init", "new"], 2, &["--rate", "--config"]);
}

#[test]
fn no_directory_is_created_for_an_unknown_limiter() {
    let home = Home::new();
    let directory = home.path().join("new");
    let directory_text = directory.to_str().unwrap();
    home.tool(&["--dir", directory_text, "run", "nothing", "--", "true"]).fails(2, &["nothing"]);
    home.tool(&["--dir", directory_text, "acquire", "nothing"]).fails(2, &["nothing"]);
    home.tool(&["--dir", directory_text, "init", "nothing"]).fails(2, &["nothing"]);
    home.tool(&["--dir", directory_text, "init", "x", "--rate", "1/s", "--burst", "0"]).fails(2, &["burst"]);
    assert!(!directory.exists());
}

#[test]
fn bad_names_are_refused() {
    let home = Home::new();
    let long = "x".repeat(65);
    for name in ["", ".hidden", "../up", "a/b", "a b", "é", &long] {
        for verb in [
            &["init", name, "--rate", "1/s"][..],
            &["acquire", name],
            &["status", name],
            &["run", name, "--", "true"],
        ] {
            changes_nothing(&home, verb, 2, &["bad limiter name", "A-Z a-z 0-9 . _ -"]);
        }
    }
    assert!(home.names().is_empty());
}

#[test]
fn impossible_rules_are_refused_with_key_value_and_range() {
    let home = Home::new();
    for (flags, parts) in [
        (&["--rate", "0/s"][..], &["--rate", "0/s"][..]),
        (&["--rate", "-1/s"], &["--rate", "-1/s", "whole number"]),
        (&["--rate", "NaN/s"], &["NaN/s", "35/s"]),
        (&["--rate", "1.5/s"], &["1.5/s", "whole number"]),
        (&["--rate", "35"], &["35/s"]),
        (&["--rate", "99999999999999999999/s"], &["too large"]),
        (&["--rate", "999999999999999/s"], &["rules.0.limit = 999999999999999", "must be from 1 to"]),
        (&["--rate", "1/s", "--burst", "0"], &["rules.0.burst = 0", "must be from 1 to"]),
        (&["--rate", "1/s", "--burst", "-3"], &["--burst", "-3", "whole number"]),
        (&["--burst", "3"], &["--burst", "--rate"]),
        (&["--concurrency", "0"], &["concurrency = 0", "from 1 to 4096"]),
        (&["--concurrency", "4097"], &["concurrency = 4097", "from 1 to 4096"]),
        (
            &["--rate", "1/s", "--algorithm", "leaky"],
            &["leaky", "token_bucket, gcra, leaky_bucket, fixed_window"],
        ),
        (&["--rate", "1/s", "--wat"], &["--wat"]),
    ] {
        changes_nothing(&home, &[&["init", "x"], flags].concat(), 2, parts);
    }
    assert!(home.names().is_empty());
}

#[test]
fn a_bad_file_is_refused_with_its_name_and_the_key() {
    let home = Home::new();
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    for (text, parts) in [
        ("concurency = 4", &["concurency: unknown key", "did you mean \"concurrency\""][..]),
        ("[cluster]", &["cluster", "not supported by this version yet"]),
        ("[breaker]\nkind = 'fms'", &["breaker.kind = \"fms\"", "\"none\", \"fsm\" or \"consecutive\""]),
        ("[breaker]\np_throttle = 1.5", &["breaker.p_throttle = 1.5: must be from 0 to 1"]),
        ("[[rules]]\nalgorithm = 'gcar'", &["rules.0.algorithm = \"gcar\"", "\"token_bucket\", \"gcra\""]),
        ("concurrency = nan", &["concurrency = NaN"]),
        ("what is this", &["TOML", "line 1"]),
    ] {
        std::fs::write(path, text).unwrap();
        changes_nothing(&home, &["init", "x", "--config", path], 2, parts);
        changes_nothing(&home, &["init", "x", "--config", path], 2, &[path]);
    }
    changes_nothing(&home, &["init", "x", "--config", "/no/such/file.toml"], 2, &["/no/such/file.toml"]);
}

#[test]
fn r6_a_cost_above_the_capacity_is_refused_at_once_and_permanently() {
    let home = Home::with(&["small", "--rate", "5/day", "--concurrency", "1"]);
    // Without a timeout the call must not wait for a grant that can never come.
    for verb in
        [&["acquire", "small", "--cost", "6"][..], &["run", "small", "--cost", "6", "--", "echo", "ran"]]
    {
        home.tool(verb)
            .fails(2, &["small: refused", "rule sliding_log never allows more than", "more than 5 at once"]);
    }
    assert_eq!(home.status("small")["rules"][0]["remaining"], 5);
    for cost in ["-1", "NaN", "1.5", "tokens=", "99999999999999999999"] {
        changes_nothing(&home, &["acquire", "small", "--cost", cost], 2, &[cost, "--cost"]);
    }
}

#[test]
fn bad_usage_exits_with_code_2() {
    let home = Home::with(&["x", "--rate", "1/s"]);
    for arguments in [
        &["run", "x"][..],
        &["run"],
        &["acquire"],
        &["frobnicate"],
        &["run", "x", "--timeot", "5s", "--", "true"],
        &["acquire", "x", "--timeout", "soon"],
        &["acquire", "x", "--timeout", "-1s"],
        &["acquire", "x", "--now", "--timeout", "1s"],
        &["acquire", "x", "--priority", "vip"],
        &["status", "x", "y"],
    ] {
        changes_nothing(&home, arguments, 2, &["shmlimit: "]);
    }
}

#[test]
fn r137_one_process_too_many_is_refused_with_the_limit() {
    let home = Home::with(&["x", "--rate", "1/s"]);
    let mut handles = Vec::new();
    let limit = loop {
        match shmlimit::Limiter::builder("x").directory(home.path()).open_existing() {
            Ok(handle) => handles.push(handle),
            Err(shmlimit::Error::SlotsFull { limit, .. }) => break limit,
            Err(error) => panic!("{error}"),
        }
    };
    assert!(limit >= 256);
    home.tool(&["acquire", "x"]).fails(1, &[&format!("x.shm is open {limit} times, which is the limit")]);
    // Verbs of operators still work.
    for verb in [
        &["status"][..],
        &["status", "x", "--json"],
        &["metrics"],
        &["doctor"],
        &["set", "x", "concurrency", "5"],
        &["force", "x", "clear-gate"],
        &["record", "x", "--status", "200"],
        &["init", "x"],
        &["rm", "x", "--force"],
    ] {
        home.tool(verb).succeeds();
    }
    drop(handles);
    home.tool(&["init", "x", "--rate", "1/s"]).succeeds();
    home.tool(&["acquire", "x"]).succeeds();
}

#[cfg(unix)] // modes; the library tests access control lists
#[test]
fn p5_a_directory_others_can_write_is_refused() {
    let home = Home::new();
    let directory = home.path().join("open");
    std::fs::create_dir(&directory).unwrap();
    for mode in [0o777, 0o1777, 0o770] {
        std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(mode)).unwrap();
        for verb in [&["run", "tmdb", "--", "true"][..], &["init", "x", "--rate", "1/s"], &["status"]] {
            let arguments = [&["--dir", directory.to_str().unwrap()], verb].concat();
            home.tool(&arguments).fails(1, &[directory.to_str().unwrap(), "write to it"]);
        }
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
    }
}

#[test]
fn a_file_or_a_link_in_place_of_the_directory_is_refused() {
    let home = Home::new();
    let file = home.path().join("file");
    std::fs::write(&file, "mine").unwrap();
    #[cfg(unix)] // elsewhere only administrators can make links
    std::os::unix::fs::symlink(home.path(), home.path().join("link")).unwrap();
    let names = home.names();
    for directory in &names {
        let directory = home.path().join(directory);
        let directory = directory.to_str().unwrap();
        home.tool(&["--dir", directory, "run", "tmdb", "--", "true"]).fails(1, &[directory, "--dir"]);
    }
    assert_eq!(home.names(), names);
}

#[test]
fn p4_a_foreign_file_does_not_hide_the_other_limiters() {
    let home = Home::with(&["good", "--rate", "1/s"]);
    std::fs::write(home.path().join("bad.shm"), vec![7; 5000]).unwrap();
    make_private(&home.path().join("bad.shm"));
    let answer = home.tool(&["status"]);
    assert_eq!(answer.code, 1);
    assert!(answer.out.contains("good") && answer.err.contains("bad.shm"), "{} {}", answer.out, answer.err);
    assert_eq!(std::fs::read(home.path().join("bad.shm")).unwrap(), vec![7; 5000]);
}

#[cfg(unix)]
/// Runs a script in its own mount namespace; `None` where that is not permitted.
fn with_mounts(script: &str) -> Option<std::process::Output> {
    let permitted =
        Command::new("unshare").args(["-m", "true"]).output().is_ok_and(|output| output.status.success());
    permitted.then(|| Command::new("unshare").args(["-m", "sh", "-ec", script]).output().unwrap())
}

#[cfg(unix)] // mounts
#[test]
fn a_full_or_read_only_disk_is_an_error_and_leaves_nothing_behind() {
    let home = Home::new();
    let directory = home.path().display();
    for (options, part) in [("size=16k,mode=700", "space"), ("ro,mode=700", "ead-only")] {
        let script = format!(
            "mount -t tmpfs -o {options} tmpfs {directory}; {} --dir {directory} run tmdb -- echo ran || code=$?; ls {directory}; exit $code",
            crate::cli::binary()
        );
        let Some(output) = with_mounts(&script) else {
            println!("not permitted to mount here: not tested");
            return;
        };
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{err}");
        assert!(err.contains(part) && err.contains("--dir"), "{err}");
        // The file of the creation lock belongs to all limiters and stays; there is no complete or partial segment.
        assert!(matches!(output.stdout.as_slice(), b"" | b"ratelimit.lock\n"), "{:?}", output.stdout);
    }
}

/// The directory as the package makes it: owned by root, for a group, closed to others. A user outside the group
/// cannot even list it.
#[cfg(unix)] // needs other users
#[test]
fn p5_a_shared_directory_tells_users_outside_the_group_to_join_it() {
    let home = Home::new();
    let directory = home.path().join("shared");
    std::fs::create_dir(&directory).unwrap();
    std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o2770)).unwrap();
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    // Run a copy: the built program may be in a directory that other users cannot reach.
    let copy = home.path().join("shmlimit");
    std::fs::copy(crate::cli::binary(), &copy).unwrap();
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&copy)
        .args(["acquire", "api", "--dir"])
        .arg(&directory)
        .output();
    let Some(output) = output.ok().filter(|output| output.status.code() != Some(127)) else {
        println!("not tested: there is no setpriv, or it may not change the user");
        return;
    };
    let err = String::from_utf8(output.stderr).unwrap();
    if err.starts_with("setpriv:") {
        println!("not tested: {err}");
        return;
    }
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("but this user is not a member") && err.contains("join the group"), "{err}");
}
