//! Commands for `run` that do the same on every platform, written for the platform's shell.

/// The shell, as `status` names it.
#[cfg(unix)]
pub const SHELL: &str = "sh";
#[cfg(windows)]
pub const SHELL: &str = "cmd";

#[cfg(unix)]
const SCRIPT: [&str; 2] = [SHELL, "-c"];
#[cfg(windows)]
const SCRIPT: [&str; 2] = [SHELL, "/c"];

/// Does nothing, successfully.
pub const NOTHING: [&str; 3] = script("exit 0");

/// Prints "ready", and ends when it reads a line or its input ends.
#[cfg(unix)]
pub const READY: [&str; 3] = script("echo ready; read -r _");
#[cfg(windows)]
pub const READY: [&str; 3] = script("echo ready& set /p line=");

/// Does the same, and prints "alive" before it ends.
#[cfg(unix)]
pub const READY_THEN_ALIVE: [&str; 3] = script("echo ready; read -r _; echo alive");
#[cfg(windows)]
pub const READY_THEN_ALIVE: [&str; 3] = script("echo ready& set /p line=& echo alive");

/// Prints "hello".
pub const SAYS_HELLO: [&str; 3] = script("echo hello");

/// Runs a line of shell, which must work the same in each shell.
pub const fn script(line: &str) -> [&str; 3] {
    [SCRIPT[0], SCRIPT[1], line]
}

/// `run NAME -- COMMAND`.
pub fn run<'w>(name: &'w str, command: [&'w str; 3]) -> Vec<&'w str> {
    [&["run", name, "--"][..], &command].concat()
}

/// Lines of shell, one after the other.
pub fn steps(lines: &[&str]) -> String {
    lines.join(if cfg!(unix) { "; " } else { "& " })
}

/// A variable in a line of shell.
pub fn variable(name: &str) -> String {
    if cfg!(unix) { format!("${name}") } else { format!("%{name}%") }
}
