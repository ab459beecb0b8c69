//! `shmlimit man` writes a page for each verb, which man(1) reads without complaint.

use crate::cli::{Home, ROOT, binary};
use std::process::Command;

/// The verbs that help lists.
fn verbs(home: &Home) -> Vec<String> {
    let help = home.tool(&["--help"]);
    let commands = help.succeeds().split("Commands:").nth(1).unwrap();
    let lines = commands.lines().skip(1).take_while(|line| line.starts_with("  "));
    let word = |line: &str| line.split_whitespace().next().unwrap().to_owned();
    lines.filter(|line| !line.starts_with("   ")).map(word).collect()
}

#[test]
fn every_verb_has_a_page_and_all_are_written_at_once() {
    let home = Home::new();
    let verbs = verbs(&home);
    assert!(verbs.len() > 15, "{verbs:?}");
    let directory = home.path().join("share/man1");
    home.tool(&["man", "--to", directory.to_str().unwrap()]).succeeds();
    let mut wanted: Vec<String> = verbs.iter().map(|verb| format!("shmlimit-{verb}.1")).collect();
    wanted.push("shmlimit.1".to_owned());
    wanted.sort();
    let mut written: Vec<String> = std::fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    written.sort();
    assert_eq!(written, wanted);
    for verb in &verbs {
        let page = home.tool(&["man", verb]).succeeds().to_owned();
        assert_eq!(page, std::fs::read_to_string(directory.join(format!("shmlimit-{verb}.1"))).unwrap());
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "ENVIRONMENT", "FILES", "SEE ALSO"]
        {
            assert!(
                page.contains(&format!("\n.SH {section}\n"))
                    || page.contains(&format!("\n.SH \"{section}\"\n")),
                "{verb}: {section}"
            );
        }
    }
}

#[test]
fn every_option_of_every_page_is_described_and_no_line_is_too_wide() {
    let home = Home::new();
    for verb in verbs(&home) {
        let page = home.tool(&["man", &verb]).succeeds().to_owned();
        for (option, words) in page.lines().zip(page.lines().skip(1)) {
            assert!(!option.starts_with("\\fB\\-") || !words.trim().is_empty(), "{verb}: {option}");
        }
        // Lines without filling must fit; an address cannot be broken.
        for line in page.split(".nf\n").skip(1).flat_map(|part| part.split(".fi\n").next().unwrap().lines()) {
            let shown = line.replace("\\-", "-").replace("\\&", "").chars().count();
            assert!(shown <= 100 || line.contains("://"), "{verb}: {line}");
        }
    }
}

#[test]
fn the_main_page_names_exit_codes_variables_and_every_verb() {
    let home = Home::new();
    let page = home.tool(&["man"]).succeeds().to_owned();
    for verb in verbs(&home) {
        assert!(page.contains(&format!("shmlimit\\-{verb}")), "{verb}");
    }
    for word in ["SHMLIMIT_DIR", "SHMLIMIT_RATE_BASE", "NO_COLOR", "ratelimit.lock", "\n75\n"] {
        assert!(page.contains(word), "{word}");
    }
}

#[test]
fn a_mistyped_verb_is_refused_and_the_nearest_one_suggested() {
    let home = Home::new();
    home.tool(&["man", "stauts"]).fails(2, &["no verb \"stauts\"", "did you mean \"status\""]);
    home.tool(&["man", "--to", "/proc/no"]).fails(2, &["cannot write /proc/no"]);
}

/// The complaints of groff and mandoc about the pages. Neither is on every machine; the gate's machine has both.
#[test]
fn readers_of_manual_pages_do_not_complain() {
    let home = Home::new();
    let directory = home.path().join("man1");
    home.tool(&["man", "--to", directory.to_str().unwrap()]).succeeds();
    let mut checked = 0;
    for entry in std::fs::read_dir(&directory).unwrap() {
        let page = entry.unwrap().path();
        let groff = Command::new("groff").args(["-man", "-Tutf8", "-wall", "-z", "-k"]).arg(&page).output();
        if let Ok(said) = groff {
            let said = String::from_utf8_lossy(&said.stderr).into_owned();
            assert!(said.is_empty(), "{}: {said}", page.display());
            checked += 1;
        }
        if let Ok(said) = Command::new("mandoc").args(["-Tlint", "-Wwarning"]).arg(&page).output() {
            let said = String::from_utf8_lossy(&said.stdout).into_owned();
            let complaints: Vec<&str> = said.lines().filter(|line| !line.contains("missing date")).collect();
            assert!(complaints.is_empty(), "{complaints:?}");
            checked += 1;
        }
    }
    if checked == 0 {
        eprintln!("not tested: neither groff nor mandoc is here");
    }
}

#[test]
fn a_script_installs_pages_and_completions() {
    let home = Home::new();
    let script = std::path::Path::new(ROOT).join("scripts/package/install-extras");
    if !script.exists() {
        eprintln!("not tested: a packaged crate has no scripts");
        return;
    }
    let installed = Command::new(&script)
        .args(["--prefix", "/usr", "--destdir", home.path().to_str().unwrap(), "--bin", binary()])
        .output()
        .unwrap();
    assert!(installed.status.success(), "{installed:?}");
    for file in [
        "man/man1/shmlimit.1",
        "man/man1/shmlimit-run.1",
        "bash-completion/completions/shmlimit",
        "zsh/site-functions/_shmlimit",
        "fish/vendor_completions.d/shmlimit.fish",
    ] {
        let path = home.path().join("usr/share").join(file);
        assert!(std::fs::metadata(&path).is_ok_and(|file| file.len() > 100), "{file}");
    }
    let refused = Command::new(&script).args(["--prefix", "here"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let refused = Command::new(&script).args(["--wat"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
}
