//! The committed header is the one that this source gives.

mod layout_facts;

use std::path::{Path, PathBuf};

fn crate_directory() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn committed_header() -> PathBuf {
    crate_directory().join("../include/shmlimit.h")
}

fn generated() -> String {
    let config = cbindgen::Config::from_file(crate_directory().join("cbindgen.toml")).unwrap();
    let bindings = cbindgen::Builder::new().with_crate(crate_directory()).with_config(config).generate();
    let mut header = Vec::new();
    bindings.unwrap().write(&mut header);
    let header = String::from_utf8(header).unwrap();
    // Before the end of the include guard, after everything that cbindgen knows.
    let (before, end) = header.split_at(header.rfind("#endif").unwrap());
    format!("{before}{}\n{end}", layout_facts::assertions())
}

/// Every source file of the crate.
fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { sources(&path, found) } else { found.push(path) }
    }
}

/// `scripts/header` sets the variable to write the header instead of comparing it.
#[test]
fn the_committed_header_is_what_the_source_gives() {
    let generated = generated();
    if std::env::var_os("SHMLIMIT_WRITE_HEADER").is_some() {
        std::fs::write(committed_header(), &generated).unwrap();
    }
    let committed = std::fs::read_to_string(committed_header()).unwrap_or_default();
    assert!(
        generated == committed,
        "include/shmlimit.h is out of date; run scripts/header. It should be:\n{generated}"
    );
}

#[test]
fn the_header_states_the_conventions() {
    assert!(generated().contains("API conventions"));
}

#[test]
fn every_exported_function_is_in_the_header_under_our_prefix() {
    let header = generated();
    let mut files = Vec::new();
    sources(&crate_directory().join("src"), &mut files);
    let mut exported = 0;
    for file in files {
        let text = std::fs::read_to_string(file).unwrap();
        for rest in text.split("extern \"C\" fn ").skip(1) {
            let name = rest.split('(').next().unwrap();
            assert!(name.starts_with("shmlimit_"), "{name} has not our prefix");
            assert!(header.contains(&format!("{name}(")), "{name} is not in the header");
            exported += 1;
        }
    }
    assert!(exported > 0, "no exported function was found: this test no longer sees the source");
}

#[test]
fn every_struct_of_the_layout_is_asserted_field_by_field() {
    let header = generated();
    let known = layout_facts::all();
    let mut seen = 0;
    for line in header.lines().filter(|line| line.ends_with('{')) {
        let Some(name) = line.split_whitespace().find(|word| word.starts_with("shmlimit_segment")) else {
            continue;
        };
        assert!(known.iter().any(|facts| facts.name == name), "{name} has no facts");
        seen += 1;
    }
    assert_eq!(seen, known.len());
}
