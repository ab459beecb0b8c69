//! The name of this process, and the identity of this boot.

use std::io;
use std::sync::OnceLock;

use windows_sys::Wdk::System::SystemInformation::{
    NtQuerySystemInformation, SYSTEM_INFORMATION_CLASS, SystemProcessInformation, SystemTimeOfDayInformation,
};
use windows_sys::Win32::Foundation::STATUS_INFO_LENGTH_MISMATCH;
use windows_sys::Win32::System::WindowsProgramming::SYSTEM_PROCESS_INFORMATION;

use super::native::check_status;

/// The process id of the kernel's process, on every Windows.
const SYSTEM: usize = 4;
/// The position of the creation time in `SYSTEM_PROCESS_INFORMATION::Reserved1`.
const CREATE_TIME: std::ops::Range<usize> = 24..32;
/// More bytes than the process list of any machine.
const MOST: usize = 64 << 20;

/// The time at which the system process began, in units of 100 ns. The system records it once, at boot: unlike the
/// "boot time" it does not change when the clock is set. The second word identifies the source. The value is
/// queried once, because the only query lists all processes with their threads, and no process outlives its boot.
pub fn boot_id() -> io::Result<[u64; 2]> {
    static KNOWN: OnceLock<[u64; 2]> = OnceLock::new();
    match KNOWN.get() {
        Some(known) => Ok(*known),
        None => ask_boot_id().map(|id| *KNOWN.get_or_init(|| id)),
    }
}

fn ask_boot_id() -> io::Result<[u64; 2]> {
    match system_process_began()? {
        Some(began) => Ok([began, SYSTEM as u64]),
        // Wine has no system process. Its boot time is the start of its server.
        None => Ok([boot_time()?, 0]),
    }
}

fn system_process_began() -> io::Result<Option<u64>> {
    let list = query_list(SystemProcessInformation)?;
    let mut at = 0;
    // The entries are chained by offsets; the last one has 0.
    while let Some(entry) = entry(&list, at) {
        if entry.UniqueProcessId.addr() == SYSTEM {
            let mut time = [0; 8];
            time.copy_from_slice(&entry.Reserved1[CREATE_TIME]);
            return Ok(Some(u64::from_le_bytes(time)).filter(|time| *time != 0));
        }
        match entry.NextEntryOffset as usize {
            0 => break,
            next => at += next,
        }
    }
    Ok(None)
}

fn entry(list: &[u64], at: usize) -> Option<&SYSTEM_PROCESS_INFORMATION> {
    let fits = at.checked_add(size_of::<SYSTEM_PROCESS_INFORMATION>())? <= size_of_val(list);
    // SAFETY: the range is inside the buffer and has its alignment; the structure is plain data, so any bytes are a
    // valid value.
    (fits && at.is_multiple_of(align_of::<SYSTEM_PROCESS_INFORMATION>()))
        .then(|| unsafe { &*list.as_ptr().cast::<u8>().add(at).cast() })
}

fn boot_time() -> io::Result<u64> {
    let mut times = [0_u64; 6];
    query(SystemTimeOfDayInformation, &mut times)?;
    Ok(times[0])
}

/// Queries an answer of unknown length. The buffer consists of words, because the answer requires their alignment.
fn query_list(class: SYSTEM_INFORMATION_CLASS) -> io::Result<Vec<u64>> {
    let mut list = vec![0; 32 << 10];
    loop {
        match query(class, &mut list) {
            Err(error) if is_too_short(&error) && size_of_val(&list[..]) < MOST => {
                list.resize(list.len() * 2, 0);
            }
            answer => return answer.map(|()| list),
        }
    }
}

fn is_too_short(error: &io::Error) -> bool {
    check_status(STATUS_INFO_LENGTH_MISMATCH).is_err_and(|short| short.raw_os_error() == error.raw_os_error())
}

fn query(class: SYSTEM_INFORMATION_CLASS, answer: &mut [u64]) -> io::Result<()> {
    let mut length = 0;
    // SAFETY: the buffer is alive, writable and as long as stated; the system writes plain data.
    check_status(unsafe {
        NtQuerySystemInformation(class, answer.as_mut_ptr().cast(), size_of_val(answer) as u32, &mut length)
    })
}

/// The file name of the program, without `.exe`.
pub fn program_name() -> [u8; 16] {
    let program = std::env::current_exe().unwrap_or_default();
    let stem = program.file_stem().unwrap_or_default().to_string_lossy();
    // Does not cut a character in half.
    let len = (0..=stem.len().min(15)).rev().find(|len| stem.is_char_boundary(*len)).unwrap_or(0);
    let mut name = [0; 16];
    name[..len].copy_from_slice(&stem.as_bytes()[..len]);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_boot_id_equals_the_queried_one() {
        assert_eq!(boot_id().unwrap(), ask_boot_id().unwrap());
    }
}
