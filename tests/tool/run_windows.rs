//! `shmlimit run` on Windows: what the console says, exit codes of 32 bits, and how a command is found.

use crate::cli::{Home, binary};
use crate::commands::{run, script};
use std::io::{BufRead, BufReader, Read};
use std::os::windows::process::CommandExt;
use std::process::{Command, Stdio};
use windows_sys::Win32::Foundation::STATUS_CONTROL_C_EXIT;
use windows_sys::Win32::System::Console::{
    CTRL_BREAK_EVENT, CTRL_C_EVENT, GenerateConsoleCtrlEvent, SetConsoleCtrlHandler,
};
use windows_sys::Win32::System::Threading::CREATE_NO_WINDOW;
use windows_sys::core::BOOL;

const ONE: [&str; 3] = ["one", "--concurrency", "1"];

#[test]
fn an_exit_code_is_passed_on_with_all_its_bits() {
    let home = Home::with(&ONE);
    for code in [256, 300, 65_536, -1, STATUS_CONTROL_C_EXIT] {
        assert_eq!(home.tool(&run("one", script(&format!("exit {code}")))).code, code);
    }
}

/// Set where this program runs under a console of its own.
const ALONE: &str = "SHMLIMIT_TEST_ALONE";

/// What is typed reaches all programs of a console, this one and other tests' too. So each of these tests starts itself
/// again, under a console that nobody else has.
fn alone(test: &str) -> bool {
    if std::env::var_os(ALONE).is_some() {
        // SAFETY: the function does nothing, and lives as long as the program.
        assert_ne!(unsafe { SetConsoleCtrlHandler(Some(unmoved), 1) }, 0);
        return true;
    }
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args([&format!("run_windows::{test}"), "--exact", "--nocapture"]).env(ALONE, "1");
    let output = again.creation_flags(CREATE_NO_WINDOW).stdin(Stdio::null()).output().unwrap();
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    false
}

unsafe extern "system" fn unmoved(_event: u32) -> BOOL {
    1
}

/// Runs a program that waits, types the key at its console, and says with which code `run` ended; nothing if the
/// system cannot type it.
fn interrupted_by(key: u32, home: &Home) -> Option<i32> {
    let mut child = home
        .as_a_shell_would()
        .args(["run", "one", "--exit", "1=500", "--", binary(), "metrics", "--listen", "127.0.0.1:0"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut ready = String::new();
    out.read_line(&mut ready).unwrap();
    assert!(ready.starts_with("listening"), "{ready}");
    assert_eq!(home.status("one")["in_flight"], 1);
    // SAFETY: a plain call.
    let typed = unsafe { GenerateConsoleCtrlEvent(key, 0) } != 0;
    if !typed {
        // Nobody else would end it.
        child.kill().unwrap();
        child.wait().unwrap();
        return None;
    }
    let code = child.wait().unwrap().code();
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!((rest.as_str(), &home.status("one")["in_flight"]), ("", &0.into()));
    code
}

/// The command ends in good order, and `run` waits for that and says so.
#[test]
fn ctrl_c_and_ctrl_break_reach_the_command_and_its_answer_counts() {
    if alone("ctrl_c_and_ctrl_break_reach_the_command_and_its_answer_counts") {
        let home = Home::with(&ONE);
        assert_eq!(interrupted_by(CTRL_C_EVENT, &home), Some(0));
        assert_eq!(home.status("one")["counts"]["codes"], serde_json::json!({"200": 1}));
        match interrupted_by(CTRL_BREAK_EVENT, &home) {
            None => println!("not tested: Wine 8 cannot type Ctrl-Break"),
            code => assert_eq!(code, Some(0)),
        }
    }
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
