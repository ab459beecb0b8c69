//! A C program compiles against the header without warnings, links with the static library, and runs.

// These tests use this machine's compiler. scripts/platforms/windows-c compiles and runs the same programs for
// Windows.
#![cfg(unix)]

#[allow(dead_code)]
mod support;

use support::{Program, compile, text};

#[test]
fn a_c_program_links_with_the_static_library_and_agrees_with_it() {
    let ran = Program::new("ffi/tests/c/smoke.c").run();
    let expected = format!(
        "{} {} {}\n",
        env!("CARGO_PKG_VERSION"),
        shmlimit_ffi::SHMLIMIT_LAYOUT_VERSION,
        shmlimit_ffi::SHMLIMIT_SEGMENT_SIZE
    );
    assert_eq!(String::from_utf8_lossy(&ran.stdout), expected);
}

/// Compiles a source file with these lines and options.
fn compiles(ending: &str, lines: &str, options: &[&str]) -> Result<(), String> {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join(format!("source.{ending}"));
    std::fs::write(&source, lines).unwrap();
    let compiled = compile(&source, &[&["-fsyntax-only"], options].concat());
    if compiled.status.success() { Ok(()) } else { Err(text(&compiled)) }
}

/// scripts/languages/c-tests does the same with gcc and with clang.
#[test]
fn the_headers_compile_in_every_standard_alone_and_twice() {
    let twice = |header: &str| format!("#include \"{header}\"\n#include \"{header}\"\nint nothing;\n");
    for standard in ["-std=c99", "-std=c11", "-std=c17", "-std=c2x"] {
        compiles("c", &twice("shmlimit.h"), &[standard]).unwrap_or_else(|said| panic!("{standard}: {said}"));
    }
    for standard in ["-std=c++17", "-std=c++20"] {
        for (header, more) in [
            ("shmlimit.h", "-fexceptions"),
            ("shmlimit.hpp", "-fexceptions"),
            ("shmlimit.hpp", "-fno-exceptions"),
        ] {
            compiles("cpp", &twice(header), &[standard, more])
                .unwrap_or_else(|said| panic!("{header} {standard} {more}: {said}"));
        }
    }
}

#[test]
fn the_version_macros_compare() {
    let version = env!("CARGO_PKG_VERSION").replace('.', ", ");
    let check = |condition: &str| {
        compiles(
            "c",
            &format!("#include \"shmlimit.h\"\n#if !({condition})\n#error no\n#endif\nint nothing;\n"),
            &[],
        )
    };
    let is = |condition: String| check(&condition).unwrap_or_else(|said| panic!("{condition}: {said}"));
    let is_not = |condition: String| assert!(check(&condition).is_err(), "{condition}");
    let [major, minor, patch] =
        [env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"), env!("CARGO_PKG_VERSION_PATCH")]
            .map(|part| part.parse::<u32>().unwrap());
    is(format!("SHMLIMIT_VERSION_AT_LEAST({version})"));
    is("SHMLIMIT_VERSION_AT_LEAST(0, 0, 999)".to_owned());
    is_not(format!("SHMLIMIT_VERSION_AT_LEAST({major}, {minor}, {})", patch + 1));
    is_not(format!("SHMLIMIT_VERSION_AT_LEAST({major}, {}, 0)", minor + 1));
    is_not(format!("SHMLIMIT_VERSION_AT_LEAST({}, 0, 0)", major + 1));
}

#[test]
fn cpp_programs_use_the_wrapper_with_and_without_exceptions() {
    let tests = support::root().join("ffi/tests/c");
    Program::with(&tests.join("hpp_codes.cpp"), &["-fno-exceptions"]).run();
    Program::with(&tests.join("hpp_codes.cpp"), &["-std=c++20"]).run();
    Program::with(&tests.join("hpp_throws.cpp"), &[]).run();
}

#[test]
fn a_c_program_sets_rates_handles_mismatches_and_removes_limiters() {
    Program::new("ffi/tests/c/opening.c").run();
}
