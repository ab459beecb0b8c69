//! Checks that files named in backticks by comments and pages exist: a page that names a moved file misleads readers.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The folders that are searched for names, and whose files may be named. `ffi/python` is in `ffi`.
const FOLDERS: [&str; 9] =
    ["crates", "src", "cli", "ffi", "tests", "loom-tests", "benches", "examples", "docs"];

fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            // Skip the build products of the fuzzer and of the Python package.
            if path.file_name().is_some_and(|name| name != "target") {
                files(&path, found);
            }
        } else {
            found.push(path);
        }
    }
}

/// The components of a path, without `src`: comments leave that out.
fn parts(path: &str) -> Vec<&str> {
    path.split('/').filter(|part| *part != "src").collect()
}

/// Every way to name a file: its path, with any number of leading folders left out.
struct Names(BTreeSet<String>);

impl Names {
    fn new<'p>(paths: impl Iterator<Item = &'p str>) -> Names {
        let mut names = BTreeSet::new();
        for path in paths {
            let parts = parts(path);
            names.extend((0..parts.len()).map(|start| parts[start..].join("/")));
        }
        Names(names)
    }

    /// The Rust files that `text` names in backticks and that do not exist.
    fn missing<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let named = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
        let is_path = |name: &&str| {
            name.len() > 3 && name.ends_with(".rs") && !name.contains(['*', ' ', '{', '"', '<', '('])
        };
        named.filter(is_path).filter(|name| !self.0.contains(&parts(name).join("/"))).collect()
    }
}

#[test]
fn every_named_file_exists() {
    let root = super::root();
    let mut found = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    for folder in FOLDERS {
        files(&root.join(folder), &mut found);
    }
    let relative = |path: &PathBuf| {
        path.strip_prefix(root).unwrap().to_str().unwrap().replace(std::path::MAIN_SEPARATOR, "/")
    };
    let paths: Vec<String> = found.iter().map(relative).collect();
    let names = Names::new(paths.iter().map(String::as_str));
    let mut wrong = Vec::new();
    for (file, path) in found.iter().zip(&paths) {
        if path.ends_with(".rs") || path.ends_with(".md") {
            let text = std::fs::read_to_string(file).unwrap();
            wrong.extend(names.missing(&text).into_iter().map(|name| format!("{path} names `{name}`")));
        }
    }
    assert!(wrong.is_empty(), "no such file:\n{}", wrong.join("\n"));
}

#[test]
fn a_name_without_a_file_is_found() {
    let names = Names::new(["crates/kernel/src/queue/order.rs"].into_iter());
    // The checker also reads this file, so it contains no backticks here.
    let quoted = |text: &str| text.replace('\'', "`");
    let missing = |text: &str| names.missing(&quoted(text)).join(" ");
    assert_eq!(missing("see 'order.rs', 'queue/order.rs', 'kernel/queue/order.rs'"), "");
    assert_eq!(missing("see 'order', 'kernel/order.rs' and 'gone.rs'"), "kernel/order.rs gone.rs");
}
