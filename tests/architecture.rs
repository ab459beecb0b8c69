//! The walls of the house (docs/design.md, "The house"): dependencies point down only, `unsafe` stays in its rooms and
//! says why it is sound, the kernel and the headers stay pure, and no file grows beyond reading.
//!
//! The checkers work on text, so each of them is first shown bad snippets that it must refuse.

#[path = "architecture/lexer.rs"]
mod lexer;
#[path = "architecture/rules.rs"]
mod rules;

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

#[test]
fn the_walls_of_the_house_stand() {
    let sources = sources(&["src", "ffi"]);
    assert!(sources.len() > 30, "only {} files found: this test no longer sees the source", sources.len());
    let problems: Vec<String> = sources.iter().flat_map(all_problems).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn the_kernel_forbids_unsafe_code() {
    let kernel = std::fs::read_to_string(root().join("src/kernel/mod.rs")).unwrap();
    assert!(kernel.contains("#![forbid(unsafe_code)]"));
}

#[test]
fn every_room_of_the_library_is_in_the_table() {
    for entry in std::fs::read_dir(root().join("src")).unwrap() {
        let path = entry.unwrap().path();
        let room = path.file_stem().unwrap().to_str().unwrap();
        assert!(
            room == "lib" || room == "bin" || rules::below(room).is_some(),
            "{room} has no row in the table"
        );
    }
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

#[test]
fn an_arrow_that_points_up_is_found_however_it_is_written() {
    let up = "src/kernel/decide.rs uses segment";
    refused("src/kernel/decide.rs", "use crate::segment::lock;", up);
    refused(
        "src/kernel/decide.rs",
        "use crate::{\n    kernel::time::Time,\n    segment::{lock, words},\n};",
        up,
    );
    refused("src/kernel/decide.rs", "fn f() { let _ = crate::segment::lock::SLEEP; }", up);
    refused("src/kernel/decide.rs", "use super::super::segment::lock;", up);
    refused("src/kernel/decide.rs", "use super::super::{segment as s};", up);
    refused("src/kernel/decide.rs", "mod inner { use super::super::super::segment; }", up);
    refused("src/kernel/decide.rs", "pub use crate :: segment;", up);
    refused("src/segment/lock.rs", "use crate::limiter::Limiter;", "uses limiter");
    refused("src/segment/mod.rs", "use super::limiter::Limiter;", "uses limiter");
    refused("src/sys/linux/clock.rs", "use crate::kernel::time::Time;", "uses kernel");
    refused("src/error.rs", "use crate::segment::layout;", "uses segment");
    refused("src/presets.rs", "use crate::error::Error;", "uses error");
    refused("src/headers/mod.rs", "use crate::limiter::Limiter;", "uses limiter");
}

#[test]
fn going_through_the_facade_hides_no_arrow() {
    refused("src/kernel/decide.rs", "use crate::Limiter;", "uses Limiter");
    refused("src/segment/lock.rs", "use crate::*;", "uses *");
    refused("src/segment/lock.rs", "#[path = \"../limiter/mod.rs\"] mod other;", "#[path]");
    refused("src/segment/lock.rs", "include!(\"../limiter/mod.rs\");", "include!");
}

#[test]
fn arrows_that_point_down_or_stay_inside_are_allowed() {
    for (name, text) in [
        ("src/segment/lock.rs", "use crate::{error::Error, kernel::Time, paths, sys::{self, Clock}};"),
        ("src/segment/words.rs", "mod mapped { use super::*; use super::super::layout; }"),
        ("src/kernel/rule/bucket.rs", "use super::super::time::Time; use super::When;"),
        ("src/limiter/mod.rs", "use crate::segment::Segment; pub(in crate::limiter) fn f() {}"),
        (
            "src/kernel/time.rs",
            "// use crate::segment;\n/* crate::segment::x /* nested */ */\n/// [`crate::Limiter`]\n",
        ),
        (
            "src/kernel/time.rs",
            "const A: &str = \"crate::segment::x\"; const B: &str = r#\"crate::limiter::y \"#;",
        ),
        ("src/kernel/time.rs", "const Q: char = '\"'; fn f<'a>(x: &'a str) -> &'a str { x }"),
    ] {
        assert_eq!(problems(name, text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn the_kernel_and_the_headers_may_not_reach_the_world() {
    for text in [
        "use std::fs::File;",
        "use std::{fmt, time::Instant};",
        "fn f() { std::thread::yield_now(); }",
        "use core::{sync::atomic::AtomicU64};",
        "use nix::libc;",
        "fn f() { tracing::warn!(\"x\"); }",
    ] {
        refused("src/kernel/decide.rs", text, "the kernel");
        refused("src/headers/date.rs", text, "headers use");
    }
    assert!(problems("src/kernel/decide.rs", "use std::{fmt, ops::Range}; use bytemuck::Pod;").is_empty());
    assert!(problems("src/segment/lock.rs", "use std::time::Duration;").is_empty());
}

#[test]
fn the_tool_uses_the_public_interface_only() {
    refused("src/bin/shmlimit/main.rs", "use shmlimit::internals::layout;", "internals");
    refused("src/bin/shmlimit/main.rs", "use shmlimit::{Limiter, internals};", "internals");
    assert!(problems("src/bin/shmlimit/main.rs", "use shmlimit::Limiter; use crate::args::Args;").is_empty());
}

#[test]
fn unsafe_outside_its_rooms_is_found() {
    let documented = "// SAFETY: I1.\nfn f() { unsafe { g() } }";
    refused("src/segment/lock.rs", documented, "unsafe code");
    refused("src/limiter/mod.rs", "unsafe impl Send for X {}", "unsafe code");
    assert!(problems("src/segment/lock.rs", "#![forbid(unsafe_code)] // unsafe\n").is_empty());
}

#[test]
fn unsafe_without_its_reason_is_found() {
    for text in [
        "fn f() {\n    unsafe { g() }\n}",
        "fn f() {\n    // It is fine.\n    let x = unsafe { g() };\n}",
        "// SAFETY: about something else.\nfn h() {}\nfn f() {\n    unsafe { g() }\n}",
        "unsafe impl Send for X {}",
    ] {
        refused("src/sys/linux/memory.rs", text, "SAFETY");
    }
    for text in [
        "fn f() {\n    // SAFETY: I1; in range\n    // and aligned.\n    let x = unsafe { g() };\n}",
        "fn f() {\n    // SAFETY: I1.\n    let x =\n        unsafe { g() };\n}",
        "// SAFETY: words only.\nunsafe impl Send for X {}",
        "unsafe fn f() {}",
    ] {
        assert_eq!(problems("src/sys/linux/memory.rs", text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn a_file_too_long_to_read_is_found() {
    refused("src/paths.rs", &"\n".repeat(rules::LONGEST_FILE + 1), "lines");
    assert!(problems("src/paths.rs", &"\n".repeat(rules::LONGEST_FILE)).is_empty());
}
