//! What may use what, and who may be unsafe.

use super::lexer::{Token, tokens};

/// A file that is longer cannot be read in one sitting.
pub const LONGEST_FILE: usize = 450;

/// The rooms a room of the library may use, besides itself. Dependencies point down only.
pub fn below(room: &str) -> Option<&'static [&'static str]> {
    Some(match room {
        "kernel" | "sys" => &[],
        "error" => &["kernel", "config", "environment"],
        "presets" | "quantity" | "headers" => &["kernel"],
        "settings" => &["kernel", "quantity"],
        "describe" | "environment" => &["kernel", "quantity", "settings"],
        "paths" => &["error", "sys"],
        "config" => &["kernel", "presets", "quantity", "settings"],
        "segment" => &["kernel", "sys", "error", "paths"],
        "limiter" => &[
            "segment",
            "kernel",
            "sys",
            "error",
            "paths",
            "presets",
            "describe",
            "config",
            "headers",
            "environment",
        ],
        _ => return None,
    })
}

/// The rooms that are pure, and how to complain about them.
const PURE: [(&str, &str); 2] = [("kernel", "the kernel uses"), ("headers", "headers use")];

/// Rooms of std, and crates, through which pure code would reach clocks, files, threads or other processes.
const WORLD: [&str; 9] = ["fs", "time", "sync", "thread", "io", "net", "process", "env", "os"];
const WORLDLY_CRATES: [&str; 10] =
    ["nix", "libc", "memmap2", "fs4", "tracing", "loom", "clap", "serde", "serde_json", "toml"];

/// One file.
pub struct Source {
    name: String,
    text: String,
    tokens: Vec<Token>,
}

impl Source {
    pub fn new(name: &str, text: &str) -> Source {
        Source { name: name.to_owned(), text: text.to_owned(), tokens: tokens(text) }
    }

    /// Its module path within the library; `None` for the facade, the tool and the C ABI.
    fn module(&self) -> Option<Vec<&str>> {
        let path = self.name.strip_prefix("src/")?.strip_suffix(".rs")?;
        let mut module: Vec<&str> = path.split('/').collect();
        if module == ["lib"] || module[0] == "bin" {
            return None;
        }
        if module.last() == Some(&"mod") {
            module.pop();
        }
        Some(module)
    }

    fn is(&self, i: usize, text: &str) -> bool {
        self.tokens.get(i).is_some_and(|token| token.text == text)
    }

    fn say(&self, token: usize, what: &str) -> String {
        format!("{}:{}: {what}", self.name, self.tokens[token].line + 1)
    }

    /// The first names after a path's beginning: several if a group in braces follows.
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

    /// Every name at the root of the crate that this file mentions, and where.
    fn names_at_root(&self, module: &[&str]) -> Vec<(usize, &str)> {
        let mut found = Vec::new();
        // Inline modules and the brace depth at which each of them ends.
        let (mut inline, mut depth) = (Vec::new(), 0);
        for i in 0..self.tokens.len() {
            let starts_path = !(i >= 1 && self.is(i - 1, "::")) && self.is(i + 1, "::");
            match self.tokens[i].text.as_str() {
                "{" => depth += 1,
                "}" => {
                    depth -= 1;
                    inline.retain(|end| *end <= depth);
                }
                "mod" if self.is(i + 2, "{") => inline.push(depth + 1),
                "crate" if starts_path => found.extend(self.heads(i + 2).into_iter().map(|head| (i, head))),
                "super" if starts_path => {
                    let mut end = i;
                    while self.is(end, "super") && self.is(end + 1, "::") {
                        end += 2;
                    }
                    if (end - i) / 2 >= module.len() + inline.len() {
                        found.extend(self.heads(end).into_iter().map(|head| (i, head)));
                    }
                }
                _ => {}
            }
        }
        found
    }

    /// Where paths through `first` begin, and the names that follow it.
    fn paths_through(&self, first: &str) -> Vec<(usize, &str)> {
        let starts =
            |i: &usize| self.is(*i, first) && self.is(i + 1, "::") && !(*i >= 1 && self.is(i - 1, "::"));
        (0..self.tokens.len())
            .filter(starts)
            .flat_map(|i| self.heads(i + 2).into_iter().map(move |head| (i, head)))
            .collect()
    }
}

/// All that is wrong with a file.
pub fn all_problems(source: &Source) -> Vec<String> {
    [arrows, purity, public_interface, evasions, unsafe_rooms, safety_reasons, length]
        .into_iter()
        .flat_map(|check| check(source))
        .collect()
}

fn arrows(source: &Source) -> Vec<String> {
    let Some(module) = source.module() else { return Vec::new() };
    let Some(allowed) = below(module[0]) else {
        return vec![format!("{}: {} is no room of the house", source.name, module[0])];
    };
    let points_up = |head: &&str| **head != *module[0] && !allowed.contains(head);
    let say = |(i, head): (usize, &str)| {
        points_up(&head).then(|| source.say(i, &format!("{} uses {head}", source.name)))
    };
    source.names_at_root(&module).into_iter().filter_map(say).collect()
}

fn purity(source: &Source) -> Vec<String> {
    let Some(module) = source.module() else { return Vec::new() };
    let Some((_, complaint)) = PURE.iter().find(|(room, _)| *room == module[0]) else { return Vec::new() };
    let through = |root| source.paths_through(root).into_iter().filter(|(_, head)| WORLD.contains(head));
    let worldly = ["std", "core", "alloc"].into_iter().flat_map(through);
    let crates = WORLDLY_CRATES.into_iter().flat_map(|name| {
        let paths = source.paths_through(name).into_iter();
        paths.map(move |(i, _)| (i, name))
    });
    worldly.chain(crates).map(|(i, name)| source.say(i, &format!("{complaint} {name}"))).collect()
}

fn public_interface(source: &Source) -> Vec<String> {
    if !source.name.starts_with("src/bin/") {
        return Vec::new();
    }
    let hidden = source.paths_through("shmlimit").into_iter().filter(|(_, head)| *head == "internals");
    hidden.map(|(i, _)| source.say(i, "the tool uses internals, which are for tests")).collect()
}

/// Ways to have another room's text without naming the room.
fn evasions(source: &Source) -> Vec<String> {
    if source.module().is_none() {
        return Vec::new();
    }
    let found = (0..source.tokens.len()).filter_map(|i| {
        if source.is(i, "#") && source.is(i + 1, "[") && source.is(i + 2, "path") {
            Some(source.say(i, "#[path] hides which room a file belongs to"))
        } else if source.is(i, "include") && source.is(i + 1, "!") {
            Some(source.say(i, "include! hides which room a file belongs to"))
        } else {
            None
        }
    });
    found.collect()
}

fn unsafe_rooms(source: &Source) -> Vec<String> {
    let name = &source.name;
    if name.starts_with("src/sys/") || name == "src/segment/words.rs" || name.starts_with("ffi/") {
        return Vec::new();
    }
    let unsafe_words = (0..source.tokens.len()).filter(|i| source.is(*i, "unsafe"));
    unsafe_words.map(|i| source.say(i, "unsafe code belongs into sys, segment/words.rs or ffi")).collect()
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
    // A statement may have begun a few lines earlier; it did not before a line that ends one.
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
