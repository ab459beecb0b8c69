//! Windows helpers for tests: access control lists and exclusively opened files; and small disks, under Wine.

use std::fs::{File, OpenOptions};
use std::os::windows::ffi::OsStrExt;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::AsRawHandle;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;
use windows_sys::Win32::Foundation::LocalFree;
use windows_sys::Win32::Security::Authorization::{
    ConvertStringSecurityDescriptorToSecurityDescriptorW, SDDL_REVISION_1,
};
use windows_sys::Win32::Security::{DACL_SECURITY_INFORMATION, SetFileSecurityW};
use windows_sys::Win32::Storage::FileSystem::{
    LOCKFILE_EXCLUSIVE_LOCK, LOCKFILE_FAIL_IMMEDIATELY, LockFileEx,
};
use windows_sys::Win32::System::IO::OVERLAPPED;

/// Gives a file or directory this access control list, in the security descriptor definition language (SDDL).
pub fn set_access(path: &Path, list: &str) {
    let list: Vec<u16> = list.encode_utf16().chain([0]).collect();
    let path: Vec<u16> = path.as_os_str().encode_wide().chain([0]).collect();
    let mut descriptor = std::ptr::null_mut();
    // SAFETY: both texts end with a zero and are alive for the calls; the descriptor is freed once, as it was
    // allocated.
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

/// Locks the first byte of a file for as long as it is open.
pub fn lock_first_byte(file: &File) {
    let flags = LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY;
    // SAFETY: the handle is open for synchronous use, and the place, all zero, is alive for the whole call.
    let locked = unsafe { LockFileEx(file.as_raw_handle(), flags, 0, 1, 0, &mut OVERLAPPED::default()) };
    assert_ne!(locked, 0, "{}", std::io::Error::last_os_error());
}

/// Opens a file exclusively, as some virus scanners do.
pub fn open_alone(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).share_mode(0).open(path)
}

/// A disk in memory, mounted by the host system of Wine, if that is possible.
pub struct SmallDisk {
    directory: TempDir,
    path: PathBuf,
}

impl SmallDisk {
    pub fn new(options: &str) -> Option<SmallDisk> {
        let directory = TempDir::new_in(r"Z:\tmp").ok()?;
        let disk = SmallDisk { path: directory.path().join("disk"), directory };
        std::fs::create_dir(&disk.path).unwrap();
        disk.have_done(&format!("mount -t tmpfs -o {options} none disk")).then_some(disk)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a command of the host system succeeded, in the directory where the disk is mounted. Wine starts such
    /// programs but does not report how they end, so the command writes its exit code to a file.
    fn have_done(&self, command: &str) -> bool {
        let said = self.directory.path().join("said");
        let _ = std::fs::remove_file(&said);
        let here = self.directory.path().file_name().unwrap().to_str().unwrap();
        let script = format!("cd /tmp/{here} && {{ {command}; echo $? >saying; mv saying said; }}");
        let mut shell = Command::new(r"Z:\bin\sh");
        shell.args(["-c", &script]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let started = shell.spawn().is_ok();
        started
            && super::eventually(|| said.exists())
            && std::fs::read_to_string(&said).unwrap().trim() == "0"
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        self.have_done("umount -l disk");
    }
}
