//! The order of include/shmlimit.h: groups with a heading, in the order in which a program needs them.
//!
//! cbindgen writes all constants first, then all structs, then all functions. [`arranged`] sorts them into groups.
//! Each group holds the items of some source files, in the order of the source. An item that another item needs
//! comes before it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A heading and the source files of its items.
pub type Group = (&'static str, &'static [&'static str]);

pub const GROUPS: [Group; 9] = [
    ("Version", &["version.rs"]),
    ("Results and errors", &["code.rs", "boundary.rs"]),
    ("Opening and closing a limiter", &["limiter.rs"]),
    ("Asking for a call", &["request.rs", "grant.rs"]),
    ("Ending a call", &["outcome.rs"]),
    ("Waiting in an event loop", &["pending.rs"]),
    ("Operating a limiter", &["operate.rs", "pause.rs", "remove.rs"]),
    ("Looking at limiters", &["snapshot.rs", "snapshot/structs.rs", "listing.rs", "text.rs"]),
    ("Tests with a virtual clock", &["test_clock.rs"]),
];

/// The version macros, made from Cargo.toml's version.
fn version() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let [major, minor, patch] =
        [env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"), env!("CARGO_PKG_VERSION_PATCH")];
    format!(
        "/** The version of this header. Compare it with shmlimit_version(), which is that of the library. */\n\
         #define SHMLIMIT_VERSION \"{version}\"\n\
         #define SHMLIMIT_VERSION_MAJOR {major}\n\
         #define SHMLIMIT_VERSION_MINOR {minor}\n\
         #define SHMLIMIT_VERSION_PATCH {patch}\n\n\
         /** Whether this header has this version or a later one: #if SHMLIMIT_VERSION_AT_LEAST(0, 2, 0). */\n\
         #define SHMLIMIT_VERSION_AT_LEAST(major, minor, patch) \\\n\
         \x20   (SHMLIMIT_VERSION_MAJOR > (major) || (SHMLIMIT_VERSION_MAJOR == (major) && \\\n\
         \x20    (SHMLIMIT_VERSION_MINOR > (minor) || (SHMLIMIT_VERSION_MINOR == (minor) && \\\n\
         \x20     SHMLIMIT_VERSION_PATCH >= (patch)))))\n"
    )
}

const EXTERN_C: &str = "#ifdef __cplusplus\nextern \"C\" {\n#endif // __cplusplus\n";
const EXTERN_C_END: &str = "#ifdef __cplusplus\n}  // extern \"C\"\n#endif  // __cplusplus\n";

/// Sorts the output of cbindgen into the order of [`GROUPS`]. `names_in` returns the names of the items in a source
/// file.
pub fn arranged(header: &str, names_in: impl Fn(&Path) -> Vec<String>) -> String {
    let header = header.replace(EXTERN_C, "").replace(EXTERN_C_END, "");
    let (start, rest) = header.split_at(header.find("\n/**\n").expect("items") + 1);
    let (items, end) = rest.split_at(rest.rfind("#endif").expect("the end of the include guard"));
    let items = items.split("\n/**\n").enumerate();
    let items = items.map(|(i, item)| if i == 0 { item.to_owned() } else { format!("/**\n{item}") });
    let mut items: BTreeMap<String, String> = items
        .map(|item| {
            let item = one_line_comment(item.trim());
            (name_of(code_of(&item)), item)
        })
        .collect();
    let names: BTreeSet<String> = items.keys().cloned().collect();
    let mut out = format!("{start}{EXTERN_C}");
    for (heading, files) in GROUPS {
        let line = "-".repeat(74_usize.saturating_sub(heading.len()));
        out += &format!("\n/* ---- {heading} {line} */\n\n");
        if files.contains(&"version.rs") {
            out += &version();
            out.push('\n');
        }
        for file in files {
            for name in names_in(Path::new(file)) {
                put(&name, &names, &mut items, &mut out);
            }
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
    assert!(items.is_empty(), "GROUPS lacks the files of {:?}", items.keys());
    format!("{out}\n{EXTERN_C_END}\n{end}")
}

/// Writes an item. Items that it needs are written first, unless they are there already.
fn put(name: &str, names: &BTreeSet<String>, items: &mut BTreeMap<String, String>, out: &mut String) {
    let Some(item) = items.remove(name) else { return };
    let code = item.lines().filter(|line| !is_comment(line));
    for word in code.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_')) {
        if names.contains(word) {
            put(word, names, items, out);
        }
    }
    // A constant with a one-line comment belongs to a block of constants.
    let constant = |item: &str| code_of(item).starts_with("#define") && item.lines().count() == 2;
    let before = out.trim_end().lines().rev().take(2).collect::<Vec<_>>();
    let follows = before.len() == 2 && constant(&format!("{}\n{}", before[1], before[0]));
    if constant(&item) && follows {
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
    *out += &item;
    *out += "\n\n";
}

/// Whether a line of a header belongs to a comment.
pub fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with(['*', '/'])
}

/// An item without the comment above it.
fn code_of(item: &str) -> &str {
    item.split_once("*/\n").map_or(item, |(_, code)| code)
}

/// The name that an item declares.
fn name_of(code: &str) -> String {
    let first = match code.split_once('{') {
        // typedef struct NAME {
        Some((start, _)) => start.split_whitespace().last(),
        // #define NAME VALUE
        None if code.starts_with("#define") => code.split_whitespace().nth(1),
        // typedef TYPE NAME;
        None if code.starts_with("typedef") => code.trim_end_matches(';').split_whitespace().last(),
        // TYPE NAME(ARGUMENTS);
        None => code.split('(').next().and_then(|start| start.split(['*', ' ']).next_back()),
    };
    first.unwrap_or_else(|| panic!("an item without a name: {code}")).to_owned()
}

/// Puts a one-line comment, such as that of most constants and fields, onto a single line.
fn one_line_comment(item: &str) -> String {
    let mut out: Vec<String> = Vec::new();
    let lines: Vec<&str> = item.lines().collect();
    let mut i = 0;
    while i < lines.len() {
        let indent = lines[i].len() - lines[i].trim_start().len();
        let is_short = lines[i].trim() == "/**" && lines.get(i + 2).is_some_and(|line| line.trim() == "*/");
        match lines.get(i + 1).and_then(|line| line.trim().strip_prefix("* ")) {
            Some(text) if is_short && indent + text.len() <= 113 => {
                out.push(format!("{}/** {text} */", " ".repeat(indent)));
                i += 3;
            }
            _ => {
                out.push(lines[i].to_owned());
                i += 1;
            }
        }
    }
    out.join("\n")
}
