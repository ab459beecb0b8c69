//! The machine, the session and the console.

use crate::platform::Machine;
use ratatui::crossterm::ansi_support::supports_ansi;
use shmlimit::Attached;
use shmlimit_segment::sys::tool::console_and_session;
use std::env;
use std::path::Path;

/// Those of one window take turns as one; without a window, those of one session.
pub fn session() -> String {
    let (console, session) = console_and_session();
    format!("session {session}, console {console:x}")
}

/// The user who runs this program, as the session calls it.
pub fn user_name() -> String {
    std::env::var("USERNAME").ok().filter(|name| !name.is_empty()).unwrap_or_else(|| "shmlimit".to_owned())
}

/// Only debuggers stop programs here, and that cannot be seen.
pub fn is_stopped(_one: &Attached) -> bool {
    false
}

/// No program changes its user here.
pub fn user_without_access(_one: &Attached, _file: &Path) -> Option<String> {
    None
}

/// Switches it on if need be: consoles before Windows 10 have no such thing.
pub fn supports_escapes() -> bool {
    supports_ansi()
}

/// The standard library writes Unicode to a console, whatever its code page is.
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
