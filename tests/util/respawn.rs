//! Starting this test program again, as a child process that runs one test.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// Set in a process that runs one test alone: the name of that test.
const OWN_PROCESS: &str = "SHMLIMIT_TEST_OWN_PROCESS";

/// The harness's name of a test. `path` begins with the name of the crate, as [`module_path!`] does; the harness
/// omits that.
pub fn name_of(path: &str) -> &str {
    path.split_once("::").map_or(path, |(_, name)| name)
}

/// A command that runs this program for the one test with this path. `wrapper` is a command such as `unshare` that
/// runs it.
pub fn again(wrapper: &[&str], test: &str) -> Command {
    program(wrapper, &std::env::current_exe().unwrap(), test)
}

/// A command that runs any test program for one test. If the system cannot run it directly, `SHMLIMIT_TEST_RUNNER`
/// names a program that can (an emulator, see scripts/platforms/arm64).
pub fn program(wrapper: &[&str], path: &Path, test: &str) -> Command {
    let runner = std::env::var("SHMLIMIT_TEST_RUNNER").unwrap_or_default();
    let before = wrapper.iter().copied().chain(runner.split_whitespace()).map(OsString::from);
    let mut words = before.chain([path.into()]);
    let mut command = Command::new(words.next().unwrap());
    command.args(words).args(["--exact", name_of(test), "--nocapture", "--test-threads=1"]);
    command
}

/// Runs the rest of a test in its own process. For tests that fork, that count the handles of the whole process, or
/// that are disturbed by the handles of other tests. Use it as the first statement of the test.
macro_rules! in_own_process {
    () => {
        fn here() {}
        if $crate::util::respawn::ran_in_own_process(std::any::type_name_of_val(&here)) {
            return;
        }
    };
}
pub(crate) use in_own_process;

/// Returns false in the process that runs the test. In the first process, it runs the test there and asserts that
/// it passed.
pub fn ran_in_own_process(inside_the_test: &str) -> bool {
    let (test, _) = inside_the_test.rsplit_once("::").unwrap();
    if std::env::var_os(OWN_PROCESS).is_some_and(|alone| alone == *test) {
        return false;
    }
    let output = again(&[], test).env(OWN_PROCESS, test).output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    print!("{out}");
    eprint!("{err}");
    assert!(
        output.status.success() && out.contains("1 passed"),
        "{test} in its own process: {}",
        output.status
    );
    true
}
