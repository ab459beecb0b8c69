//! The committed header is the one that this source gives.

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
    String::from_utf8(header).unwrap()
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
    let sources = std::fs::read_dir(crate_directory().join("src")).unwrap();
    let mut exported = 0;
    for source in sources {
        let text = std::fs::read_to_string(source.unwrap().path()).unwrap();
        for rest in text.split("extern \"C\" fn ").skip(1) {
            let name = rest.split('(').next().unwrap();
            assert!(name.starts_with("shmlimit_"), "{name} has not our prefix");
            assert!(header.contains(&format!("{name}(")), "{name} is not in the header");
            exported += 1;
        }
    }
    assert!(exported > 0, "no exported function was found: this test no longer sees the source");
}
