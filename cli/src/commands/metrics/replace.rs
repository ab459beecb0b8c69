//! Replaces a file atomically: a reader finds the old text or the new one.

use crate::platform;
use crate::ui::failure::Failure;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Puts the text there. It is not flushed to the disk: after a power failure it is measured anew.
pub fn file(path: &Path, text: &str) -> Result<(), Failure> {
    let cannot = |error: io::Error| Failure::Command(format!("cannot write {}: {error}", path.display()), 1);
    let Some(name) = path.file_name() else {
        return Err(Failure::Usage(format!("{} is not the name of a file", path.display())));
    };
    if !may_be_replaced(path) {
        let message = format!("{} is no regular file, and is not replaced", path.display());
        return Err(Failure::Usage(format!(
            "{message}; use - for standard output, and a shell's > for devices"
        )));
    }
    // Beside it, because only there it can be renamed; hidden and without its ending, so that nobody collects it.
    let beside = path.with_file_name(format!(".{}.{}.tmp", name.to_string_lossy(), std::process::id()));
    let replaced = write(&beside, text).and_then(|()| fs::rename(&beside, path));
    if replaced.is_err() {
        let _ = fs::remove_file(&beside);
    }
    replaced.map_err(cannot)
}

/// Nothing, or a regular file. Never a device or a pipe, nor a name such as /dev/stdout, whatever it leads to: the whole
/// machine would miss it.
fn may_be_replaced(path: &Path) -> bool {
    !platform::is_device(path) && fs::metadata(path).map_or(true, |there| there.is_file() || there.is_dir())
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    // Writing it would be a signal that ends the program.
    if text.len() as u64 > platform::largest_file() {
        return Err(io::Error::other("it is larger than the files that this process may write (ulimit -f)"));
    }
    // One that is there is what a killed process of this number left, or a trap: it is not written to.
    let _ = fs::remove_file(path);
    platform::create_public(path)?.write_all(text.as_bytes())
}

#[cfg(all(test, unix))] // FIFOs and links
mod tests {
    use super::*;
    use std::os::unix::fs::{FileTypeExt, symlink};

    #[test]
    fn a_pipe_or_a_device_is_not_replaced() {
        let place = tempfile::tempdir().unwrap();
        let pipe = place.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(matches!(file(&pipe, "x"), Err(Failure::Usage(_))));
        assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
        assert!(!may_be_replaced(Path::new("/dev/null")) && !may_be_replaced(Path::new("/dev/stdout")));
    }

    /// The name is easily guessed, and some directories are for several users to write.
    #[test]
    fn a_link_in_the_place_of_the_temporary_file_is_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let [victim, trap] = ["victim", "trap"].map(|name| place.path().join(name));
        fs::write(&victim, "precious").unwrap();
        symlink(&victim, &trap).unwrap();
        write(&trap, "text").unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert_eq!(fs::read_to_string(&trap).unwrap(), "text");
    }
}
