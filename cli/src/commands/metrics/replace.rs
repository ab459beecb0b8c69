//! Replaces a file atomically: a reader finds either the old or the new text.

use crate::platform;
use crate::ui::failure::Failure;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Replaces the text of a file. The text is not flushed to disk: after a power failure it is written again anyway.
pub fn file(path: &Path, text: &str) -> Result<(), Failure> {
    let cannot = |error: io::Error| Failure::Command(format!("cannot write {}: {error}", path.display()), 1);
    let Some(name) = path.file_name() else {
        return Err(Failure::Usage(format!(
            "{} is not the name of a file; name one with --output",
            path.display()
        )));
    };
    if !may_be_replaced(path) {
        let message = format!("{} is not a regular file, and is not replaced", path.display());
        return Err(Failure::Usage(format!(
            "{message}; use - for standard output, and a shell's > for devices"
        )));
    }
    // The temporary file is in the same directory, because rename works only there. It is hidden and has another
    // extension, so that no collector reads it.
    let beside = path.with_file_name(format!(".{}.{}.tmp", name.to_string_lossy(), std::process::id()));
    let replaced = write(&beside, text).and_then(|()| fs::rename(&beside, path));
    if replaced.is_err() {
        let _ = fs::remove_file(&beside);
    }
    replaced.map_err(cannot)
}

/// Returns whether the path is missing or a regular file. Replacing a device, a pipe or a name such as /dev/stdout
/// would break it for the whole machine.
fn may_be_replaced(path: &Path) -> bool {
    !platform::is_device(path) && fs::metadata(path).map_or(true, |there| there.is_file() || there.is_dir())
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    // The system would send a signal that ends this process.
    if text.len() as u64 > platform::largest_file() {
        return Err(io::Error::other("it is larger than the files that this process may write (ulimit -f)"));
    }
    // An existing file was left by a killed process with the same id, or is a trap. Do not write to it.
    let _ = fs::remove_file(path);
    platform::create_public(path)?.write_all(text.as_bytes())
}

#[cfg(all(test, unix))] // FIFOs and links
mod tests {
    use super::*;
    use std::os::unix::fs::{FileTypeExt, symlink};

    #[test]
    fn pipe_or_device_is_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(matches!(file(&pipe, "x"), Err(Failure::Usage(_))));
        assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        assert!(!may_be_replaced(Path::new("/dev/null")) && !may_be_replaced(Path::new("/dev/stdout")));
    }

    /// The name is easy to guess, and several users may be able to write to the directory.
    #[test]
    fn link_in_place_of_the_temporary_file_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let [victim, trap] = ["victim", "trap"].map(|name| directory.path().join(name));
        fs::write(&victim, "precious").unwrap();
        symlink(&victim, &trap).unwrap();
        write(&trap, "text").unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert_eq!(fs::read_to_string(&trap).unwrap(), "text");
    }
}
