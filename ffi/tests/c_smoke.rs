//! A C program compiles against the header without a warning, links with the static library, and runs.

// Compiles with this machine's compiler. For Windows scripts/platforms/windows-c compiles and runs the same programs.
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

#[test]
fn the_header_stands_alone_and_may_be_included_twice() {
    let directory = tempfile::tempdir().unwrap();
    for ending in ["c", "cpp"] {
        let source = directory.path().join(format!("twice.{ending}"));
        let object = directory.path().join("twice.o");
        std::fs::write(&source, "#include \"shmlimit.h\"\n#include \"shmlimit.h\"\nint nothing;\n").unwrap();
        let compiled = compile(&source, &["-c", "-o", object.to_str().unwrap()]);
        assert!(compiled.status.success(), "{}", text(&compiled));
    }
}
