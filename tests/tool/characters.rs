//! Untrusted text neither controls the terminal nor changes the direction of the text around it.

use crate::cli::{Answer, Home, binary};
use crate::util::raw;
use serde_json::Value;
use shmlimit_segment::layout;
use std::process::Command;

/// At most 15 bytes, so that a program can have this name.
const HOSTILE: &str = "\u{1b}[2J\u{9b}\u{202e}x";

#[track_caller]
fn is_safe(answer: &Answer) {
    let is_unsafe = |c: &char| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    for text in [&answer.out, &answer.err] {
        assert_eq!(text.chars().find(is_unsafe), None, "{text:?}");
    }
}

/// A program with the hostile name holds a permit.
#[test]
fn a_hostile_program_name_is_shown_harmlessly() {
    let home = Home::with(&["api", "--rate", "100/s", "--concurrency", "1"]);
    let program = home.path().join(HOSTILE);
    // A link, because some file systems in memory do not allow execution.
    std::os::unix::fs::symlink("/bin/sh", &program).unwrap();
    let program = program.to_str().unwrap();
    let (mut child, _out, first) = home.start(&["run", "api", "--", program, "-c", "echo ready; read -r _"]);
    assert_eq!(first, "ready");
    let mut seen = 0;
    for arguments in [
        &["status", "api"][..],
        &["status", "api", "--json"],
        &["status", "--all"],
        &["rm", "api"],
        &["metrics"],
        &["metrics", "--json"],
        &["doctor"],
        &["doctor", "--json"],
        &["acquire", "api", "--now"],
        &["acquire", "api", "--now", "--json"],
    ] {
        let answer = home.tool(arguments);
        is_safe(&answer);
        seen += usize::from((answer.out + &answer.err).contains("\\u{1b}[2J\\u{9b}\\u{202e}x"));
    }
    assert!(seen >= 3, "status, status --all and rm name it");
    let json = home.tool(&["status", "api", "--json"]).out;
    assert!(json.contains("\\u001b[2J\\u009b\\u202ex"), "{json}");
    let status: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(status["participants"][0]["program"], HOSTILE, "JSON preserves the name");
    drop(child.stdin.take());
    child.wait().unwrap();
}

/// Words in the file that no real program would write.
#[test]
fn hostile_words_in_a_segment_are_shown_harmlessly() {
    let home = Home::with(&["api", "--rate", "100/s"]);
    home.tool(&["record", "api", "--status", "429", "--retry-after", "1h"]).succeeds();
    let path = home.path().join("api.shm");
    let text = b"\x1b]0;\x07\xe2\x80\xae\xc2\x9bx\n\0\0\0\0";
    let words = [0, 8].map(|at| u64::from_ne_bytes(text[at..at + 8].try_into().unwrap()));
    let note = layout::health_state_word(shmlimit_kernel::health_state::GATE_NOTE_AT) + 2;
    for (at, word) in words.into_iter().enumerate() {
        raw::write_word(&path, note + at, word);
    }
    for arguments in [
        &["status"][..],
        &["status", "--json"],
        &["acquire", "api", "--now"],
        &["acquire", "api", "--now", "--json"],
        &["run", "api", "--timeout", "1ms", "--", "true"],
        &["doctor"],
        &["doctor", "--json"],
        &["metrics"],
        &["--log", "-", "--log-level", "debug", "acquire", "api", "--now"],
    ] {
        is_safe(&home.tool(arguments));
    }
    assert!(home.tool(&["status"]).succeeds().contains("recorded by \\u{1b}]0;\\u{7}\\u{202e}\\u{9b}x\\n ("));
}

#[test]
fn typed_text_is_repeated_harmlessly() {
    let home = Home::with(&["api", "--rate", "100/s"]);
    let odd = format!("odd{HOSTILE}");
    let file = home.path().join(format!("{odd}.toml"));
    std::fs::write(
        &file,
        format!("[[rules]]\nname = \"{}\"\nlimit = 1\nperiod = \"1s\"\n", "a\\u001b[2J\\u202E"),
    )
    .unwrap();
    let file = file.to_str().unwrap();
    for arguments in [
        &["acquire", &odd][..],
        &["status", &odd],
        &[&odd],
        &["run", "api", "--", &odd],
        &["acquire", "api", "--group", &odd],
        &["acquire", "api", "--cost", &odd],
        &["acquire", "api", "--cost", &format!("{odd}=1")],
        &["set", "api", &odd, "1"],
        &["force", "api", &odd],
        &["init", "new", "--config", &odd],
        &["init", "new", "--config", file],
        &["record", "api", "--status", &odd],
        &["record", "api", "--headers", &odd],
        &["metrics", "--listen", &odd],
        &["--dir", &odd, "status", "api"],
        &["presets", &odd],
        &["simulate", "--config", &odd],
    ] {
        let answer = home.tool(arguments);
        assert_ne!(answer.code, 0, "{arguments:?}: {}", answer.out);
        assert!(!answer.err.is_empty(), "{arguments:?}");
        is_safe(&answer);
    }
    assert_eq!(
        home.names(),
        ["api.shm", &format!("{odd}.toml"), "ratelimit.lock"],
        "no limiter with such a name was created"
    );
    let output = Command::new(binary())
        .args(["acquire", "api"])
        .env("SHMLIMIT_DIR", home.path())
        .env("SHMLIMIT_LOG_LEVEL", &odd)
        .env("SHMLIMIT_LOG", "-")
        .output()
        .unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(err.contains("SHMLIMIT_LOG_LEVEL is not used"), "{err}");
    is_safe(&Answer { code: 0, out: String::new(), err });
}
