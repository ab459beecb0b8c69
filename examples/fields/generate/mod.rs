//! Generates files from the description of a snapshot.

mod c;
mod documents;
mod python;

use std::path::Path;
use std::{fs, io};

/// Every generated file: its path in the repository, and its content.
pub fn files(root: &Path) -> io::Result<Vec<(&'static str, String)>> {
    let read = |path: &str| fs::read_to_string(root.join(path));
    let structs = c::structs(&read(c::STRUCTS_FILE)?)?;
    Ok(vec![
        (c::STRUCTS_FILE, structs),
        (c::FILL_FILE, c::fill(&read(c::STRUCTS_FILE)?)?),
        (python::FILE, python::classes()),
        (documents::STATUS, replace(&read(documents::STATUS)?, &documents::status())?),
        (documents::METRICS, replace(&read(documents::METRICS)?, &documents::metrics())?),
    ])
}

/// Replaces the text between the marks of a page.
fn replace(page: &str, generated: &str) -> io::Result<String> {
    let lost = || io::Error::other("the page has lost its marks");
    let (before, rest) = page.split_once("<!-- generated -->\n").ok_or_else(lost)?;
    let (_, after) = rest.split_once("<!-- end -->\n").ok_or_else(lost)?;
    Ok(format!("{before}<!-- generated -->\n\n{generated}\n<!-- end -->\n{after}"))
}

/// The text in lines of at most `width` characters, each with `indent` and `mark` before it.
fn wrapped(text: &str, indent: &str, mark: &str, width: usize) -> String {
    let mut lines = vec![format!("{indent}{mark}")];
    for word in text.split_whitespace() {
        let last = lines.last_mut().expect("there is a first line");
        if last.len() + 1 + word.len() > width && last.len() > indent.len() + mark.len() {
            lines.push(format!("{indent}{mark} {word}"));
        } else {
            last.push(' ');
            last.push_str(word);
        }
    }
    lines.join("\n") + "\n"
}
