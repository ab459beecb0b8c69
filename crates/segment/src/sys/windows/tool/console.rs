//! Events of the console: interrupt keys, and the end of the console.

use std::io;
use std::sync::{Mutex, PoisonError};

use windows_sys::Win32::System::Console::{
    CTRL_BREAK_EVENT, CTRL_C_EVENT, GetConsoleWindow, SetConsoleCtrlHandler,
};
use windows_sys::Win32::System::RemoteDesktop::ProcessIdToSessionId;
use windows_sys::core::BOOL;

use crate::sys::windows::native::check;

type Listener = Box<dyn FnMut(u32) -> bool + Send>;

/// The function that receives the events.
static LISTENER: Mutex<Option<Listener>> = Mutex::new(None);

fn listener() -> std::sync::MutexGuard<'static, Option<Listener>> {
    LISTENER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `listener_fn` with each console event (`CTRL_C_EVENT` and so on) from now on, on a thread that the system
/// creates for it. It returns whether it has handled the event. If it has not, the system does what it does by
/// default: it ends this process.
pub fn listen_to_console(listener_fn: impl FnMut(u32) -> bool + Send + 'static) -> io::Result<()> {
    let before = listener().replace(Box::new(listener_fn));
    if before.is_some() {
        return Ok(());
    }
    // SAFETY: the function lives as long as the program, may be called by any thread at any time, and does not
    // unwind.
    check(unsafe { SetConsoleCtrlHandler(Some(handler), 1) })
}

/// Stops passing console events to the listener.
pub fn stop_listening() {
    if listener().take().is_some() {
        // SAFETY: removes what `listen_to_console` registered. It fails only if that registration had failed.
        unsafe { SetConsoleCtrlHandler(Some(handler), 0) };
    }
}

unsafe extern "system" fn handler(event: u32) -> BOOL {
    let handled = listener().as_mut().is_some_and(|listener_fn| listener_fn(event));
    if handled && !matches!(event, CTRL_C_EVENT | CTRL_BREAK_EVENT) {
        // The window closes or the user logs off. The system ends the process as soon as this function returns, or
        // after a few seconds. Until then the process can shut down in order.
        loop {
            std::thread::park();
        }
    }
    BOOL::from(handled)
}

/// Two numbers that are equal for programs started from the same window: the number of the window, and that of the
/// user's session. Without a window (a service, a task) the first is 0.
pub fn console_and_session() -> (usize, u32) {
    let mut session = 0;
    // SAFETY: returns a handle as a number, which may be 0.
    let window = unsafe { GetConsoleWindow() };
    // SAFETY: `session` is alive and writable; if the call fails it stays 0.
    unsafe { ProcessIdToSessionId(std::process::id(), &mut session) };
    (window.addr(), session)
}
