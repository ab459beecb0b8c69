//! Writes the tables of keys into docs/configuration.md and the table of presets into docs/presets.md, between the
//! marks of each page: `cargo run --example keys`.

use shmlimit::{config, presets};
use std::{fs, io};

fn main() -> io::Result<()> {
    let root = env!("CARGO_MANIFEST_DIR");
    for (page, generated) in [("configuration", config::reference()), ("presets", presets::reference())] {
        let path = format!("{root}/docs/{page}.md");
        let old = fs::read_to_string(&path)?;
        let (before, rest) = old.split_once("<!-- generated -->\n").ok_or_else(no_marks)?;
        let (_, after) = rest.split_once("<!-- end -->\n").ok_or_else(no_marks)?;
        fs::write(&path, format!("{before}<!-- generated -->\n\n{generated}\n<!-- end -->\n{after}"))?;
    }
    Ok(())
}

fn no_marks() -> io::Error {
    io::Error::other("the page has lost its marks")
}
