//! P3: opens any bytes as a segment file and makes every call on it. No call may panic, hang or access memory it
//! does not own.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shmlimit::{BreakerCommand, Limiter, Outcome, Request};
use shmlimit_segment::{AttachOptions, Role, layout};
use std::sync::OnceLock;
use std::time::Duration;

const BOUNDS: AttachOptions = AttachOptions {
    lock: Duration::from_millis(1),
    stall: Duration::from_secs(1),
    reclaim: Duration::from_secs(1),
    place: Duration::from_secs(1),
    program: [0; 16],
    role: Role::Participant,
};

/// A directory and a valid segment, created once. A static value is never dropped, so the caller of this program
/// must remove the directory. `scripts/proofs/fuzz` does that, and places it in memory.
fn good() -> &'static (tempfile::TempDir, Vec<u8>) {
    static GOOD: OnceLock<(tempfile::TempDir, Vec<u8>)> = OnceLock::new();
    GOOD.get_or_init(|| {
        let directory = tempfile::TempDir::new().unwrap();
        drop(Limiter::builder("tmdb").directory(directory.path()).open().unwrap());
        let bytes = std::fs::read(directory.path().join("tmdb.shm")).unwrap();
        (directory, bytes)
    })
}

fuzz_target!(|input: &[u8]| {
    let (directory, good) = good();
    let mut bytes = good.clone();
    match input.split_first() {
        // Uses the bytes unchanged, at full length. Most such files are refused when they are opened.
        Some((kind, rest)) if kind % 8 == 0 => {
            let length = rest.len().min(bytes.len());
            bytes[..length].copy_from_slice(&rest[..length]);
        }
        // Changes single words of a valid file, so that most files can be opened.
        Some((_, rest)) => {
            for change in rest.chunks_exact(10) {
                let word = usize::from(u16::from_le_bytes([change[0], change[1]])) % (bytes.len() / 8);
                bytes[word * 8..word * 8 + 8].copy_from_slice(&change[2..10]);
            }
        }
        None => {}
    }
    let path = directory.path().join("tmdb.shm");
    let _ = std::fs::remove_file(&path);
    std::fs::write(&path, &bytes).unwrap();
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&path, private).unwrap();

    let Ok(limiter) = Limiter::builder("tmdb").directory(directory.path()).bounds(BOUNDS).open() else { return };
    let request = Request::new().timeout(Duration::from_micros(100));
    let _ = limiter.try_acquire(&request).map(|grant| grant.cancel());
    let _ = limiter.acquire(&request).map(|grant| grant.release());
    let _ = limiter.snapshot();
    let headers = [("Retry-After", "3"), ("X-RateLimit-Limit", "9"), ("X-RateLimit-Remaining", "1")];
    let _ = limiter.record(&Outcome::http(429, &headers));
    let _ = limiter.try_acquire(&request).map(|grant| grant.record(&Outcome::http(503, &headers)));
    for force in BreakerCommand::ALL {
        let _ = limiter.force(force);
        let _ = limiter.acquire(&request).map(|grant| grant.record(&Outcome::http(200, &[])));
    }
    if let Ok(policy) = limiter.policy() {
        let _ = limiter.set_policy(&policy);
    }
    let _ = limiter.snapshot();
});
