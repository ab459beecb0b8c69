//! Adapts the library's messages to Python: where a message names an option or a command of the command-line tool,
//! this names Python's equivalent.

use shmlimit::Error;

/// Options of the tool, and the arguments of `Limiter(…)` that do the same. Longer texts come first.
const ARGUMENTS: &[(&str, &str)] = &[
    ("with --dir or SHMLIMIT_DIR", "with directory= or SHMLIMIT_DIR"),
    ("for example --dir ", "for example "),
    ("with --dir", "with directory="),
    ("--allow-network-fs", "allow_network_fs=True"),
    ("in a configuration file or a Policy", "in the text of a configuration file, with config="),
    ("--rate", "rate="),
    ("--burst", "burst="),
    ("--algorithm", "algorithm="),
    ("--concurrency", "concurrency="),
];

const AFRESH: &str = "replace it with a new one: Limiter(name, ..., replace=True)";
/// The beginning of the library's text about creating a limiter afresh from a file.
const BY_FILE: &str = "write the limiter's settings to a file with: shmlimit";
const BY_TEXT: &str = "change its settings, whose text is limiter.config, and replace it with a new one: \
                       Limiter(name, config=text, replace=True)";
const COMMAND: &str = "shmlimit init NAME ";

/// The message of an error.
pub fn message(error: &Error) -> String {
    match error {
        Error::UnknownLimiter { name, directory } => {
            format!(
                "no limiter {name:?} in {}; create it with: Limiter({name:?}, rate=\"35/s\")",
                directory.display()
            )
        }
        Error::ConfigMismatch { name, differences, updatable, .. } => {
            let change = match updatable {
                true => {
                    "change it for every program that uses it with on_mismatch=\"update\", or one setting of it with \
                     limiter.set(key, value), or replace it with a new one with replace=True"
                }
                false => {
                    "replace it with a new one with replace=True, because it cannot take this change while it is used"
                }
            };
            format!(
                "limiter {name:?} exists with other settings:\n{differences}\nuse it as it is with \
                 on_mismatch=\"adopt\", or {change}"
            )
        }
        Error::DoesNotFit { name, problem, .. } => format!(
            "limiter {name:?} cannot take this change while it is in use: {problem}; make a new limiter, which starts with \
             full buckets, with all its settings: Limiter({name:?}, ..., replace=True), or with the text of limiter.config, \
             changed: Limiter({name:?}, config=text, replace=True)"
        ),
        Error::NoSuchState { name, state, breaker: "no breaker", .. } => {
            let stop = match *state {
                "offline" => "stop all calls with limiter.pause(), or ",
                _ => "",
            };
            format!(
                "limiter {name:?} cannot be forced to {state:?}, because it has no breaker; {stop}replace it with a \
                 limiter that has a breaker: Limiter({name:?}, ..., settings={{\"breaker.kind\": \"fsm\"}}, \
                 replace=True) for the five states, or \"consecutive\" for a breaker that opens after several \
                 failures in a row"
            )
        }
        Error::Damaged { path, problem } => format!("{} is damaged: {problem}; {AFRESH}", path.display()),
        Error::Foreign { path, problem, remedy, .. } => {
            let remedy = remedy.replace("remove it with: REMOVE, and create it again", AFRESH);
            with_arguments(&format!(
                "{} cannot be used and was not changed: {problem}; {}",
                path.display(),
                remedy.replace("remove it with: REMOVE", AFRESH)
            ))
        }
        Error::Directory { .. } => {
            let text = with_arguments(&error.to_string());
            let elsewhere = if text.contains("directory=") {
                ""
            } else {
                ", or choose another directory with directory="
            };
            format!("{text}{elsewhere}")
        }
        other => {
            let text = other.to_string();
            match (text.split_once(BY_FILE), text.split_once(COMMAND)) {
                (Some((problem, _)), _) => format!("{problem}{BY_TEXT}"),
                (None, Some((problem, options))) => format!("{problem}{}", call(options)),
                (None, None) => with_arguments(&text),
            }
        }
    }
}

/// The call of `Limiter(…)` that does the same as the command `shmlimit init NAME` with these options.
fn call(options: &str) -> String {
    let mut call = "Limiter(name".to_owned();
    let mut words = options.split_whitespace();
    while let Some(option) = words.next() {
        call += &match (option, words.clone().next()) {
            ("--replace", _) => ", replace=True".to_owned(),
            ("--rate", Some(rate)) => format!(", rate={rate:?}"),
            (option, Some(value)) if option.starts_with("--") => format!(", {}={value}", &option[2..]),
            _ => continue,
        };
    }
    call + ")"
}

fn with_arguments(text: &str) -> String {
    ARGUMENTS.iter().fold(text.to_owned(), |text, (option, argument)| text.replace(option, argument))
}
