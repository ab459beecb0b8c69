//! The short guides: `shmlimit help TOPIC`, and llms.txt for programs that read documents.

use crate::cli::{Home, ROOT};
use crate::docs::{Manual, commands};
use std::collections::BTreeSet;
use std::path::Path;

/// The names in one part of `shmlimit help`.
fn listed(home: &Home, heading: &str) -> Vec<String> {
    let text = home.tool(&["help"]).succeeds().to_owned();
    let part = text.split(&format!("{heading}:\n")).nth(1).unwrap().split("\n\n").next().unwrap().to_owned();
    part.lines().map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
}

/// The commands in a text that the tool would not accept.
fn wrong_commands(text: &str) -> Vec<String> {
    let manual = Manual::read();
    let found: Vec<_> = text.lines().flat_map(commands).collect();
    assert!(!found.is_empty(), "no command in:\n{text}");
    found.into_iter().filter_map(|words| manual.problem(&words, true)).collect()
}

#[test]
fn help_lists_topics_and_verbs_and_explains_each() {
    let home = Home::new();
    let (topics, verbs) = (listed(&home, "Topics"), listed(&home, "Verbs"));
    for topic in
        ["rates", "waiting", "retry-after", "breaker", "queue", "files", "json", "exit-codes", "scripts"]
    {
        assert!(topics.iter().any(|one| one == topic), "{topic} is not in {topics:?}");
    }
    assert!(verbs.len() > 15 && verbs.contains(&"help".to_owned()), "{verbs:?}");
    for topic in &topics {
        let text = home.tool(&["help", topic]).succeeds().to_owned();
        // Commands are indented; a verb in a sentence needs no check.
        let lines: String =
            text.lines().filter(|line| line.starts_with("  ")).map(|line| format!("{line}\n")).collect();
        assert_eq!(wrong_commands(&lines), Vec::<String>::new(), "{topic}");
        // Documents that a guide names exist.
        let words =
            text.split(|c: char| c.is_whitespace() || c == ',').map(|word| word.trim_end_matches('.'));
        for document in words.filter(|word| word.ends_with(".md")) {
            assert!(Path::new(ROOT).join(document).exists(), "{topic}: {document}");
        }
    }
    for verb in &verbs {
        assert!(home.tool(&["help", verb]).succeeds().contains(&format!("Usage: shmlimit {verb}")), "{verb}");
    }
}

#[test]
fn an_unknown_topic_is_answered_with_the_nearest() {
    let home = Home::new();
    home.tool(&["help", "rtaes"]).fails(2, &["no topic or verb \"rtaes\"; did you mean \"rates\"?"]);
    home.tool(&["help", "statsu"]).fails(2, &["did you mean \"status\"?", "shmlimit help"]);
    home.tool(&["help", "zebra"])
        .fails(2, &["no topic or verb \"zebra\"\nall topics and verbs: shmlimit help"]);
}

#[test]
fn completions_know_the_topics() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = home.tool(&["completions", shell]).succeeds().to_owned();
        let knows = script.lines().any(|line| line.contains("retry-after") && line.contains("exit-codes"));
        assert!(knows, "{shell}");
    }
}

/// Also those of the argument parser.
#[test]
fn every_error_has_the_same_prefix() {
    let home = Home::new();
    for arguments in [
        &["statsu"][..],
        &["acquire"],
        &["acquire", "--tiemout", "3s", "api"],
        &["init", "x", "--rate", "35"],
        &["status", "none"],
        &["help", "none"],
        &["force", "x", "nothing"],
    ] {
        let answer = home.tool(arguments);
        assert_eq!(answer.code, 2, "{arguments:?}: {}", answer.err);
        assert!(answer.err.starts_with("shmlimit: "), "{arguments:?}: {}", answer.err);
        assert!(!answer.err.contains("error:"), "{arguments:?}: {}", answer.err);
    }
}

#[test]
fn the_page_for_programs_links_to_files_that_exist_and_shows_commands_that_work() {
    let root = Path::new(ROOT);
    let Ok(text) = std::fs::read_to_string(root.join("llms.txt")) else {
        eprintln!("not tested: a packaged crate has no llms.txt");
        return;
    };
    let links: BTreeSet<&str> =
        text.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()).collect();
    for link in &links {
        assert!(root.join(link).is_file(), "llms.txt: {link} does not exist");
    }
    for entry in std::fs::read_dir(root.join("docs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let page = format!("docs/{name}");
        assert!(!name.ends_with(".md") || links.contains(page.as_str()), "llms.txt does not name {page}");
    }
    let listed =
        text.split("## The ten commands that matter\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let shown: Vec<&str> = listed.lines().filter(|line| line.starts_with("- `shmlimit ")).collect();
    assert_eq!(shown.len(), 10);
    let spans: String = text.split('`').skip(1).step_by(2).map(|span| format!("{span}\n")).collect();
    let commands: String =
        spans.lines().filter(|span| span.starts_with("shmlimit ")).map(|span| format!("{span}\n")).collect();
    assert_eq!(wrong_commands(&commands), Vec::<String>::new());
}
