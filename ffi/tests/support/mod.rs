//! Compiles C and C++ programs against the header, and runs them with the static library.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use tempfile::TempDir;

const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];
/// The system libraries that a Rust static library needs (`rustc --print native-static-libs`).
const SYSTEM_LIBRARIES: [&str; 6] = ["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"];

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The static library next to this test program: cargo builds all crate types of the library that a test belongs
/// to. This is a copy without debug information, which is most of the file and would be linked into every program.
fn static_library() -> &'static Path {
    static LIBRARY: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, stripped) = LIBRARY.get_or_init(|| {
        let library = std::env::current_exe().unwrap().with_file_name("libshmlimit_ffi.a");
        assert!(library.is_file(), "no static library at {}", library.display());
        let directory = tempfile::tempdir().unwrap();
        let stripped = directory.path().join("libshmlimit_ffi.a");
        let mut strip = Command::new("strip");
        let done = strip.arg("--strip-debug").arg("-o").arg(&stripped).arg(&library).status().unwrap();
        assert!(done.success());
        (directory, stripped)
    });
    stripped
}

pub fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Compiles one file without warnings, as C11 or C++17 by its extension. A standard among the arguments comes later
/// and takes precedence.
pub fn compile(source: &Path, arguments: &[&str]) -> Output {
    let cpp = source.extension().is_some_and(|ending| ending == "cpp");
    let (compiler, standard) = if cpp { ("c++", "-std=c++17") } else { ("cc", "-std=c11") };
    let mut command = Command::new(compiler);
    command.arg(standard).args(STRICT).arg("-I").arg(root().join("include")).arg(source).args(arguments);
    command.output().unwrap_or_else(|error| panic!("a compiler called {compiler}: {error}"))
}

/// A program, and a directory for its limiters.
pub struct Program {
    path: PathBuf,
    pub limiters: PathBuf,
    _directory: TempDir,
}

impl Program {
    /// Compiles a file of this repository, and links it with the static library.
    pub fn new(source: &str) -> Program {
        Program::of(&root().join(source))
    }

    pub fn of(source: &Path) -> Program {
        Program::with(source, &[])
    }

    /// Like [`Program::new`], with more compiler options.
    pub fn with(source: &Path, more: &[&str]) -> Program {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(source.file_stem().unwrap());
        let limiters = directory.path().join("limiters");
        std::fs::create_dir(&limiters).unwrap();
        let library = static_library();
        let mut arguments = vec![library.to_str().unwrap(), "-o", path.to_str().unwrap()];
        arguments.extend(SYSTEM_LIBRARIES);
        arguments.extend(more);
        let compiled = compile(source, &arguments);
        assert!(compiled.status.success(), "{}", text(&compiled));
        Program { path, limiters, _directory: directory }
    }

    /// The command that runs the program. No variable of the environment affects its limiters.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        for (name, _) in std::env::vars_os() {
            let ours = name
                .to_str()
                .is_some_and(|name| name.starts_with("SHMLIMIT_") || name.starts_with("ANIVAULT_"));
            if ours {
                command.env_remove(name);
            }
        }
        command.env("SHMLIMIT_DIR", &self.limiters).stdin(Stdio::null());
        command
    }

    /// Runs the program to its end with its directory of limiters.
    pub fn run(&self) -> Output {
        let ran = self.command().arg(&self.limiters).output().unwrap();
        assert!(ran.status.success(), "{}: {}", ran.status, text(&ran));
        ran
    }
}

/// The command-line tool, next to the test programs. It is built if necessary.
pub fn tool() -> PathBuf {
    // target/PROFILE/deps/test
    let profile = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().to_owned();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--package", "shmlimit-cli", "--bin", "shmlimit", "--target-dir"]);
    cargo.arg(profile.parent().unwrap()).current_dir(root());
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    assert!(cargo.status().unwrap().success());
    profile.join("shmlimit")
}
