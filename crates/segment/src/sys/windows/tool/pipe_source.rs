//! Pipes to us that are never waited for by reading.
//!
//! The pipes of `CreatePipe` cannot be waited for together with anything else. So each is a named pipe with a name of its
//! own, and one read of it is always under way: when that is done its event is set. What a program wrote before it ended
//! has reached the read that was under way, or is there for the next one.

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

/// Bytes that the system keeps for a reader who is late, as on Linux.
const HOLDS: u32 = 64 << 10;
const READ_AT_ONCE: usize = 64 << 10;
/// Names of pipes are among all of the machine.
const NAME: &str = "shmlimit-run-";

/// The read under way: the system writes here whenever it likes.
struct Flight {
    overlapped: OVERLAPPED,
    bytes: [u8; READ_AT_ONCE],
}

/// The end of a pipe that is read.
#[derive(Debug)]
pub struct PipeSource {
    pipe: OwnedHandle,
    done: OwnedHandle,
    /// Ours, but for what the system writes while a read is under way.
    flight: *mut Flight,
    under_way: bool,
}

// SAFETY: the pointer is the only one to what it points to, and the system does not care which thread asks.
unsafe impl Send for PipeSource {}

impl PipeSource {
    /// A new pipe, and the end that is written to. No program inherits either.
    pub fn new() -> io::Result<(PipeSource, PipeWriter)> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = wide(&format!(r"\\.\pipe\{NAME}{}-{number}", std::process::id()));
        let open = PIPE_ACCESS_INBOUND | FILE_FLAG_OVERLAPPED | FILE_FLAG_FIRST_PIPE_INSTANCE;
        // SAFETY: the name ends with a zero; without attributes it is this user's, and not inherited. It is ours alone.
        let pipe = unsafe {
            owned(CreateNamedPipeW(name.as_ptr(), open, PIPE_REJECT_REMOTE_CLIENTS, 1, 0, HOLDS, 0, null()))
        }?;
        // SAFETY: as above. There is one place at the other end, and this takes it.
        let writer = unsafe {
            owned(CreateFileW(name.as_ptr(), GENERIC_WRITE, 0, null(), OPEN_EXISTING, 0, null_mut()))
        }?;
        // SAFETY: neither attributes nor a name; it is ours alone.
        let done = unsafe { owned(CreateEventW(null(), 1, 0, null())) }?;
        let flight = Box::new(Flight { overlapped: OVERLAPPED::default(), bytes: [0; READ_AT_ONCE] });
        let mut source = PipeSource { pipe, done, flight: Box::into_raw(flight), under_way: false };
        source.begin()?;
        Ok((source, writer.into()))
    }

    /// Begins the next read. One that is done at once is done like any other.
    fn begin(&mut self) -> io::Result<()> {
        let overlapped = OVERLAPPED { hEvent: self.done.as_raw_handle(), ..OVERLAPPED::default() };
        // SAFETY: no read is under way, so what is there is ours alone; afterwards it is the system's until the read is
        // done, and is not freed before.
        let started = unsafe {
            (*self.flight).overlapped = overlapped;
            let bytes = (&raw mut (*self.flight).bytes).cast();
            let place = &raw mut (*self.flight).overlapped;
            check(ReadFile(self.pipe.as_raw_handle(), bytes, READ_AT_ONCE as u32, null_mut(), place))
        };
        match started {
            Err(error) if error.raw_os_error() != Some(ERROR_IO_PENDING as i32) => {
                // That is news too, and no read is there to tell it.
                // SAFETY: the handle is open.
                unsafe { SetEvent(self.done.as_raw_handle()) };
                Err(error)
            }
            _ => {
                self.under_way = true;
                Ok(())
            }
        }
    }

    /// Reads what is there: how much, or nothing at the end.
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
        // SAFETY: the read is done, so the bytes are ours alone, and that many have been written.
        let bytes = unsafe { &(*self.flight).bytes };
        into.extend_from_slice(&bytes[..count.min(READ_AT_ONCE)]);
        match self.begin() {
            Ok(()) => {}
            // What was read comes first; the next call says that it was the end.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            Err(error) => return Err(error),
        }
        Ok(Some(count))
    }

    fn finish(&self, wait: bool) -> io::Result<usize> {
        let mut count = 0;
        // SAFETY: a read with this place has been started, and the place is alive.
        check(unsafe {
            let place = &raw const (*self.flight).overlapped;
            GetOverlappedResult(self.pipe.as_raw_handle(), place, &mut count, wait.into())
        })?;
        Ok(count as usize)
    }

    /// What is set when there is something to read, or never will be again.
    pub fn ready_event(&self) -> BorrowedHandle<'_> {
        self.done.as_handle()
    }
}

impl Drop for PipeSource {
    fn drop(&mut self) {
        if self.under_way {
            // SAFETY: the place is that of the read under way. If it is done meanwhile there is nothing to call off.
            unsafe { CancelIoEx(self.pipe.as_raw_handle(), &raw const (*self.flight).overlapped) };
            let _ = self.finish(true);
        }
        // SAFETY: no read is under way any more, and this is the only pointer to it.
        drop(unsafe { Box::from_raw(self.flight) });
    }
}

/// Where other programs of this user find the end that is written to: process, handle and the pipe's name.
pub fn writer_address(writer: &PipeWriter) -> io::Result<String> {
    let name = name_of(writer.as_handle())?;
    Ok(format!("{}:{}:{name}", std::process::id(), writer.as_raw_handle().addr()))
}

/// The end that is written to of a pipe in another process. Nothing if it is not the very pipe that was meant: the number
/// of a process or of a handle may be another's by then.
pub fn reach_writer(address: &str) -> Option<PipeWriter> {
    let mut parts = address.splitn(3, ':');
    let (process, handle, name) =
        (parts.next()?.parse().ok()?, parts.next()?.parse::<usize>().ok()?, parts.next()?);
    // SAFETY: what comes back is ours alone.
    let process = unsafe { owned(OpenProcess(PROCESS_DUP_HANDLE, 0, process)) }.ok()?;
    let mut copy: HANDLE = null_mut();
    // SAFETY: the handle of the process is open, and `copy` is writable. A number that is no handle there is an error.
    let copied = unsafe {
        let there = std::ptr::without_provenance_mut(handle);
        let us = GetCurrentProcess();
        DuplicateHandle(process.as_raw_handle(), there, us, &mut copy, 0, 0, DUPLICATE_SAME_ACCESS)
    };
    check(copied).ok()?;
    // SAFETY: the call has just made it for us.
    let copy = unsafe { owned(copy) }.ok()?;
    // SAFETY: the handle is open. Asked first: other kinds of handles have no names of files.
    let is_pipe = unsafe { GetFileType(copy.as_raw_handle()) } == FILE_TYPE_PIPE;
    let is_meant = is_pipe && name.contains(NAME) && name_of(copy.as_handle()).is_ok_and(|its| its == name);
    is_meant.then(|| copy.into())
}

fn name_of(handle: BorrowedHandle<'_>) -> io::Result<String> {
    /// In units of two bytes, with the length before it.
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
