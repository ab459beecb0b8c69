//! Rules that Cargo cannot enforce: purity, places of `unsafe`, and the length of files.

use super::lexer::{Token, tokens};

/// The most lines of a file; a longer file is too long to read in one sitting.
pub const LONGEST_FILE: usize = 450;

/// The folders with pure code, and the beginning of the complaint about each.
const PURE: [(&str, &str); 3] = [
    ("crates/kernel/src/", "the kernel uses"),
    ("src/headers/", "the header parsers use"),
    (METRICS, "the text of metrics uses"),
];

/// Snapshots hold times of the standard library, so this folder may name them. It may not read a clock.
const METRICS: &str = "src/metrics/";

/// The places where `unsafe` is allowed.
const UNSAFE: [&str; 3] = ["crates/segment/src/sys/", "crates/segment/src/words.rs", "ffi/"];

/// Modules of std, and crates, through which pure code would reach clocks, files, threads or other processes.
const WORLD: [&str; 9] = ["fs", "time", "sync", "thread", "io", "net", "process", "env", "os"];
const WORLDLY_CRATES: [&str; 10] =
    ["nix", "libc", "memmap2", "fs4", "tracing", "loom", "clap", "serde", "serde_json", "toml"];

/// One source file.
pub struct Source {
    /// Its path in the repository.
    pub name: String,
    text: String,
    pub tokens: Vec<Token>,
}

impl Source {
    pub fn new(name: &str, text: &str) -> Source {
        Source { name: name.to_owned(), text: text.to_owned(), tokens: tokens(text) }
    }

    pub fn is(&self, i: usize, text: &str) -> bool {
        self.tokens.get(i).is_some_and(|token| token.text == text)
    }

    fn say(&self, token: usize, what: &str) -> String {
        format!("{}:{}: {what}", self.name, self.tokens[token].line + 1)
    }

    /// The first names after the beginning of a path: several if a group in braces follows.
    fn heads(&self, start: usize) -> Vec<&str> {
        if !self.is(start, "{") {
            return self.tokens.get(start).map(|token| token.text.as_str()).into_iter().collect();
        }
        let (mut heads, mut depth, mut fresh) = (Vec::new(), 0, false);
        for token in &self.tokens[start..] {
            match token.text.as_str() {
                "{" => (depth, fresh) = (depth + 1, depth == 0),
                "}" if depth == 1 => break,
                "}" => depth -= 1,
                "," => fresh = depth == 1,
                name if fresh => {
                    heads.push(name);
                    fresh = false;
                }
                _ => {}
            }
        }
        heads
    }

    /// The positions of paths through `first`, with the names that follow it.
    fn paths_through(&self, first: &str) -> Vec<(usize, &str)> {
        let starts =
            |i: &usize| self.is(*i, first) && self.is(i + 1, "::") && !(*i >= 1 && self.is(i - 1, "::"));
        (0..self.tokens.len())
            .filter(starts)
            .flat_map(|i| self.heads(i + 2).into_iter().map(move |head| (i, head)))
            .collect()
    }
}

/// All violations in a file.
pub fn all_problems(source: &Source) -> Vec<String> {
    let checks = [purity, evasions, unsafe_places, safety_reasons, length];
    checks.into_iter().flat_map(|check| check(source)).collect()
}

fn purity(source: &Source) -> Vec<String> {
    let Some((_, complaint)) = PURE.iter().find(|(folder, _)| source.name.starts_with(folder)) else {
        return Vec::new();
    };
    let names_times = source.name.starts_with(METRICS);
    let is_worldly = |head: &str| WORLD.contains(&head) && !(names_times && head == "time");
    let through = |root| source.paths_through(root).into_iter().filter(|(_, head)| is_worldly(head));
    let worldly = ["std", "core", "alloc"].into_iter().flat_map(through);
    let crates = WORLDLY_CRATES.into_iter().flat_map(|name| {
        let paths = source.paths_through(name).into_iter();
        paths.map(move |(i, _)| (i, name))
    });
    let clocks = (1..source.tokens.len())
        .filter(|i| source.is(i - 1, "::") && (source.is(*i, "now") || source.is(*i, "elapsed")))
        .map(|i| (i, "a clock"));
    worldly
        .chain(crates)
        .chain(clocks)
        .map(|(i, name)| source.say(i, &format!("{complaint} {name}")))
        .collect()
}

/// Ways to include a module's text without naming the module.
fn evasions(source: &Source) -> Vec<String> {
    let found = (0..source.tokens.len()).filter_map(|i| {
        if source.is(i, "#") && source.is(i + 1, "[") && source.is(i + 2, "path") {
            Some(source.say(i, "#[path] hides which module a file belongs to"))
        } else if source.is(i, "include") && source.is(i + 1, "!") {
            Some(source.say(i, "include! hides which module a file belongs to"))
        } else {
            None
        }
    });
    found.collect()
}

fn unsafe_places(source: &Source) -> Vec<String> {
    if UNSAFE.iter().any(|place| source.name.starts_with(place)) {
        return Vec::new();
    }
    let unsafe_words = (0..source.tokens.len()).filter(|i| source.is(*i, "unsafe"));
    unsafe_words
        .map(|i| source.say(i, "unsafe code belongs in segment/sys, segment/words.rs or ffi"))
        .collect()
}

fn safety_reasons(source: &Source) -> Vec<String> {
    let lines: Vec<&str> = source.text.lines().map(str::trim).collect();
    let needs_reason =
        |i: &usize| source.is(*i, "unsafe") && (source.is(i + 1, "{") || source.is(i + 1, "impl"));
    let unexplained = (0..source.tokens.len())
        .filter(needs_reason)
        .filter(|i| !explained(&lines[..source.tokens[*i].line]));
    unexplained.map(|i| source.say(i, "unsafe without a SAFETY: comment")).collect()
}

/// Whether the comment right above the statement that follows these lines says SAFETY.
fn explained(above: &[&str]) -> bool {
    let is_comment = |line: &&&str| line.starts_with("//");
    // A statement may begin a few lines earlier, but not before a line that ends another one.
    let goes_on = |line: &&&str| !is_comment(line) && !line.is_empty() && !line.ends_with([';', '{', '}']);
    let rest = &above[..above.len() - above.iter().rev().take_while(goes_on).count()];
    rest.iter().rev().take_while(is_comment).any(|line| line.starts_with("// SAFETY:"))
}

fn length(source: &Source) -> Vec<String> {
    let lines = source.text.lines().count();
    if lines <= LONGEST_FILE {
        return Vec::new();
    }
    vec![format!("{}: {lines} lines, more than {LONGEST_FILE}: give it a second file", source.name)]
}
