//! Waits for several objects at once.

use std::io;
use std::os::windows::io::{AsRawHandle, BorrowedHandle};
use std::time::Duration;

use windows_sys::Win32::Foundation::{HANDLE, WAIT_FAILED, WAIT_OBJECT_0};
use windows_sys::Win32::System::Threading::{WaitForMultipleObjects, WaitForSingleObject};

/// The longest finite wait, in milliseconds.
const LONGEST: u32 = u32::MAX - 1;

/// Waits until one of these handles is signaled, but at most for `most`. Returns which of them are signaled. At
/// most 64 handles.
pub fn wait_for(handles: &[BorrowedHandle<'_>], most: Option<Duration>) -> io::Result<Vec<bool>> {
    let handles: Vec<HANDLE> = handles.iter().map(|handle| handle.as_raw_handle()).collect();
    if handles.is_empty() {
        most.into_iter().for_each(std::thread::sleep);
        return Ok(Vec::new());
    }
    // Rounded up, so that the last millisecond is not spent polling.
    let timeout = most.map_or(u32::MAX, |most| {
        u32::try_from(most.as_nanos().div_ceil(1_000_000)).unwrap_or(LONGEST).min(LONGEST)
    });
    let count = handles.len() as u32;
    // SAFETY: the handles are open for the whole call, and their number is correct.
    if unsafe { WaitForMultipleObjects(count, handles.as_ptr(), 0, timeout) } == WAIT_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the handle is open, and a timeout of 0 does not wait.
    let has_news = |handle: &HANDLE| unsafe { WaitForSingleObject(*handle, 0) } == WAIT_OBJECT_0;
    Ok(handles.iter().map(has_news).collect())
}
