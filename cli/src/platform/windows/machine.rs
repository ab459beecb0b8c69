//! The machine, the session and the console.

use crate::platform::Machine;
use ratatui::crossterm::ansi_support::supports_ansi;
use shmlimit::Attached;
use shmlimit_segment::sys::tool::console_and_session;
use std::env;
use std::path::Path;

/// Returns a name for the programs that take turns as one: those of one window, or without a window those of one
/// session.
pub fn session() -> String {
    let (console, session) = console_and_session();
    format!("session {session}, console {console:x}")
}

/// Returns the user who runs this program, under the name that the session uses.
pub fn user_name() -> String {
    std::env::var("USERNAME").ok().filter(|name| !name.is_empty()).unwrap_or_else(|| "shmlimit".to_owned())
}

/// Returns false: only debuggers stop programs on Windows, and other programs cannot detect it.
pub fn is_stopped(_one: &Attached) -> bool {
    false
}

/// Returns `None`: programs do not change their user on Windows.
pub fn user_without_access(_one: &Attached, _file: &Path) -> Option<String> {
    None
}

/// Enables escape sequences if necessary. Consoles before Windows 10 do not have them.
pub fn supports_escapes() -> bool {
    supports_ansi()
}

/// Returns true: the standard library writes Unicode to a console, whatever its code page is.
pub fn supports_unicode() -> bool {
    true
}

pub fn machine() -> Machine {
    Machine {
        processor: env::var("PROCESSOR_IDENTIFIER").unwrap_or_else(|_| env::consts::ARCH.to_owned()),
        system: "Windows",
        kernel: String::new(),
        clock_source: "performance counter".to_owned(),
        load: String::new(),
    }
}
