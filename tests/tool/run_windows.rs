//! `shmlimit run` on Windows: console events, exit codes of 32 bits, and the search for a command.

use crate::cli::commands::{run, script};
use crate::cli::queue::{open, wait_until, waiting};
use crate::cli::{Home, ONE, binary};
use crate::run_retries::wants_ten_minutes;
use serde_json::json;
use shmlimit::Request;
use std::io::{BufRead, BufReader, Read};
use std::os::windows::process::CommandExt;
use std::process::{Command, Stdio};
use std::ptr::{null, null_mut};
use windows_sys::Win32::Foundation::STATUS_CONTROL_C_EXIT;
use windows_sys::Win32::System::Console::{
    CTRL_BREAK_EVENT, CTRL_C_EVENT, GenerateConsoleCtrlEvent, SetConsoleCtrlHandler,
};
use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleA, GetProcAddress};
use windows_sys::Win32::System::Threading::{
    CREATE_NO_WINDOW, CreateRemoteThread, LPTHREAD_START_ROUTINE, OpenProcess, PROCESS_ALL_ACCESS,
};
use windows_sys::core::{BOOL, s};

#[test]
fn an_exit_code_is_passed_on_with_all_its_bits() {
    let home = Home::with(&ONE);
    for code in [256, 300, 65_536, -1, STATUS_CONTROL_C_EXIT] {
        assert_eq!(home.tool(&run("one", script(&format!("exit {code}")))).code, code);
    }
}

/// Set where this program runs under its own console.
const ALONE: &str = "SHMLIMIT_TEST_ALONE";

/// Restarts a test under its own console. A key reaches all programs of a console, which could be this one and those
/// of other tests. Returns true in the restarted program.
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

/// Presses a key at this console, which only these programs and this test use. Wine cannot press Ctrl-Break. There
/// the test does what the system does for every key: it starts a thread with the event in each program.
fn press(key: u32, programs: &[u32]) {
    // SAFETY: a plain call.
    if unsafe { GenerateConsoleCtrlEvent(key, 0) } != 0 {
        return;
    }
    // SAFETY: both names end with a zero.
    let routine = unsafe { GetProcAddress(GetModuleHandleA(s!("kernelbase.dll")), s!("CtrlRoutine")) };
    // SAFETY: the routine has this type: it takes the number of the key, and its address is the same in every
    // program.
    let routine: LPTHREAD_START_ROUTINE = unsafe { std::mem::transmute(routine) };
    assert!(routine.is_some(), "no way to press {key}");
    for program in programs {
        let number = std::ptr::without_provenance(key as usize);
        // SAFETY: the program exists, because it waits; both handles live as long as this test.
        let thread = unsafe {
            let program = OpenProcess(PROCESS_ALL_ACCESS, 0, *program);
            CreateRemoteThread(program, null(), 0, routine, number, 0, null_mut())
        };
        assert!(!thread.is_null(), "{}", std::io::Error::last_os_error());
    }
}

/// The exit codes of a program that does not handle the key; the second one is Wine's.
const INTERRUPTED: [Option<i32>; 2] = [Some(STATUS_CONTROL_C_EXIT), Some(0)];

/// The command shuts down in good order; `run` waits for that and returns its exit code.
#[test]
fn ctrl_c_reaches_the_command_and_its_exit_code_counts() {
    if !alone("ctrl_c_reaches_the_command_and_its_exit_code_counts") {
        return;
    }
    let home = Home::with(&ONE);
    let arguments = ["run", "one", "--exit", "1=500", "--", binary(), "metrics", "--listen", "127.0.0.1:0"];
    let (mut child, mut out, ready) = home.start(&arguments);
    assert!(ready.starts_with("listening"), "{ready}");
    assert_eq!(home.status("one")["in_flight"], 1);
    press(CTRL_C_EVENT, &[]);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    let status = home.status("one");
    assert_eq!((rest.as_str(), &status["in_flight"]), ("", &0.into()));
    assert_eq!(status["counts"]["codes"], json!({"200": 1}));
}

/// The system ends a command that does not handle the key, and `run` ends with it. `run` does not end earlier: the
/// record of the command's end proves that where its exit code has a meaning.
#[test]
fn ctrl_c_and_ctrl_break_end_a_waiting_command_and_run_with_it() {
    if !alone("ctrl_c_and_ctrl_break_end_a_waiting_command_and_run_with_it") {
        return;
    }
    let home = Home::with(&ONE);
    home.tool(&["init", "two", "--concurrency", "1"]).succeeds();
    let two = open(&home, "two");
    let request = Request::new();
    let _held = two.try_acquire(&request).unwrap();
    for key in [CTRL_C_EVENT, CTRL_BREAK_EVENT] {
        let arguments = ["run", "one", "--retries", "--exit", "1=500", "--", binary(), "acquire", "two"];
        let mut child = home.as_a_shell_would().args(arguments).stdin(Stdio::null()).spawn().unwrap();
        let status = wait_until(&home, "two", |status| waiting(status).len() == 1);
        assert_eq!(home.status("one")["in_flight"], 1);
        press(key, &[child.id(), waiting(&status)[0]]);
        let code = child.wait().unwrap().code();
        assert!(INTERRUPTED.contains(&code), "key {key}: {code:?}");
        assert_eq!(home.status("two")["queue"], json!([]));
        let status = home.status("one");
        let wanted = if code == Some(0) { json!({"200": key + 1}) } else { json!({}) };
        assert_eq!((&status["in_flight"], &status["counts"]["codes"]), (&0.into(), &wanted), "key {key}");
    }
    assert_eq!(home.status("one")["counts"]["granted"], 2);
}

#[test]
fn ctrl_c_and_ctrl_break_between_attempts_end_run_at_once() {
    if !alone("ctrl_c_and_ctrl_break_between_attempts_end_run_at_once") {
        return;
    }
    let home = Home::with(&ONE);
    for key in [CTRL_C_EVENT, CTRL_BREAK_EVENT] {
        let line = wants_ten_minutes();
        let arguments = [&["run", "one", "--retries", "--"][..], &script(&line)].concat();
        let mut command = home.as_a_shell_would();
        let mut child = command.args(arguments).stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut err = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        err.read_line(&mut said).unwrap();
        assert!(said.contains("next attempt in 10m"), "{said}");
        press(key, &[child.id()]);
        let code = child.wait().unwrap().code();
        assert!(INTERRUPTED.contains(&code), "key {key}: {code:?}");
        let mut rest = String::new();
        err.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
        home.tool(&["force", "one", "clear-gate"]).succeeds();
    }
    assert_eq!(home.status("one")["counts"]["granted"], 2);
}

/// `npm` finds `npm.cmd`, as in a shell.
#[test]
fn a_command_is_found_with_the_extensions_of_pathext() {
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
fn a_status_descriptor_is_refused_and_the_alternative_named() {
    let home = Home::with(&ONE);
    let arguments = [&["run", "one", "--status-fd", "3", "--"][..], &script("exit 0")].concat();
    home.tool(&arguments).fails(2, &["--status-fd", "--status-from", "shmlimit record"]);
}
