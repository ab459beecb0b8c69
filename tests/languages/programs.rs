//! Programs in every language that share one limiter: built from the sources in this directory, started, and killed.

use crate::cli::{self, ROOT};
use crate::util::crash::NAME;
use crate::util::wait_until;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::Duration;
use tempfile::TempDir;

/// The system libraries that a Rust static library needs (`rustc --print native-static-libs`).
const SYSTEM_LIBRARIES: [&str; 6] = ["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"];
const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];

/// A number that a script sets in the environment.
pub fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

fn sources() -> PathBuf {
    Path::new(ROOT).join("tests/languages")
}

fn succeeds(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}: {}{}", text(&output.stdout), text(&output.stderr));
}

/// The built libraries and programs, shared by all tests of a file.
pub struct Built {
    directory: TempDir,
}

impl Built {
    /// Returns the built; builds the libraries and the programs at the first call.
    pub fn get() -> &'static Built {
        static BUILT: OnceLock<Built> = OnceLock::new();
        BUILT.get_or_init(Built::build)
    }

    fn build() -> Built {
        let built = Built { directory: tempfile::tempdir().unwrap() };
        // This test program is in the directory `deps` of the profile's directory.
        let exe = std::env::current_exe().unwrap();
        let profile = exe.ancestors().nth(2).unwrap();
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["build", "--quiet", "-p", "shmlimit-ffi", "-p", "shmlimit-python", "--target-dir"]);
        cargo.arg(profile.parent().unwrap()).current_dir(ROOT).env_remove("RUSTFLAGS");
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        succeeds(&mut cargo);
        for (source, program) in [("worker.c", "c"), ("soak.c", "soak-c")] {
            // This program links the static library, the other one the shared library.
            let mut cc = built.compiler("cc", "-std=c11", source, program);
            succeeds(cc.arg(profile.join("libshmlimit_ffi.a")).args(SYSTEM_LIBRARIES));
        }
        let mut cxx = built.compiler("c++", "-std=c++17", "worker.cpp", "cpp");
        // The names that the library has where it is installed: the loader looks for its soname.
        for name in ["libshmlimit.so", "libshmlimit.so.0"] {
            std::os::unix::fs::symlink(profile.join("libshmlimit_ffi.so"), built.program(name)).unwrap();
        }
        let directory = built.directory.path();
        let path = format!("-Wl,-rpath,{}", directory.display());
        succeeds(cxx.arg("-pthread").arg("-L").arg(directory).args(["-lshmlimit", &path]));
        built.lay_out_package(&profile.join("lib_shmlimit.so"));
        built
    }

    fn compiler(&self, name: &str, standard: &str, source: &str, program: &str) -> Command {
        let mut compiler = Command::new(name);
        compiler.arg(standard).args(WARNINGS).args(["-O2", "-g", "-o"]).arg(self.program(program));
        compiler.arg("-I").arg(Path::new(ROOT).join("include")).arg(sources().join(source));
        compiler
    }

    /// Lays out the Python package as an installation would, without installing it.
    fn lay_out_package(&self, extension: &Path) {
        let package = self.packages().join("shmlimit");
        std::fs::create_dir_all(&package).unwrap();
        let python = Path::new(ROOT).join("ffi/python/python/shmlimit");
        for file in std::fs::read_dir(python).unwrap().map(|entry| entry.unwrap().path()) {
            if file.is_file() {
                std::fs::copy(&file, package.join(file.file_name().unwrap())).unwrap();
            }
        }
        std::fs::copy(extension, package.join("_shmlimit.abi3.so")).unwrap();
    }

    fn packages(&self) -> PathBuf {
        self.directory.path().join("packages")
    }

    /// The path of a program built from C or C++.
    pub fn program(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The Python interpreter with one of the scripts; it finds the package.
    pub fn python(&self, script: &str) -> Command {
        let mut python = Command::new("python3");
        python.env("PYTHONPATH", self.packages()).arg(sources().join(script));
        python
    }
}

/// A kind of program that shares the limiter: its language, and how it makes several calls at a time.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The language.
    pub language: &'static str,
    /// A description for people.
    pub what: &'static str,
    /// The path that it requests from the server, by which the server recognizes it.
    pub name: &'static str,
}

/// One kind for each way to call. [`start`] takes the method by which Python makes processes.
pub const KINDS: [Kind; 6] = [
    Kind { language: "Rust", what: "shmlimit run, three loops of one shell", name: "cli" },
    Kind { language: "C", what: "one thread, static library", name: "c" },
    Kind { language: "C++", what: "two threads, shared library", name: "cpp" },
    Kind { language: "Python", what: "four threads", name: "threads" },
    Kind { language: "Python", what: "asyncio, eight tasks", name: "asyncio" },
    Kind { language: "Python", what: "multiprocessing, three processes", name: "processes" },
];

/// The methods of Python to make processes.
pub const METHODS: [&str; 3] = ["fork", "spawn", "forkserver"];

/// A running program in its own session. Dropping it ends all its processes.
pub struct Program {
    child: Child,
}

/// Starts a program that calls `http://127.0.0.1:PORT` until the file `stop` exists in the limiter's directory.
pub fn start(kind: Kind, method: &str, directory: &Path, port: u16, prefix: &str) -> Program {
    let built = Built::get();
    let inner = match kind.name {
        "cli" => Command::new(sources().join("worker.sh")),
        "c" | "cpp" => Command::new(built.program(kind.name)),
        python => {
            let mut command = built.python("worker.py");
            command.arg(if python == "processes" { method } else { python });
            command
        }
    };
    let mut command = Command::new("setsid");
    command.arg(inner.get_program()).args(inner.get_args());
    command.args([NAME, &port.to_string(), &format!("{prefix}/{}", kind.name)]).arg(directory.join("stop"));
    for (name, value) in inner.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command.env("SHMLIMIT_DIR", directory).env("SHMLIMIT", cli::binary()).env("TMPDIR", directory);
    command.env_remove("SHMLIMIT_GROUP").stdin(Stdio::null());
    Program { child: command.spawn().unwrap() }
}

impl Program {
    fn leader(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32)
    }

    /// Sends a signal to all processes of the program.
    pub fn signal(&self, signal: Signal) {
        // The processes may have exited.
        let _ = killpg(self.leader(), signal);
    }

    /// Kills one of the processes that the program started; false if it has none.
    pub fn kill_a_child(&self, choose: impl FnOnce(usize) -> usize) -> bool {
        let children = self.children();
        if children.is_empty() {
            return false;
        }
        kill(children[choose(children.len())], Signal::SIGKILL).is_ok()
    }

    fn children(&self) -> Vec<Pid> {
        let processes = std::fs::read_dir("/proc").unwrap();
        let pids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
        let ours = |pid: &i32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            // The fields after the name, which may contain any character: state, parent, process group.
            let group = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(2)?.parse().ok());
            group == Some(self.child.id()) && *pid != self.child.id() as i32
        };
        pids.filter(ours).map(Pid::from_raw).collect()
    }

    /// The exit status of the program, if it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }
}

/// Waits for a program that is about to end, and returns its exit status.
pub fn ends(kind: &Kind, program: &mut Program) -> ExitStatus {
    let mut status = None;
    wait_until(kind.what, || {
        std::thread::sleep(Duration::from_millis(2));
        status = program.ended();
        status.is_some()
    });
    status.unwrap()
}

impl Drop for Program {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
        let _ = self.child.wait();
    }
}
