//! Every C and C++ sample in docs/c.md, README.md and shmlimit.hpp compiles without warnings. Every sample that is a
//! program, or can be completed to one, runs.

// These tests use this machine's compiler. scripts/platforms/windows-c compiles and runs the same programs for
// Windows.
#![cfg(unix)]

#[allow(dead_code)]
mod support;

use support::Program;

/// The samples of one language in a page: the line where each begins, and its text.
fn pieces(page: &str, language: &str) -> Vec<(usize, String)> {
    let guide = std::fs::read_to_string(support::root().join(page)).unwrap();
    let mut pieces = Vec::new();
    let mut lines = guide.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        if line == format!("```{language}") {
            let body: Vec<&str> =
                lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
            pieces.push((number + 1, body.join("\n") + "\n"));
        }
    }
    pieces
}

/// Wraps a sample without a main function: provides an open limiter, and in C a grant.
fn framed(piece: &str, language: &str) -> String {
    if language == "cpp" {
        let before = "#include <shmlimit.hpp>\n#include <iostream>\n\nusing namespace std::chrono_literals;\n\n\
            static void piece(shmlimit::limiter &limiter)\n{\n    (void)limiter;\n";
        let after = "}\n\nint main()\n{\n    shmlimit::limiter limiter(\"tmdb\");\n    piece(limiter);\n}\n";
        return format!("{before}{piece}{after}");
    }
    let before = "#include <shmlimit.h>\n#include <stdio.h>\n\n\
        static void piece(shmlimit_limiter *limiter, shmlimit_grant grant)\n{\n    (void)limiter;\n    (void)grant;\n";
    let after = "}\n\nint main(void)\n{\n    shmlimit_limiter *limiter;\n    shmlimit_grant grant;\n    \
        if (shmlimit_open(\"tmdb\", NULL, &limiter) != SHMLIMIT_OK || \
        shmlimit_try_acquire(limiter, NULL, &grant, NULL) != SHMLIMIT_OK)\n        return 1;\n    \
        piece(limiter, grant);\n    return shmlimit_close(limiter);\n}\n";
    format!("{before}{piece}{after}")
}

#[test]
fn every_sample_of_the_guide_compiles_and_runs() {
    for (page, language, least) in
        [("docs/c.md", "c", 7), ("docs/c.md", "cpp", 5), ("README.md", "c", 1), ("README.md", "cpp", 1)]
    {
        let pieces = pieces(page, language);
        assert!(pieces.len() >= least, "{language}: {page} has {} pieces", pieces.len());
        for (line, piece) in pieces {
            let whole = if piece.contains("int main(") { piece } else { framed(&piece, language) };
            let directory = tempfile::tempdir().unwrap();
            let source = directory.path().join(format!("line-{line}.{language}"));
            std::fs::write(&source, whole).unwrap();
            Program::of(&source).run();
        }
    }
}

#[test]
fn the_sample_at_the_top_of_shmlimit_hpp_compiles_and_runs_as_it_stands() {
    let header = std::fs::read_to_string(support::root().join("include/shmlimit.hpp")).unwrap();
    let top = header.lines().take_while(|line| line.starts_with("//"));
    let sample = top.filter_map(|line| line.strip_prefix("//     ").or((line == "//").then_some("")));
    let sample = sample.collect::<Vec<_>>().join("\n") + "\n";
    assert!(sample.contains("int main()"), "{sample}");
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("sample.cpp");
    std::fs::write(&source, sample).unwrap();
    Program::of(&source).run();
}
