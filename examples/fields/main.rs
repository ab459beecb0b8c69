//! Writes all files that are generated from the description of a snapshot (`src/limiter/fields.rs`): the C structs,
//! the Python classes and the tables of the documents. `scripts/languages/fields` runs this program, and also
//! writes the C header.

mod generate;

use std::path::Path;
use std::{fs, io};

fn main() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (path, text) in generate::files(root)? {
        let path = root.join(path);
        if fs::read_to_string(&path).ok().as_ref() != Some(&text) {
            fs::write(&path, text)?;
            println!("{}", path.display());
        }
    }
    Ok(())
}
