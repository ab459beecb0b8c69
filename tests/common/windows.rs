//! What tests need of Windows: access control lists, and files that somebody has to himself.

use std::fs::{File, OpenOptions};
use std::os::windows::ffi::OsStrExt;
use std::os::windows::fs::OpenOptionsExt;
use std::path::Path;
use windows_sys::Win32::Foundation::LocalFree;
use windows_sys::Win32::Security::Authorization::{
    ConvertStringSecurityDescriptorToSecurityDescriptorW, SDDL_REVISION_1,
};
use windows_sys::Win32::Security::{DACL_SECURITY_INFORMATION, SetFileSecurityW};

/// Gives a file or directory a list of its own, in the system's language for them (SDDL).
pub fn set_access(path: &Path, list: &str) {
    let list: Vec<u16> = list.encode_utf16().chain([0]).collect();
    let path: Vec<u16> = path.as_os_str().encode_wide().chain([0]).collect();
    let mut descriptor = std::ptr::null_mut();
    // SAFETY: both texts end with a zero and are alive for the calls; the descriptor is freed once, as it was allocated.
    unsafe {
        let read = ConvertStringSecurityDescriptorToSecurityDescriptorW(
            list.as_ptr(),
            SDDL_REVISION_1,
            &mut descriptor,
            std::ptr::null_mut(),
        );
        assert_ne!(read, 0, "{}", std::io::Error::last_os_error());
        let set = SetFileSecurityW(path.as_ptr(), DACL_SECURITY_INFORMATION, descriptor);
        assert_ne!(set, 0, "{}", std::io::Error::last_os_error());
        LocalFree(descriptor);
    }
}

/// Opens a file as a scanner does that lets nobody else in.
pub fn open_alone(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).share_mode(0).open(path)
}
