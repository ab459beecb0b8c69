//! Tests of the contract that are the same on every platform. Tests of a platform's mechanism are in the files of
//! that platform.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::{SharedMap, boot_id, program_name};

#[test]
fn two_mappings_of_one_file_share_their_words() {
    let file = tempfile::tempfile().unwrap();
    file.set_len(8192).unwrap();
    let (one, two) = (SharedMap::new(&file, 8192).unwrap(), SharedMap::new(&file, 8192).unwrap());
    assert_eq!((one.len(), one.base().addr().get() % 4096), (8192, 0));
    assert_ne!(one.base(), two.base());
    // SAFETY: both addresses are live, aligned words used only atomically.
    let (one, two) = unsafe {
        (AtomicU64::from_ptr(one.base().as_ptr().add(3)), AtomicU64::from_ptr(two.base().as_ptr().add(3)))
    };
    one.store(77, Relaxed);
    assert_eq!(two.load(Relaxed), 77);
}

#[test]
fn file_of_another_length_is_not_mapped() {
    let file = tempfile::tempfile().unwrap();
    file.set_len(4096).unwrap();
    for len in [0, 4095, 8192] {
        assert_eq!(SharedMap::new(&file, len).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
    assert_eq!(file.metadata().unwrap().len(), 4096, "a mapping that is too long must not lengthen it");
}

#[test]
fn boot_id_is_the_same_on_every_call() {
    assert_eq!(boot_id().unwrap(), boot_id().unwrap());
    assert_ne!(boot_id().unwrap(), [0, 0]);
}

#[test]
fn program_name_ends_with_a_zero_and_has_no_newline() {
    let name = program_name();
    assert_ne!(name[0], 0);
    assert_eq!(name[15], 0);
    assert!(!name.contains(&b'\n'));
}
