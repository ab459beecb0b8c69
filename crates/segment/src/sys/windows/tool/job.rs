//! Ensures that a command ends when this process is killed.
//!
//! This process is put in a new job, and every process it starts from then on is in the job from its first moment.
//! The only handle of the job is in this process. When that handle is closed, however this process ends, the system
//! ends all processes in the job.

use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::ptr::null;
use std::sync::OnceLock;

use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobObjectExtendedLimitInformation, SetInformationJobObject,
};
use windows_sys::Win32::System::Threading::GetCurrentProcess;

use crate::sys::windows::native::{check, owned};

/// Kept until this process ends: closing it earlier would end this process too.
static JOB: OnceLock<OwnedHandle> = OnceLock::new();

/// Makes the processes that this process starts from now on end with it. Must be called by one thread at a time.
pub fn end_children_with_us() -> io::Result<()> {
    if let Some(job) = JOB.get() {
        return set_limits(job, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE);
    }
    // SAFETY: neither a name nor attributes are given; only this code owns the returned handle.
    let job = unsafe { owned(CreateJobObjectW(null(), null())) }?;
    // SAFETY: both handles are open for the whole call.
    check(unsafe { AssignProcessToJobObject(job.as_raw_handle(), GetCurrentProcess()) })?;
    let job = JOB.get_or_init(|| job);
    set_limits(job, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE)
}

/// Lets the remaining child processes live on. Called after the command has ended by itself.
pub fn keep_children_alive() -> io::Result<()> {
    JOB.get().map_or(Ok(()), |job| set_limits(job, 0))
}

fn set_limits(job: &OwnedHandle, flags: u32) -> io::Result<()> {
    let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
    limits.BasicLimitInformation.LimitFlags = flags;
    let length = size_of_val(&limits) as u32;
    // SAFETY: the handle is open; `limits` has the type and length of this class, and outlives the call.
    check(unsafe {
        SetInformationJobObject(
            job.as_raw_handle(),
            JobObjectExtendedLimitInformation,
            (&raw const limits).cast(),
            length,
        )
    })
}
