//! Starting a test program once more, as a child.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// This very program, behind `wrapper` (such as `unshare`).
pub fn again(wrapper: &[&str]) -> Command {
    program(wrapper, &std::env::current_exe().unwrap())
}

/// Any test program. Where the system cannot run it by itself, `SHMLIMIT_TEST_RUNNER` says what can (an emulator, see
/// scripts/arm64).
pub fn program(wrapper: &[&str], path: &Path) -> Command {
    let runner = std::env::var("SHMLIMIT_TEST_RUNNER").unwrap_or_default();
    let before = wrapper.iter().copied().chain(runner.split_whitespace()).map(OsString::from);
    let mut words = before.chain([path.into()]);
    let mut command = Command::new(words.next().unwrap());
    command.args(words);
    command
}
