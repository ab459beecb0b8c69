//! Replacing a file as a whole: whoever reads it finds the old text or the new one, and nothing between.

use crate::failure::Failure;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// For everybody to read: whoever collects is somebody else, as a rule.
const MODE: u32 = 0o644;

/// Puts the text there. It is not flushed to the disk: after a power failure it is measured anew.
pub fn file(path: &Path, text: &str) -> Result<(), Failure> {
    let cannot = |error: io::Error| Failure::Command(format!("cannot write {}: {error}", path.display()), 1);
    let Some(name) = path.file_name() else {
        return Err(Failure::Usage(format!("{} is not the name of a file", path.display())));
    };
    // Beside it, because only there it can be renamed; hidden and without its ending, so that nobody collects it.
    let beside = path.with_file_name(format!(".{}.{}.tmp", name.to_string_lossy(), std::process::id()));
    let replaced = write(&beside, text).and_then(|()| fs::rename(&beside, path));
    if replaced.is_err() {
        let _ = fs::remove_file(&beside);
    }
    replaced.map_err(cannot)
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    // One that is there is what a killed process of this number left.
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(MODE).open(path)?;
    file.set_permissions(Permissions::from_mode(MODE))?;
    file.write_all(text.as_bytes())
}
