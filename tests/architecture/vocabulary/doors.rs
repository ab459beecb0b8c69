//! Reads the names that each door has from its source of truth: Rust and clap sources, the C headers, Python's type stubs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Rust types whose public methods and fields users call by name.
const TYPES: [&str; 14] = [
    "Advice",
    "Builder",
    "Grant",
    "Limiter",
    "Listing",
    "Outcome",
    "OwnedGrant",
    "PauseRequest",
    "PendingAcquire",
    "Rate",
    "Refusal",
    "Request",
    "Snapshot",
    "TestClock",
];

/// C structs whose members a caller reads or writes by name. Those of a snapshot are described in `src/limiter/fields.rs`.
const STRUCTS: [&str; 6] = ["request", "answer", "options", "outcome", "advice", "pause_options"];

/// Files of Python with names for users: the compiled module's stubs, and classes written in Python.
const PYTHON: [&str; 4] = ["_shmlimit.pyi", "_limiter.py", "_errors.py", "_snapshot_methods.py"];

fn read(path: &str) -> String {
    std::fs::read_to_string(super::super::root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn files(folder: &str, extension: &str) -> Vec<String> {
    fn find(folder: &std::path::Path, extension: &str, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                find(&path, extension, found);
            } else if path.extension().is_some_and(|is| is == extension) {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    find(&super::super::root().join(folder), extension, &mut found);
    found.sort();
    found.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

/// The word at the start of a text.
fn word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    &text[..end]
}

/// `Type::method` of [`TYPES`], `Advice::field`, and the functions of `metrics`.
pub fn rust() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for text in files("src", "rs") {
        let (mut of, mut hidden) = (None, false);
        for line in text.lines().take_while(|line| *line != "mod tests {") {
            if let Some(rest) = line.strip_prefix("impl") {
                // `impl<'u> Request<'u> {`, but no trait.
                let name = rest.trim_start_matches(|c| c != ' ').trim_start();
                of = (!line.contains(" for ")).then(|| word(name).to_owned());
            } else if line == "pub struct Advice {" {
                of = Some("Advice".to_owned());
            } else if line == "}" {
                of = None;
            }
            let Some(owner) = of.as_deref().filter(|owner| TYPES.contains(owner)) else { continue };
            let Some(item) = line.strip_prefix("    ").filter(|item| !item.starts_with(' ')) else {
                continue;
            };
            if let Some(rest) = item.strip_prefix("pub ") {
                let rest = ["const ", "async "]
                    .iter()
                    .fold(rest, |rest, prefix| rest.strip_prefix(prefix).unwrap_or(rest));
                let name = word(rest.strip_prefix("fn ").unwrap_or(rest));
                if !hidden {
                    names.insert(format!("{owner}::{name}"));
                }
            }
            hidden = item.contains("doc(hidden)") || (hidden && item.starts_with("#["));
        }
    }
    for line in read("src/metrics/mod.rs").lines() {
        if let Some(rest) = line.strip_prefix("pub fn ") {
            names.insert(format!("metrics::{}", word(rest)));
        }
    }
    names
}

/// Functions, and `struct.member` of [`STRUCTS`]. Fields that every list and struct of C needs (sizes, counts) are
/// left out.
pub fn c() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let (mut of, mut comment) = (None, false);
    for line in read("include/shmlimit.h").lines() {
        comment = (comment || line.trim_start().starts_with("/*")) && !line.contains("*/");
        if comment || line.trim_start().starts_with(['*', '/']) {
            continue;
        }
        if let Some(rest) = line.strip_prefix("typedef struct ").filter(|_| line.ends_with('{')) {
            of = rest.strip_prefix("shmlimit_").map(|rest| word(rest).to_owned());
        } else if line.starts_with('}') {
            of = None;
        } else if let Some(of) = &of {
            // `int (*stop)(void *context);` or `const char *name;`
            let name = match line.split_once("(*") {
                Some((_, rest)) => word(rest),
                None => line.trim_end_matches(';').rsplit([' ', '*']).next().unwrap_or_default(),
            };
            let is_c_only = matches!(name, "size" | "reserved") || name.ends_with("_count");
            if STRUCTS.contains(&of.as_str()) && !is_c_only && !name.is_empty() {
                names.insert(format!("{of}.{name}"));
            }
        } else if let Some((before, _)) = line.split_once('(') {
            let name = before.rsplit([' ', '*']).next().unwrap_or_default();
            if name.starts_with("shmlimit_") && !name.ends_with("_free") && !line.starts_with(' ') {
                names.insert(name.to_owned());
            }
        }
    }
    names
}

/// `Class.method`, `Class.new` for a constructor, `argument=` for what any of them takes, and functions; without those that
/// begin with an underscore.
pub fn python() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in PYTHON {
        let (mut class, mut function) = (String::new(), None);
        for line in read(&format!("ffi/python/python/shmlimit/{file}")).lines() {
            if let Some(rest) = line.strip_prefix("class ") {
                class = format!("{}.", word(rest));
            } else if !line.is_empty() && !line.starts_with([' ', ')']) {
                class = String::new();
            }
            let indented = if class.is_empty() { Some(line) } else { line.strip_prefix("    ") };
            let Some(item) = indented else { continue };
            let item = item.strip_prefix("async ").unwrap_or(item);
            if let Some(rest) = item.strip_prefix("def ") {
                let name = word(rest);
                let is_public = !name.starts_with('_') || name == "__new__";
                function = is_public.then(|| format!("{class}{}", name.trim_matches('_')));
                names.extend(function.clone());
                let (_, arguments) = item.split_once('(').unwrap_or_default();
                if function.is_some() {
                    let inside = arguments.split_once(") ->").map_or("", |(inside, _)| inside);
                    names.extend(named_arguments(inside));
                }
                if item.contains(") ->") {
                    function = None;
                }
            } else if item.starts_with(')') {
                function = None;
            } else if function.is_some() {
                names.extend(named_arguments(item.trim()));
            } else if class.is_empty() && item.starts_with("presets:") {
                names.insert("presets".to_owned());
            }
        }
    }
    names.retain(|name| !name.contains("._"));
    names
}

/// The names before a colon on the top level of a list of arguments.
fn named_arguments(list: &str) -> impl Iterator<Item = String> + '_ {
    let mut depth = 0_i32;
    list.split(move |c: char| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        c == ',' && depth == 0
    })
    .filter_map(|argument| argument.trim().split_once(':').map(|(name, _)| name))
    .filter(|name| word(name) == *name && !name.starts_with('_') && *name != "cls")
    .map(|name| format!("{name}="))
}

/// Verbs, and `verb --option`; an option of several verbs or of all is `--option`.
pub fn cli() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for line in read("cli/src/commands/mod.rs").lines().skip_while(|line| *line != "verbs! {") {
        if let Some((_, rest)) = line.split_once(" \"") {
            names.extend(rest.split_once('"').map(|(verb, _)| verb.to_owned()));
        }
    }
    for text in files("cli/src", "rs") {
        let (mut attribute, mut inside) = (String::new(), false);
        for line in text.lines().map(str::trim) {
            if line.starts_with("#[arg(") {
                (attribute, inside) = (String::new(), true);
            }
            if inside {
                attribute += line;
                inside = !line.ends_with(")]");
            } else if !attribute.is_empty() && !line.starts_with(['#', '/']) {
                names.extend(option(&attribute, word(line.strip_prefix("pub ").unwrap_or(line))));
                attribute.clear();
            }
        }
    }
    names
}

/// The long option that an attribute gives its field, if it gives one and does not hide it.
fn option(attribute: &str, field: &str) -> Option<String> {
    let parts: Vec<&str> = attribute.trim_start_matches("#[arg(").split([',', ')']).map(str::trim).collect();
    let named =
        parts.iter().find_map(|part| part.strip_prefix("long = \"")).map(|name| name.trim_end_matches('"'));
    let is_hidden = parts.iter().any(|part| part.starts_with("hide = true"));
    let name =
        named.map(str::to_owned).or_else(|| parts.contains(&"long").then(|| field.replace('_', "-")))?;
    (!is_hidden).then(|| format!("--{name}"))
}

/// Keys of the JSON objects of these verbs' answers. `simulate`, logs and metrics have names of their own.
pub fn json() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for verb in ["acquire", "force", "pause", "record", "rm", "set"] {
        let text = read(&format!("cli/src/commands/{verb}.rs"));
        let source = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (before, after) in source.match_indices("\": ").map(|(at, _)| (&source[..at], &source[at..])) {
            let key = before.rsplit('"').next().unwrap_or_default();
            if !key.is_empty() && word(key) == key && !after.starts_with("\": &'") {
                names.insert(key.to_owned());
            }
        }
    }
    names
}

/// The names of every enum that is declared with `named_enum!`.
pub fn enums() -> BTreeMap<String, BTreeSet<String>> {
    let mut enums: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for text in files("src", "rs").into_iter().chain(files("crates/kernel/src", "rs")) {
        for part in text
            .split("\nshmlimit_kernel::named_enum! {")
            .skip(1)
            .chain(text.split("\ncrate::named_enum! {").skip(1))
        {
            let Some((_, body)) = part.split_once("enum ") else { continue };
            let name = word(body).to_owned();
            let variants = body.lines().take_while(|line| line.trim() != "}");
            let texts: BTreeSet<String> = variants
                .filter_map(|line| line.split_once("=> \"")?.1.split_once('"'))
                .map(|(text, _)| text.to_owned())
                .collect();
            if !texts.is_empty() {
                enums.insert(name, texts);
            }
        }
    }
    enums
}

/// Every macro of a C header that begins with `SHMLIMIT_`.
pub fn constants(header: &str) -> BTreeSet<String> {
    let defines = read(header);
    let names = defines.lines().filter_map(|line| line.strip_prefix("#define SHMLIMIT_")).map(word);
    names.map(|name| format!("SHMLIMIT_{name}")).collect()
}

/// `Name = Literal["a", "b"]` of Python: the names that a type checker knows.
pub fn literals() -> BTreeMap<String, BTreeSet<String>> {
    let mut literals = BTreeMap::new();
    for text in files("ffi/python/python/shmlimit", "py") {
        for (before, after) in
            text.match_indices(" = Literal[").map(|(at, mark)| (&text[..at], &text[at + mark.len()..]))
        {
            let name = before.rsplit('\n').next().unwrap_or_default();
            let list = after.split_once(']').map_or("", |(list, _)| list);
            literals.insert(name.to_owned(), list.split('"').skip(1).step_by(2).map(str::to_owned).collect());
        }
    }
    literals
}
