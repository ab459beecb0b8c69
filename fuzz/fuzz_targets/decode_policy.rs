//! Any words decode to a policy that encodes to the same words, or to an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shmlimit::Policy;
use shmlimit_kernel::policy::POLICY_WORDS;

fuzz_target!(|bytes: &[u8]| {
    let mut words = shmlimit::presets::policy("tmdb").unwrap().unwrap().encode();
    assert_eq!(words.len(), POLICY_WORDS);
    // Pairs of (where, what) change a good policy; from a wholly random one nothing would get past the first name.
    for change in bytes.chunks_exact(9) {
        let value = u64::from_le_bytes(change[1..9].try_into().unwrap());
        words[usize::from(change[0]) % POLICY_WORDS] = value;
    }
    if let Ok(policy) = Policy::decode(&words) {
        assert_eq!(policy.encode(), words);
    }
});
