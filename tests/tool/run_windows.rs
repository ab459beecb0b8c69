//! `shmlimit run` on Windows: what the console says, exit codes of 32 bits, and a command that ends with us.

use crate::cli::{Home, binary};
use crate::commands::{run, script};
use std::io::{BufRead, BufReader, Read};
use std::os::windows::process::CommandExt;
use std::process::Stdio;
use windows_sys::Win32::Foundation::STATUS_CONTROL_C_EXIT;
use windows_sys::Win32::System::Console::{AllocConsole, CTRL_BREAK_EVENT, GenerateConsoleCtrlEvent};
use windows_sys::Win32::System::Threading::CREATE_NEW_PROCESS_GROUP;

const ONE: [&str; 3] = ["one", "--concurrency", "1"];

#[test]
fn an_exit_code_is_passed_on_with_all_its_bits() {
    let home = Home::with(&ONE);
    for code in [256, 300, 65_536, -1, STATUS_CONTROL_C_EXIT] {
        assert_eq!(home.tool(&run("one", script(&format!("exit {code}")))).code, code);
    }
}

/// The command ends of it, as it would without us; `run` does not, and says how the command ended.
#[test]
fn ctrl_break_reaches_the_command_and_its_code_comes_back() {
    let home = Home::with(&ONE);
    // SAFETY: a plain call. It fails if there is a console already, which is as good.
    unsafe { AllocConsole() };
    // A program that waits, and has nothing against an end.
    let waits = [binary(), "metrics", "--listen", "127.0.0.1:0"];
    let mut child = home
        .as_a_shell_would()
        .args(["run", "one", "--exit", "1=500", "--"])
        .args(waits)
        .creation_flags(CREATE_NEW_PROCESS_GROUP)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut ready = String::new();
    out.read_line(&mut ready).unwrap();
    assert!(ready.starts_with("listening"), "{ready}");
    assert_eq!(home.status("one")["in_flight"], 1);
    // SAFETY: a plain call; the group is that of the process just started, which is not waited for yet.
    assert_ne!(unsafe { GenerateConsoleCtrlEvent(CTRL_BREAK_EVENT, child.id()) }, 0);
    assert_eq!(child.wait().unwrap().code(), Some(STATUS_CONTROL_C_EXIT));
    let status = home.status("one");
    assert_eq!((&status["in_flight"], &status["counts"]["codes"]), (&0.into(), &serde_json::json!({})));
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "", "and nobody has the pipe any more");
}

/// `npm` is `npm.cmd`, as in a shell.
#[test]
fn a_command_is_found_with_the_endings_of_pathext() {
    let home = Home::with(&ONE);
    let bin = tempfile::tempdir().unwrap();
    std::fs::write(bin.path().join("greet.cmd"), "@echo hello %1\r\n@exit 5\r\n").unwrap();
    let path = std::env::join_paths(
        std::iter::once(bin.path().to_owned())
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    );
    let output = home
        .as_a_shell_would()
        .args(["run", "one", "--", "greet", "you"])
        .env("PATH", path.unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!((said.trim_end(), output.status.code()), ("hello you", Some(5)), "{output:?}");
    home.tool(&["run", "one", "--", "dir"]).fails(127, &["cannot run dir", "cmd /c"]);
}

#[test]
fn a_number_for_a_descriptor_is_refused_with_what_there_is_instead() {
    let home = Home::with(&ONE);
    let arguments = [&["run", "one", "--status-fd", "3", "--"][..], &script("exit 0")].concat();
    home.tool(&arguments).fails(2, &["--status-fd", "--status-from", "shmlimit record"]);
}
