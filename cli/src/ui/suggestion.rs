//! Commands that messages suggest. They are complete, quoted, and include the `--dir` of the user.

use std::path::Path;
use std::sync::OnceLock;

/// The directory that the user gave, and the verbs that take it.
struct Typed {
    directory: String,
    verbs: Vec<&'static str>,
}

static TYPED: OnceLock<Typed> = OnceLock::new();

/// Adds this directory to commands in later messages. `verbs` are those whose limiters are in a directory.
pub fn set_directory(directory: &Path, verbs: Vec<&'static str>) {
    let _ = TYPED.set(Typed { directory: directory.display().to_string(), verbs });
}

/// Adapts the commands in a message: they get the directory that the user gave, or no directory if the user gave
/// none.
pub fn with_directory(text: &str) -> String {
    commands_at(text, TYPED.get())
}

fn commands_at(text: &str, typed: Option<&Typed>) -> String {
    let takes_it = |command: &str, verb: &str| {
        command.strip_prefix(verb).is_some_and(|after| !after.starts_with(char::is_alphanumeric))
    };
    const TOOL: &str = "shmlimit ";
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(TOOL) {
        let (before, found) = rest.split_at(at + TOOL.len());
        out.push_str(before);
        rest = found;
        if let Some(after) = found.strip_prefix("--dir ") {
            // The library always names the directory.
            rest = word_end(after).map_or(found, |end| after[end..].trim_start());
        } else if !typed.is_some_and(|typed| typed.verbs.iter().any(|verb| takes_it(found, verb))) {
            continue;
        }
        if let Some(typed) = typed {
            out.push_str(&format!("--dir {} ", quoted(&typed.directory)));
        }
    }
    out + rest
}

/// Returns the end of the first word of a command, including quotes.
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

/// Returns the user's command without one of its options.
pub fn same_command_without(option: &str) -> String {
    same_command_with("").replacen(&format!(" {option}"), "", 1)
}

/// Returns the user's command with more options.
pub fn same_command_with(more: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut typed = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let mut end = None;
    while let Some(word) = typed.next() {
        match word.as_str() {
            // `--dir` is added once, at the front.
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

/// Quotes words for a shell and joins them.
pub fn shell_words(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    words.join(" ")
}

/// Returns a limiter's name as the first argument of a suggested command. A name that begins with a hyphen follows
/// `--`.
pub fn operand(name: &str) -> String {
    if name.starts_with('-') { format!("-- {name}") } else { name.to_owned() }
}

/// Returns the command that removes a limiter even if programs use it.
pub fn remove_command(name: &str) -> String {
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
        // The shells of Windows understand this quoting.
        word if cfg!(windows) => format!("\"{word}\""),
        word => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_in_messages_have_exactly_the_directory_that_the_user_gave() {
        let at = |directory: &str| Typed {
            directory: directory.to_owned(),
            verbs: vec!["run", "init", "set", "resume", "rm"],
        };
        let message = "no: make it with: shmlimit --dir '/tmp/a b' init x --rate 1/s, or: shmlimit rm x; shmlimit running";
        let none = "no: make it with: shmlimit init x --rate 1/s, or: shmlimit rm x; shmlimit running";
        assert_eq!(commands_at(message, None), none);
        let typed = "no: make it with: shmlimit --dir /t init x --rate 1/s, or: shmlimit --dir /t rm x; shmlimit running";
        assert_eq!(commands_at(message, Some(&at("/t"))), typed);
        assert_eq!(
            commands_at("use shmlimit set x", Some(&at("a b"))),
            format!("use shmlimit --dir {} set x", quoted("a b"))
        );
        assert_eq!(
            commands_at("end it with: shmlimit resume x", Some(&at("/t"))),
            "end it with: shmlimit --dir /t resume x"
        );
    }

    #[cfg(unix)]
    #[test]
    fn words_with_spaces_and_quotes_are_quoted() {
        assert_eq!(shell_words(&["a", "b c", "", "it's", "-x/y.toml"]), r#"a 'b c' "" 'it'\''s' -x/y.toml"#);
        assert_eq!(word_end(r"'it'\''s' rest"), Some(9));
    }
}
