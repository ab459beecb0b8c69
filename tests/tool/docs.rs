//! The documentation is correct: links and anchors have targets, the index reaches every page, every verb and option
//! exists in the binary, and consoles show the real output.

use crate::cli::ROOT;
use crate::markdown::{Page, pages};
use assert_cmd::Command;
use shmlimit::{TransitionCause, config};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(ROOT)
}

/// Reports all failures at once instead of one after the other.
fn none(wrong: Vec<String>) {
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// The path of the file that a link in a page names, without `..`.
fn target(page: &Page, link: &str) -> PathBuf {
    let mut path = PathBuf::new();
    let from = page.path.parent().unwrap_or(Path::new(""));
    for part in from.join(link).components() {
        match part {
            std::path::Component::ParentDir => drop(path.pop()),
            part => path.push(part),
        }
    }
    path
}

#[test]
fn every_link_and_every_anchor_has_a_target() {
    let pages = pages(root());
    let anchors: BTreeMap<_, _> = pages.iter().map(|page| (page.path.clone(), page.anchors())).collect();
    let mut wrong = Vec::new();
    for page in &pages {
        for link in page.links() {
            let (file, anchor) = link.split_once('#').unwrap_or((link.as_str(), ""));
            let path = if file.is_empty() { page.path.clone() } else { target(page, file) };
            let mut send = |what: &str| wrong.push(format!("{}: {link}: {what}", page.path.display()));
            match anchors.get(&path) {
                _ if !root().join(&path).exists() => send("no such file"),
                Some(known) if !anchor.is_empty() && !known.contains(anchor) => send("no such heading"),
                None if !anchor.is_empty() => send("no headings are known there"),
                _ => {}
            }
        }
    }
    none(wrong);
}

#[test]
fn every_page_can_be_reached_from_the_index() {
    let pages: BTreeMap<_, _> = pages(root()).into_iter().map(|page| (page.path.clone(), page)).collect();
    let mut seen = BTreeSet::new();
    let mut next = vec![PathBuf::from("docs/README.md")];
    while let Some(path) = next.pop() {
        let Some(page) = pages.get(&path).filter(|_| seen.insert(path)) else { continue };
        next.extend(page.links().iter().map(|link| target(page, link.split('#').next().unwrap_or_default())));
    }
    none(
        pages
            .into_keys()
            .filter(|path| !seen.contains(path))
            .map(|path| path.display().to_string())
            .collect(),
    );
}

/// The options of each verb according to the binary's help, and the options before a verb that take a value.
pub struct Manual(BTreeMap<String, BTreeSet<String>>, BTreeSet<String>);

impl Manual {
    pub fn read() -> Manual {
        let help = |arguments: &[&str]| {
            let output = Command::cargo_bin("shmlimit").unwrap().args(arguments).output().unwrap();
            assert!(output.status.success(), "{arguments:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        let text = help(&["--help"]);
        let listed = text.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
        let verb = |line: &str| line.strip_prefix("  ")?.split(' ').next().map(str::to_owned);
        let verbs = listed.lines().filter_map(verb).filter(|word| !word.is_empty());
        let mut known: BTreeMap<_, _> =
            verbs.map(|verb| (verb.clone(), options(&help(&["help", &verb])))).collect();
        known.insert(String::new(), options(&text));
        let valued = |line: &str| {
            let (option, value) = line.trim_start().split_once(' ')?;
            (option.starts_with("--") && value.starts_with('<')).then(|| option.to_owned())
        };
        Manual(known, text.lines().filter_map(valued).collect())
    }

    /// Checks a command, given by its words after `shmlimit`. Returns the error; `None` for a correct command or for
    /// text that is not a command.
    pub fn problem(&self, words: &[&str], must_be_one: bool) -> Option<String> {
        let mut words = words.iter();
        let mut verb = "";
        while let Some(word) = words.next() {
            if *word == "--" {
                break;
            }
            let name = word.split('=').next().unwrap_or_default();
            if name.starts_with('-')
                && name.len() > 1
                && name[1..].starts_with(|c: char| c == '-' || c.is_ascii_lowercase())
            {
                if !self.0[verb].contains(name) {
                    return Some(format!("shmlimit {verb} has no {name}"));
                }
                // The value of an option before the verb must not be mistaken for the verb.
                if verb.is_empty() && self.1.contains(name) && !word.contains('=') {
                    words.next();
                }
            } else if verb.is_empty() {
                match self.0.get_key_value(*word) {
                    Some((known, _)) => verb = known,
                    // `shmlimit VERB`, `shmlimit alone`: only a word that looks like a verb has to be one.
                    None if must_be_one && word.chars().all(|c| c.is_ascii_lowercase()) => {
                        return Some(format!("shmlimit has no verb {word}"));
                    }
                    None => return None,
                }
            }
        }
        None
    }
}

/// Every word of a help text that looks like an option.
fn options(help: &str) -> BTreeSet<String> {
    let words =
        help.split(|c: char| c.is_whitespace() || matches!(c, ',' | '[' | ']' | '`' | '(' | ')' | '.' | ';'));
    let option = |word: &str| word.strip_prefix('-').is_some_and(|rest| !rest.is_empty() && rest != "-");
    words.filter(|word| option(word)).map(|word| word.split(['=', '<']).next().unwrap().to_owned()).collect()
}

/// The words of each `shmlimit …` in a line, up to the end of the command.
pub fn commands(line: &str) -> Vec<Vec<&str>> {
    let mut found = Vec::new();
    for (at, name) in line.match_indices("shmlimit ") {
        let before = &line[..at];
        // Skip names of packages and files, and values of other programs' options.
        let is_part = before.ends_with(|c: char| c.is_alphanumeric() || "-_./\":".contains(c));
        let last = before.split_whitespace().next_back().unwrap_or_default();
        if is_part || last.starts_with('-') || last == "add" {
            continue;
        }
        let rest = &line[at + name.len()..];
        let end = ["|", ";", "&", " #", ")", ">", "`", "\"", "…", "<"]
            .iter()
            .filter_map(|mark| rest.find(mark))
            .min();
        found.push(rest[..end.unwrap_or(rest.len())].split_whitespace().collect());
    }
    found
}

#[test]
fn every_verb_and_option_in_the_pages_exists() {
    let manual = Manual::read();
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for page in pages(root()) {
        let mut send = |problem: Option<String>, line: &str| {
            checked += 1;
            wrong.extend(problem.map(|problem| format!("{}: {problem}: {line}", page.path.display())));
        };
        for block in &page.blocks {
            let strict = matches!(block.language.as_str(), "sh" | "console");
            if !strict && !matches!(block.language.as_str(), "text" | "") {
                continue;
            }
            for line in block.text.lines().filter(|line| !line.trim_start().starts_with('#')) {
                for words in commands(line) {
                    send(manual.problem(&words, strict), line);
                }
            }
        }
        for span in page.spans() {
            for words in commands(&span) {
                send(manual.problem(&words, span.starts_with("shmlimit ")), &span);
            }
            // `init --replace`: a verb without the name of the tool.
            let words: Vec<&str> = span.split_whitespace().collect();
            let is_verb = words.first().is_some_and(|word| !word.is_empty() && manual.0.contains_key(*word));
            if is_verb && words.len() > 1 {
                send(manual.problem(&words, true), &span);
            }
        }
    }
    none(wrong);
    assert!(checked > 100, "{checked}");
}

/// A shell with the real binary and its own directory of limiters.
struct Shell(tempfile::TempDir);

impl Shell {
    fn new() -> Shell {
        let directory = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_shmlimit"), directory.path().join("shmlimit"))
            .unwrap();
        Shell(directory)
    }

    /// Runs a script that stops at the first failure. Returns its output and whether it succeeded.
    fn run(&self, script: &str) -> (String, bool) {
        let path = format!("{}:{}", self.0.path().display(), std::env::var("PATH").unwrap());
        let output = Command::new("sh")
            .args(["-euc", &format!("exec 2>&1\n{script}")])
            .current_dir(root())
            .env("PATH", path)
            .env("SHMLIMIT_DIR", self.0.path().join("limiters"))
            .output()
            .unwrap();
        (String::from_utf8(output.stdout).unwrap(), output.status.success())
    }
}

#[test]
fn every_console_in_the_pages_shows_the_real_output() {
    let mut shown = 0;
    for page in pages(root()) {
        for block in page.blocks.iter().filter(|block| block.language == "console") {
            // A command and its output up to the next command.
            for part in block.text.split("$ ").skip(1) {
                let (command, expected) = part.split_once('\n').unwrap();
                let output = Shell::new().run(command);
                assert_eq!(output, (expected.to_owned(), true), "{}: {command}", page.path.display());
                shown += 1;
            }
        }
    }
    assert!(shown >= 4, "{shown}");
}

#[test]
fn the_commands_for_operators_in_the_pages_work() {
    let (mut wrong, mut blocks) = (Vec::new(), 0);
    for page in pages(root()) {
        if !["docs/operators.md", "docs/breaker.md"].iter().any(|name| page.path == Path::new(name)) {
            continue;
        }
        for (at, block) in page.blocks.iter().enumerate() {
            let ours = block.text.lines().all(|line| line.starts_with("shmlimit ") && !line.contains("curl"));
            if block.language != "sh" || !ours {
                continue;
            }
            let shell = Shell::new();
            assert!(shell.run("shmlimit acquire tmdb").1);
            let (output, done) = shell.run(&block.text);
            let expected = page.blocks.get(at + 1).filter(|next| block.answered && next.language == "text");
            if !done || expected.is_some_and(|next| next.text != output) {
                wrong.push(format!("{}:\n{}{output}", page.path.display(), block.text));
            }
            blocks += 1;
        }
    }
    none(wrong);
    assert!(blocks >= 5, "{blocks}");
}

#[test]
fn r115_the_breaker_guide_names_every_reason_and_every_key() {
    let guide = std::fs::read_to_string(root().join("docs/breaker.md")).unwrap();
    let reasons: BTreeSet<_> = (0..=u8::MAX).map(|code| TransitionCause::from_code(code).as_str()).collect();
    assert_eq!(reasons.len(), 11);
    let reference = config::reference();
    let table = reference.split("In `[breaker]`:").nth(1).unwrap().split("\nIn `[").next().unwrap();
    let keys: Vec<_> = table.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    assert!(keys.len() > 20, "{keys:?}");
    let named = |word: &str| ["`", " "].iter().any(|end| guide.contains(&format!("`{word}{end}")));
    let missing = reasons.into_iter().chain(keys).filter(|word| !named(word));
    none(missing.map(str::to_owned).collect());
}

#[test]
fn the_checks_of_the_pages_find_errors() {
    let manual = Manual::read();
    let problem = |line: &str| commands(line).iter().find_map(|words| manual.problem(words, true));
    assert_eq!(problem("shmlimit run tmdb --timeout 5s -- curl --frobnicate"), None);
    assert_eq!(problem("SHMLIMIT_DIR=x shmlimit --dir there status --json | jq --raw"), None);
    assert_eq!(
        problem("shmlimit run tmdb --frobnicate -- true").as_deref(),
        Some("shmlimit run has no --frobnicate")
    );
    assert_eq!(
        problem("sudo usermod --groups shmlimit alice; cargo add shmlimit --path ../shmlimit --frobnicate"),
        None
    );
    assert_eq!(problem("a; shmlimit frobnicate").as_deref(), Some("shmlimit has no verb frobnicate"));
    let page = Page::parse(
        "docs/x.md".into(),
        "# A `b` C_d!\n[x](y.md#z) `[n](o)`\n```sh\n# no\n[a](b)\n```\n## A b C_d\n",
    );
    assert_eq!(page.links(), ["y.md#z"]);
    assert_eq!(page.anchors().into_iter().collect::<Vec<_>>(), ["a-b-c_d", "a-b-c_d-1"]);
    assert_eq!(page.spans(), ["b", "[n](o)"]);
}
