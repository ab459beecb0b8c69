//! `shmlimit completions` writes scripts that the shells accept and that complete the names of limiters.

use crate::cli::Home;
#[cfg(unix)]
use crate::cli::binary;
#[cfg(unix)]
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::process::{Command, Output};

#[cfg(unix)]
fn script(home: &Home, shell: &str) -> PathBuf {
    let path = home.path().join(format!("script.{shell}"));
    std::fs::write(&path, home.tool(&["completions", shell]).succeeds()).unwrap();
    path
}

#[cfg(unix)]
/// Runs a shell that finds this binary by its name; `None` if the shell is not installed.
fn shell(home: &Home, name: &str, arguments: &[&str]) -> Option<Output> {
    let folder = Path::new(binary()).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    let started = Command::new(name)
        .args(arguments)
        .env("PATH", path)
        .env("HOME", home.path())
        .env("SHMLIMIT_DIR", home.path())
        .output();
    match started {
        Ok(output) => Some(output),
        Err(error) => {
            eprintln!("not tested: {name}: {error}");
            None
        }
    }
}

#[cfg(unix)]
fn words(output: &Output) -> Vec<String> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
}

#[cfg(unix)]
const BASH: &str = r#"
source "$1"; shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*"
COMP_POINT=${#COMP_LINE}
handler=$(complete -p shmlimit | sed 's/.*-F \([^ ]*\).*/\1/')
"$handler" shmlimit "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\n' "${COMPREPLY[@]}"
"#;

#[cfg(unix)] // needs a Unix shell
#[test]
fn bash_completes_verbs_options_values_and_names() {
    let home = Home::with(&["my-api", "--rate", "9/s"]);
    home.tool(&["init", "other", "--rate", "9/s"]).succeeds();
    let script = script(&home, "bash");
    let script = script.to_str().unwrap();
    let complete = |typed: &[&str]| {
        let arguments = [&["-c", BASH, "bash", script, "shmlimit"], typed].concat();
        let output = shell(&home, "bash", &arguments).expect("bash is everywhere");
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        words(&output)
    };
    assert_eq!(complete(&["doc"]), ["doctor"]);
    assert_eq!(complete(&["acquire", "--time"]), ["--timeout"]);
    assert_eq!(complete(&["completions", "b"]), ["bash"]);
    assert_eq!(complete(&["status", "my"]), ["my-api"]);
    assert_eq!(complete(&["rm", ""]), ["my-api", "other"]);
    assert_eq!(complete(&["rm", "my-api", "o"]), ["other"]);
    assert_eq!(
        complete(&["run", "tmd"]),
        ["tmdb", "tmdb-legacy"],
        "the limiter of a preset is created at first use"
    );
    assert_eq!(complete(&["presets", "my"]), [""; 1], "only presets");
    assert_eq!(complete(&["--dir", home.path().to_str().unwrap(), "status", "o"]), ["other"]);
    assert_eq!(complete(&["set", "my-api", "ra"]), ["rate"]);
    assert_eq!(complete(&["set", "my-api", "rules.sliding_log.l"]), ["rules.sliding_log.limit"]);
    assert_eq!(complete(&["set", "unknown", "rules.0.l"]), ["rules.0.limit"]);
    assert_eq!(complete(&["set", "my-api", "conc"]), ["concurrency", "concurrency_background"]);
    assert!(
        !complete(&["completions", "--"]).contains(&"--names".to_owned()),
        "--names is internal to the scripts"
    );
}

#[cfg(unix)] // needs a Unix shell
#[test]
fn fish_completes_verbs_and_names() {
    let home = Home::with(&["my-api", "--rate", "9/s"]);
    let script = script(&home, "fish");
    let complete = |typed: &str| {
        let line = format!("source {}; complete -C '{typed}'", script.display());
        let output = shell(&home, "fish", &["--no-config", "-c", &line])?;
        assert!(output.status.success(), "{output:?}");
        Some(words(&output))
    };
    if let Some(verbs) = complete("shmlimit doc") {
        assert_eq!(verbs, ["doctor"]);
        assert_eq!(complete("shmlimit status m").unwrap(), ["my-api"]);
        assert_eq!(complete("shmlimit run tmdb").unwrap(), ["tmdb", "tmdb-legacy"]);
    }
}

#[cfg(unix)] // needs a Unix shell
#[test]
fn zsh_accepts_the_script_and_completes_names() {
    let home = Home::with(&["my-api", "--rate", "9/s"]);
    let script = script(&home, "zsh");
    let text = std::fs::read_to_string(&script).unwrap();
    assert!(text.starts_with("#compdef shmlimit\n"));
    assert!(text.contains(":name -- The limiter:_shmlimit_limiters'"), "the script completes names");
    assert!(
        text.contains(":key -- The setting") && text.contains(":_shmlimit_keys'"),
        "the script completes keys"
    );
    if let Some(output) = shell(&home, "zsh", &["-n", script.to_str().unwrap()]) {
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        // The function that lists the names, with a replacement for the built-in of the completion system.
        let line = format!(
            "compdef() {{ : }}; compadd() {{ print -l ${{(P)2}} }}; source {}; _shmlimit_limiters",
            script.display()
        );
        let names = words(&shell(&home, "zsh", &["-f", "-c", &line]).unwrap());
        assert!(names.contains(&"my-api".to_owned()) && names.contains(&"tmdb".to_owned()), "{names:?}");
    }
}

#[test]
fn powershell_gets_a_script_and_an_unknown_shell_the_list_of_shells() {
    let home = Home::new();
    let text = home.tool(&["completions", "powershell"]).succeeds().to_owned();
    assert!(
        text.contains("Register-ArgumentCompleter -Native -CommandName 'shmlimit', 'shmlimit.exe'"),
        "{text}"
    );
    assert!(text.contains("doctor") && !text.contains("--names"), "--names is internal to the scripts");
    home.tool(&["completions", "bsh"]).fails(2, &["bash, zsh, fish, powershell", "'bash'"]);
    home.tool(&["completions"]).fails(2, &["SHELL"]);
}
