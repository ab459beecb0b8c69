//! A C program compiles against the header without a warning, links with the static library, and runs.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const STRICT: [&str; 5] = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"];
/// What a Rust static library needs of the system (`rustc --print native-static-libs`).
const SYSTEM_LIBRARIES: [&str; 6] = ["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"];

fn crate_directory() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Beside this test, where cargo has put it: it builds all crate types of the library a test belongs to.
fn static_library() -> PathBuf {
    let library = std::env::current_exe().unwrap().with_file_name("libshmlimit_ffi.a");
    assert!(library.is_file(), "no static library at {}", library.display());
    library
}

fn compile(source: &Path, arguments: &[&str]) -> Output {
    let include = crate_directory().join("../include");
    let mut cc = Command::new("cc");
    cc.args(STRICT).arg("-I").arg(include).arg(source).args(arguments);
    cc.output().expect("a C compiler called cc")
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_c_program_links_with_the_static_library_and_agrees_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("smoke");
    let library = static_library();
    let mut arguments = vec![library.to_str().unwrap(), "-o", program.to_str().unwrap()];
    arguments.extend(SYSTEM_LIBRARIES);
    let compiled = compile(&crate_directory().join("tests/c/smoke.c"), &arguments);
    assert!(compiled.status.success(), "{}", text(&compiled));
    let ran = Command::new(&program).output().unwrap();
    assert!(ran.status.success(), "{}", text(&ran));
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
    let source = directory.path().join("twice.c");
    let object = directory.path().join("twice.o");
    std::fs::write(&source, "#include \"shmlimit.h\"\n#include \"shmlimit.h\"\nint nothing;\n").unwrap();
    let compiled = compile(&source, &["-c", "-o", object.to_str().unwrap()]);
    assert!(compiled.status.success(), "{}", text(&compiled));
}
