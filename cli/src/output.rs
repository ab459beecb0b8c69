//! What is said: a reader that goes away is not a failure, colours are for terminals.

use crate::args::Place;
use crate::failure::Failure;
use crate::{platform, safe};
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

static HUSHED: AtomicBool = AtomicBool::new(false);

/// From here on nothing is remarked: exit codes say it all.
pub fn hush() {
    HUSHED.store(true, Ordering::Relaxed);
}

/// Writes one line or more.
pub fn line(line: &str) -> Result<(), Failure> {
    text(&format!("{line}\n"))
}

/// Writes one line of JSON. What it can hold, verb by verb: docs/json.md.
pub fn json(object: &impl Serialize) -> Result<(), Failure> {
    line(&to_json(object)?)
}

/// An object as one line of JSON that is safe to show.
pub fn to_json(object: &impl Serialize) -> Result<String, Failure> {
    Ok(safe::json(serde_json::to_string(object).map_err(io::Error::from)?))
}

/// A time as the keys in `_ns` have it.
pub fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Writes text, whole. What would act on a terminal is written so that it can be read; colours are for terminals.
pub fn text(text: &str) -> Result<(), Failure> {
    let is_terminal = io::stdout().is_terminal();
    raw(&if is_terminal { safe::painted(text) } else { safe::lines(text) })
}

/// Writes text as it is, for those who move the cursor. What others chose must have been made safe.
pub fn raw(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// The directory that was typed, if one was.
static TYPED: OnceLock<String> = OnceLock::new();

/// From here on commands in messages are for this place.
pub fn at(place: &Place) {
    if let Some(dir) = &place.dir {
        let _ = TYPED.set(dir.display().to_string());
    }
}

/// A message whose commands work where it is read: with the directory that was typed, or without one where none was.
pub fn placed(text: &str) -> String {
    commands_at(text, TYPED.get().map(String::as_str))
}

fn commands_at(text: &str, dir: Option<&str>) -> String {
    const TOOL: &str = "shmlimit ";
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(TOOL) {
        let (before, found) = rest.split_at(at + TOOL.len());
        out.push_str(before);
        rest = found;
        if let Some(after) = found.strip_prefix("--dir ") {
            // The library names the directory always.
            rest = word_end(after).map_or(found, |end| after[end..].trim_start());
        } else if !VERBS.iter().any(|verb| {
            found.strip_prefix(verb).is_some_and(|after| !after.starts_with(char::is_alphanumeric))
        }) {
            continue;
        }
        if let Some(dir) = dir {
            out.push_str(&format!("--dir {} ", quoted(dir)));
        }
    }
    out + rest
}

/// Verbs whose limiters are in a directory.
const VERBS: [&str; 13] = [
    "run", "acquire", "record", "status", "top", "init", "set", "force", "pause", "resume", "rm", "metrics",
    "doctor",
];

/// Where the first word of a command ends, quotes and all.
fn word_end(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (None, '\\') if !cfg!(windows) => escaped = true,
            (None, ' ') => return Some(at),
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            _ => {}
        }
    }
    None
}

/// The command that was typed, without one of its options.
pub fn again_without(option: &str) -> String {
    again("").replacen(&format!(" {option}"), "", 1)
}

/// The command that was typed, with more options.
pub fn again(more: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut typed = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let mut end = None;
    while let Some(word) = typed.next() {
        match word.as_str() {
            // It is said once, in front.
            "--dir" if end.is_none() => drop(typed.next()),
            word if word.starts_with("--dir=") && end.is_none() => {}
            "--" if end.is_none() => {
                end = Some(words.len());
                words.push("--".to_owned());
            }
            word => words.push(quoted(word)),
        }
    }
    if !more.is_empty() {
        words.insert(end.unwrap_or(words.len()), more.to_owned());
    }
    format!("shmlimit {}", words.join(" "))
}

/// Words of a command, as a shell reads them.
pub fn words(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    words.join(" ")
}

/// A limiter's name as the first argument of a suggested command. One that begins with a hyphen follows `--`.
pub fn operand(name: &str) -> String {
    if name.starts_with('-') { format!("-- {name}") } else { name.to_owned() }
}

/// The command that removes a limiter also while programs use it.
pub fn removal(name: &str) -> String {
    if name.starts_with('-') {
        format!("shmlimit rm --force -- {name}")
    } else {
        format!("shmlimit rm {name} --force")
    }
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "._-/+:@%,=\\".contains(c);
    match word {
        "" => "\"\"".to_owned(),
        word if word.chars().all(|c| plain(c) && (c != '\\' || cfg!(windows))) => word.to_owned(),
        // What the shells of Windows understand.
        word if cfg!(windows) => format!("\"{word}\""),
        word => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Says something on standard error that changes nothing; a standard error that is closed does not either.
pub fn remark(text: &str) {
    if !HUSHED.load(Ordering::Relaxed) {
        insist(text);
    }
}

/// The same even where nothing is to be remarked: it tells of a change for every program.
pub fn insist(text: &str) {
    let message = format!("shmlimit: {}\n", safe::lines(&placed(text)));
    // In one write, so that lines of several processes do not mix.
    let _ = io::stderr().write_all(message.as_bytes());
}

/// Says what the parser of arguments has to say: help, or what was typed wrongly. Help for a pager that was quit is not a
/// failure.
pub fn clap(answer: &clap::Error) {
    let plain = answer.render().to_string();
    let _ = match safe::lines(&plain) {
        Cow::Borrowed(_) if !answer.use_stderr() || io::stderr().is_terminal() => answer.print(),
        // No colours: nobody would see them, or an argument would act on the terminal. In one write, as remarks are.
        text => io::stderr().write_all(text.as_bytes()),
    };
}

/// Colours, or none.
#[derive(Debug, Clone, Copy)]
pub struct Paint {
    on: bool,
}

impl Paint {
    /// As standard output and the user want it (`NO_COLOR`).
    pub fn for_stdout() -> Paint {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Paint { on: !unwanted && io::stdout().is_terminal() && platform::understands_escapes() }
    }

    /// No colours.
    #[cfg(test)]
    pub const PLAIN: Paint = Paint { on: false };

    pub fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    pub fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }

    /// Green, yellow or red: plenty, little or nothing left.
    pub fn level(self, left: f64, text: &str) -> String {
        self.wrap(
            if left <= 0.0 {
                "31"
            } else if left < 0.25 {
                "33"
            } else {
                "32"
            },
            text,
        )
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_in_messages_have_the_directory_that_was_typed_and_no_other() {
        let message = "no: make it with: shmlimit --dir '/tmp/a b' init x --rate 1/s, or: shmlimit rm x; shmlimit running";
        let none = "no: make it with: shmlimit init x --rate 1/s, or: shmlimit rm x; shmlimit running";
        assert_eq!(commands_at(message, None), none);
        let typed = "no: make it with: shmlimit --dir /t init x --rate 1/s, or: shmlimit --dir /t rm x; shmlimit running";
        assert_eq!(commands_at(message, Some("/t")), typed);
        assert_eq!(
            commands_at("use shmlimit set x", Some("a b")),
            format!("use shmlimit --dir {} set x", quoted("a b"))
        );
        assert_eq!(
            commands_at("end it with: shmlimit resume x", Some("/t")),
            "end it with: shmlimit --dir /t resume x"
        );
    }

    #[cfg(unix)]
    #[test]
    fn words_with_blanks_and_quotes_are_quoted() {
        assert_eq!(words(&["a", "b c", "", "it's", "-x/y.toml"]), r#"a 'b c' "" 'it'\''s' -x/y.toml"#);
        assert_eq!(word_end(r"'it'\''s' rest"), Some(9));
    }
}
