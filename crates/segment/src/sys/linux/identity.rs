//! The name of this process, and the identity of this boot.

use std::io;

pub fn boot_id() -> io::Result<[u64; 2]> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    parse_uuid(text.trim_end())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the boot id is not a UUID"))
}

fn parse_uuid(text: &str) -> Option<[u64; 2]> {
    let digits: String = text.chars().filter(|&c| c != '-').collect();
    if digits.len() != 32 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let value = u128::from_str_radix(&digits, 16).ok()?;
    Some([(value >> 64) as u64, value as u64])
}

/// Reads `/proc/self/comm` rather than argv, because `ps` and `top` show it and it always exists.
pub fn program_name() -> [u8; 16] {
    let mut name = [0; 16];
    let comm = std::fs::read("/proc/self/comm").unwrap_or_default();
    let comm = comm.strip_suffix(b"\n").unwrap_or(&comm);
    let len = comm.len().min(name.len() - 1);
    name[..len].copy_from_slice(&comm[..len]);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_id_is_parsed_as_a_uuid_into_two_words() {
        assert_eq!(
            parse_uuid("01234567-89ab-cdef-0123-456789abcdef"),
            Some([0x0123_4567_89ab_cdef, 0x0123_4567_89ab_cdef])
        );
        assert_eq!(parse_uuid("0123"), None);
        assert_eq!(parse_uuid("+1234567-89ab-cdef-0123-456789abcdef"), None);
    }
}
