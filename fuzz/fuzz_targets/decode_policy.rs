//! Any words decode to an error or to a policy that encodes to the same words.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shmlimit::Policy;
use shmlimit_kernel::policy::POLICY_WORDS;

fuzz_target!(|bytes: &[u8]| {
    let mut words = shmlimit::presets::policy("tmdb").unwrap().unwrap().encode();
    assert_eq!(words.len(), POLICY_WORDS);
    // Pairs of position and value change a valid policy. A completely random policy would fail at its first name.
    for change in bytes.chunks_exact(9) {
        let value = u64::from_le_bytes(change[1..9].try_into().unwrap());
        words[usize::from(change[0]) % POLICY_WORDS] = value;
    }
    if let Ok(policy) = Policy::decode(&words) {
        assert_eq!(policy.encode(), words);
    }
});
