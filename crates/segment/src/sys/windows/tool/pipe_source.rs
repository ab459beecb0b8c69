//! Pipes to this process on which a read never blocks.
//!
//! The pipes of `CreatePipe` cannot be waited for together with other objects. So each pipe is a named pipe with a
//! unique name, and one read of it is always in progress. When the read is complete, its event is set. Bytes that a
//! program wrote before it ended are in the read that was in progress, or available to the next one.

use std::io::{self, PipeWriter};
use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, OwnedHandle};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

use windows_sys::Win32::Foundation::{
    DUPLICATE_SAME_ACCESS, DuplicateHandle, ERROR_IO_INCOMPLETE, ERROR_IO_PENDING, GENERIC_WRITE, HANDLE,
};
use windows_sys::Win32::Storage::FileSystem::{
    CreateFileW, FILE_FLAG_FIRST_PIPE_INSTANCE, FILE_FLAG_OVERLAPPED, FILE_NAME_INFO, FILE_TYPE_PIPE,
    FileNameInfo, GetFileInformationByHandleEx, GetFileType, OPEN_EXISTING, PIPE_ACCESS_INBOUND, ReadFile,
};
use windows_sys::Win32::System::IO::{CancelIoEx, GetOverlappedResult, OVERLAPPED};
use windows_sys::Win32::System::Pipes::{CreateNamedPipeW, PIPE_REJECT_REMOTE_CLIENTS};
use windows_sys::Win32::System::Threading::{
    CreateEventW, GetCurrentProcess, OpenProcess, PROCESS_DUP_HANDLE, SetEvent,
};

use crate::sys::windows::native::{check, owned, wide};

/// How many bytes the system buffers for a slow reader, as on Linux.
const HOLDS: u32 = 64 << 10;
const READ_AT_ONCE: usize = 64 << 10;
/// Pipe names share one namespace for the whole machine.
const NAME: &str = "shmlimit-run-";

/// The read in progress: the system may write here at any time.
struct Flight {
    overlapped: OVERLAPPED,
    bytes: [u8; READ_AT_ONCE],
}

/// The reading end of a pipe.
#[derive(Debug)]
pub struct PipeSource {
    pipe: OwnedHandle,
    done: OwnedHandle,
    /// Owned by this value, except that the system writes to it while a read is in progress.
    flight: *mut Flight,
    under_way: bool,
}

// SAFETY: this is the only pointer to its target, and the system accepts calls from any thread.
unsafe impl Send for PipeSource {}

impl PipeSource {
    /// Creates a pipe and returns it with its writing end. Neither end is inherited by other programs.
    pub fn new() -> io::Result<(PipeSource, PipeWriter)> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = wide(&format!(r"\\.\pipe\{NAME}{}-{number}", std::process::id()));
        let open = PIPE_ACCESS_INBOUND | FILE_FLAG_OVERLAPPED | FILE_FLAG_FIRST_PIPE_INSTANCE;
        // SAFETY: the name ends with a zero; without attributes the pipe belongs to this user and is not inherited.
        // Only this code owns the returned handle.
        let pipe = unsafe {
            owned(CreateNamedPipeW(name.as_ptr(), open, PIPE_REJECT_REMOTE_CLIENTS, 1, 0, HOLDS, 0, null()))
        }?;
        // SAFETY: as above. The pipe has room for one client, and this call takes it.
        let writer = unsafe {
            owned(CreateFileW(name.as_ptr(), GENERIC_WRITE, 0, null(), OPEN_EXISTING, 0, null_mut()))
        }?;
        // SAFETY: neither attributes nor a name are given; only this code owns the returned handle.
        let done = unsafe { owned(CreateEventW(null(), 1, 0, null())) }?;
        let flight = Box::new(Flight { overlapped: OVERLAPPED::default(), bytes: [0; READ_AT_ONCE] });
        let mut source = PipeSource { pipe, done, flight: Box::into_raw(flight), under_way: false };
        source.begin()?;
        Ok((source, writer.into()))
    }

    /// Begins the next read. A read that completes at once is treated like any other.
    fn begin(&mut self) -> io::Result<()> {
        let overlapped = OVERLAPPED { hEvent: self.done.as_raw_handle(), ..OVERLAPPED::default() };
        // SAFETY: no read is in progress, so only this code uses the target. From now on the system owns it until
        // the read is complete, and it is not freed before that.
        let started = unsafe {
            (*self.flight).overlapped = overlapped;
            let bytes = (&raw mut (*self.flight).bytes).cast();
            let overlapped = &raw mut (*self.flight).overlapped;
            check(ReadFile(self.pipe.as_raw_handle(), bytes, READ_AT_ONCE as u32, null_mut(), overlapped))
        };
        match started {
            Err(error) if error.raw_os_error() != Some(ERROR_IO_PENDING as i32) => {
                // The waiting thread must learn about the error too, and no read is in progress that would set the
                // event.
                // SAFETY: an event that `self.done` owns.
                unsafe { SetEvent(self.done.as_raw_handle()) };
                Err(error)
            }
            _ => {
                self.under_way = true;
                Ok(())
            }
        }
    }

    /// Reads the available bytes. Returns how many there were, or `None` at the end.
    pub fn read(&mut self, into: &mut Vec<u8>) -> io::Result<Option<usize>> {
        if !self.under_way {
            return Ok(None);
        }
        let count = match self.finish(false) {
            Err(error) if error.raw_os_error() == Some(ERROR_IO_INCOMPLETE as i32) => return Ok(Some(0)),
            answer => {
                self.under_way = false;
                match answer {
                    Ok(count) => count,
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(None),
                    Err(error) => return Err(error),
                }
            }
        };
        // SAFETY: the read is complete, so only this code uses the bytes, and the system has written that many.
        let bytes = unsafe { &(*self.flight).bytes };
        into.extend_from_slice(&bytes[..count.min(READ_AT_ONCE)]);
        match self.begin() {
            Ok(()) => {}
            // The bytes are returned first; the next call reports the end.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            Err(error) => return Err(error),
        }
        Ok(Some(count))
    }

    fn finish(&self, wait: bool) -> io::Result<usize> {
        let mut count = 0;
        // SAFETY: a read with this `OVERLAPPED` has been started, and it is alive.
        check(unsafe {
            let overlapped = &raw const (*self.flight).overlapped;
            GetOverlappedResult(self.pipe.as_raw_handle(), overlapped, &mut count, wait.into())
        })?;
        Ok(count as usize)
    }

    /// The event that is set when bytes are available, and at the end of the pipe.
    pub fn ready_event(&self) -> BorrowedHandle<'_> {
        self.done.as_handle()
    }
}

impl Drop for PipeSource {
    fn drop(&mut self) {
        if self.under_way {
            // SAFETY: the `OVERLAPPED` belongs to the read in progress. If that completes meanwhile, there is nothing
            // to cancel.
            unsafe { CancelIoEx(self.pipe.as_raw_handle(), &raw const (*self.flight).overlapped) };
            let _ = self.finish(true);
        }
        // SAFETY: no read is in progress any more, and this is the only pointer to the target.
        drop(unsafe { Box::from_raw(self.flight) });
    }
}

/// The address at which other programs of this user find the writing end: process, handle and the pipe's name.
pub fn writer_address(writer: &PipeWriter) -> io::Result<String> {
    let name = name_of(writer.as_handle())?;
    Ok(format!("{}:{}:{name}", std::process::id(), writer.as_raw_handle().addr()))
}

/// Opens the writing end of a pipe in another process. `None` if it is not exactly the intended pipe: the system
/// may have given the number of the process or of the handle to another one by then.
pub fn reach_writer(address: &str) -> Option<PipeWriter> {
    let mut parts = address.splitn(3, ':');
    let (process, handle, name) =
        (parts.next()?.parse().ok()?, parts.next()?.parse::<usize>().ok()?, parts.next()?);
    // SAFETY: only this code owns the returned handle.
    let process = unsafe { owned(OpenProcess(PROCESS_DUP_HANDLE, 0, process)) }.ok()?;
    let mut copy: HANDLE = null_mut();
    // SAFETY: the handle of the process is open, and `copy` is writable. A number that is no handle there causes an
    // error.
    let copied = unsafe {
        let there = std::ptr::without_provenance_mut(handle);
        let us = GetCurrentProcess();
        DuplicateHandle(process.as_raw_handle(), there, us, &mut copy, 0, 0, DUPLICATE_SAME_ACCESS)
    };
    check(copied).ok()?;
    // SAFETY: the call has just created the handle for this process.
    let copy = unsafe { owned(copy) }.ok()?;
    // SAFETY: the handle is open. The type is checked first, because other kinds of handles have no file names.
    let is_pipe = unsafe { GetFileType(copy.as_raw_handle()) } == FILE_TYPE_PIPE;
    let is_meant = is_pipe && name.contains(NAME) && name_of(copy.as_handle()).is_ok_and(|its| its == name);
    is_meant.then(|| copy.into())
}

fn name_of(handle: BorrowedHandle<'_>) -> io::Result<String> {
    /// In units of two bytes, including the length that precedes the name.
    const ROOM: usize = 512;
    let mut answer = [0_u32; ROOM / 2];
    // SAFETY: `answer` is alive, writable, aligned for this class, and of that length.
    check(unsafe {
        let length = size_of_val(&answer) as u32;
        GetFileInformationByHandleEx(handle.as_raw_handle(), FileNameInfo, answer.as_mut_ptr().cast(), length)
    })?;
    let bytes: Vec<u8> = answer.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let begin = std::mem::offset_of!(FILE_NAME_INFO, FileName);
    let length = (answer[0] as usize).min(bytes.len() - begin);
    let units: Vec<u16> = bytes[begin..begin + length]
        .chunks_exact(2)
        .map(|unit| u16::from_ne_bytes([unit[0], unit[1]]))
        .collect();
    Ok(String::from_utf16_lossy(&units))
}
