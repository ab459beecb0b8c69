//! Rules of the architecture (docs/design/architecture.md) that Cargo cannot enforce: no import cycles, `unsafe` only
//! in certain places and with a reason, a pure kernel, pure header parsers, and no file that is too long.
//!
//! The checkers work on text, so a test first shows each of them bad snippets that it must refuse.

mod cycles;
mod lexer;
mod named_files;
mod rules;
mod snapshot_fields;
mod vocabulary;

use cycles::Crate;
use rules::{Source, all_problems};
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn sources(folders: &[&str]) -> Vec<Source> {
    let mut files = Vec::new();
    for folder in folders {
        rust_files(&root().join(folder), &mut files);
    }
    let source = |path: &PathBuf| {
        let name =
            path.strip_prefix(root()).unwrap().to_str().unwrap().replace(std::path::MAIN_SEPARATOR, "/");
        Source::new(&name, &std::fs::read_to_string(path).unwrap())
    };
    files.iter().map(source).collect()
}

/// The crates of the workspace.
const CRATES: [&str; 6] =
    ["crates/kernel/src/", "crates/segment/src/", "src/", "cli/src/", "ffi/src/", "ffi/python/src/"];

#[test]
fn every_source_file_keeps_the_rules() {
    let sources = sources(&CRATES);
    assert!(sources.len() > 250, "only {} files found: this test no longer sees the source", sources.len());
    let problems: Vec<String> = sources.iter().flat_map(all_problems).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn modules_of_a_folder_use_each_other_in_one_direction() {
    let sources = sources(&CRATES);
    let cycles: Vec<String> = CRATES
        .iter()
        .flat_map(|folder| {
            Crate::new(folder, &sources).cycles().into_iter().map(move |cycle| format!("{folder}: {cycle}"))
        })
        .collect();
    assert!(cycles.is_empty(), "{}", cycles.join("\n"));
}

#[test]
fn the_kernel_forbids_unsafe_code() {
    let kernel = std::fs::read_to_string(root().join("crates/kernel/src/lib.rs")).unwrap();
    assert!(kernel.contains("#![forbid(unsafe_code)]"));
}

fn problems(name: &str, text: &str) -> Vec<String> {
    all_problems(&Source::new(name, text))
}

fn refused(name: &str, text: &str, because: &str) {
    let problems = problems(name, text);
    assert!(
        problems.iter().any(|p| p.contains(because)),
        "{name}: {text:?} gave {problems:?}, not {because:?}"
    );
}

fn cycles_of(files: &[(&str, &str)]) -> Vec<String> {
    let sources: Vec<Source> =
        files.iter().map(|(name, text)| Source::new(&format!("src/{name}"), text)).collect();
    Crate::new("src/", &sources).cycles()
}

#[test]
fn a_cycle_is_found_however_it_is_written() {
    for back in [
        "use crate::a::A;",
        "use crate::{\n    c::C,\n    a::{self, A},\n};",
        "fn f() { crate::a::f() }",
        "use super::a;",
        "use super::{a as other};",
        "mod inner { use super::super::a; }",
        "use crate :: A;",
        "use super::A;",
        "use crate::Renamed;",
    ] {
        let facade = "mod a; mod b; mod c; pub use a::A; pub use a::B as Renamed;";
        let found = cycles_of(&[("lib.rs", facade), ("a.rs", "use crate::b;"), ("b.rs", back), ("c.rs", "")]);
        assert_eq!(found, ["the crate: a -> b; b -> a"], "{back}");
    }
    // A cycle of three in a folder.
    let found = cycles_of(&[
        ("lib.rs", "mod x;"),
        ("x/mod.rs", "mod a; mod b; mod c; pub use b::B;"),
        ("x/a.rs", "use super::B;"),
        ("x/b.rs", "use super::c::C;"),
        ("x/c.rs", "use crate::x::a;"),
    ]);
    assert_eq!(found, ["x: a -> b; b -> c; c -> a"]);
}

#[test]
fn uses_in_one_direction_are_not_a_cycle() {
    for (a, b) in [
        ("use crate::b;", "// use crate::a;\n/* crate::a */ const A: &str = \"crate::a::x\";"),
        ("use crate::b;", "use crate::Facade; use std::a; use other::a::A;"),
        ("use crate::b;", "mod tests { use crate::a; } mod inner { use super::a; }"),
        ("use crate::b; mod inner { use super::c; }", "use super::c;"),
    ] {
        let files =
            [("lib.rs", "mod a; mod b; mod c; struct Facade;"), ("a.rs", a), ("b.rs", b), ("c.rs", "")];
        assert_eq!(cycles_of(&files), Vec::<String>::new(), "{b}");
    }
}

#[test]
fn including_another_modules_text_is_refused() {
    refused("src/limiter/mod.rs", "#[path = \"../config/mod.rs\"] mod other;", "#[path]");
    refused("src/limiter/mod.rs", "include!(\"../config/mod.rs\");", "include!");
}

#[test]
fn the_kernel_the_header_parsers_and_the_text_of_metrics_may_not_use_clocks_files_or_threads() {
    for text in [
        "use std::fs::File;",
        "use std::{fmt, time::Instant};",
        "fn f() { std::thread::yield_now(); }",
        "use core::{sync::atomic::AtomicU64};",
        "use nix::libc;",
        "fn f() { tracing::warn!(\"x\"); }",
    ] {
        refused("crates/kernel/src/decide.rs", text, "the kernel");
        refused("src/headers/date.rs", text, "the header parsers use");
    }
    for text in ["use std::fs::File;", "use std::time::SystemTime; fn f() { SystemTime::now(); }"] {
        refused("src/metrics/writer.rs", text, "the text of metrics uses");
    }
    assert!(problems("src/metrics/writer.rs", "use std::time::{Duration, SystemTime};").is_empty());
    assert!(
        problems("crates/kernel/src/decide.rs", "use std::{fmt, ops::Range}; use bytemuck::Pod;").is_empty()
    );
    assert!(problems("crates/segment/src/lock.rs", "use std::time::Duration;").is_empty());
}

#[test]
fn unsafe_outside_its_places_is_found() {
    let documented = "// SAFETY: I1.\nfn f() { unsafe { g() } }";
    refused("crates/segment/src/lock.rs", documented, "unsafe code");
    refused("src/limiter/mod.rs", "unsafe impl Send for X {}", "unsafe code");
    assert!(problems("crates/segment/src/lock.rs", "#![forbid(unsafe_code)] // unsafe\n").is_empty());
}

#[test]
fn unsafe_without_its_reason_is_found() {
    for text in [
        "fn f() {\n    unsafe { g() }\n}",
        "fn f() {\n    // It is fine.\n    let x = unsafe { g() };\n}",
        "// SAFETY: about something else.\nfn h() {}\nfn f() {\n    unsafe { g() }\n}",
        "unsafe impl Send for X {}",
    ] {
        refused("crates/segment/src/sys/linux/memory.rs", text, "SAFETY");
    }
    for text in [
        "fn f() {\n    // SAFETY: I1; in range\n    // and aligned.\n    let x = unsafe { g() };\n}",
        "fn f() {\n    // SAFETY: I1.\n    let x =\n        unsafe { g() };\n}",
        "// SAFETY: words only.\nunsafe impl Send for X {}",
        "unsafe fn f() {}",
    ] {
        assert_eq!(problems("crates/segment/src/sys/linux/memory.rs", text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn a_file_too_long_to_read_is_found() {
    refused("src/paths.rs", &"\n".repeat(rules::LONGEST_FILE + 1), "lines");
    assert!(problems("src/paths.rs", &"\n".repeat(rules::LONGEST_FILE)).is_empty());
}
