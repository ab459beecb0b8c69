//! The committed headers equal the headers that this source generates.

// The test asks cargo about the crate, and cargo does not exist under Wine. The source is the same on every system.
#![cfg(unix)]

mod header_order;
mod layout_facts;

use shmlimit::Algorithm;
use shmlimit::headers::HeaderFormat;
use std::path::{Path, PathBuf};

fn crate_directory() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The two headers: the functions, and the layout of a segment for programs that read one without them.
const HEADERS: [Header; 2] = [
    Header { file: "shmlimit.h", config: "cbindgen.toml", is_layout: false },
    Header { file: "shmlimit_segment.h", config: "cbindgen-segment.toml", is_layout: true },
];

struct Header {
    file: &'static str,
    config: &'static str,
    is_layout: bool,
}

impl Header {
    fn committed(&self) -> PathBuf {
        crate_directory().join("../include").join(self.file)
    }

    fn generated(&self) -> String {
        let mut config = cbindgen::Config::from_file(crate_directory().join(self.config)).unwrap();
        config.export.exclude = names(|file| is_layout(file) != self.is_layout);
        if self.is_layout {
            config.after_includes = Some(stored_codes());
        }
        let bindings = cbindgen::Builder::new().with_crate(crate_directory()).with_config(config).generate();
        let mut header = Vec::new();
        bindings.unwrap().write(&mut header);
        let header = String::from_utf8(header).unwrap();
        if !self.is_layout {
            return header_order::arranged(&header, |file| {
                names(|other| other.strip_prefix(crate_directory().join("src")) == Ok(file))
            });
        }
        // Inserts before the end of the include guard, after everything that cbindgen generates.
        let (before, end) = header.split_at(header.rfind("#endif").unwrap());
        format!("{before}{}\n{end}", layout_facts::assertions())
    }
}

/// The codes of algorithms and header formats. They come from the library's enums, so a new code needs no line
/// here.
fn stored_codes() -> String {
    let algorithms = Algorithm::ALL.iter().map(|one| ("ALGORITHM", one.as_str(), *one as u8));
    let formats = HeaderFormat::ALL.iter().map(|one| ("HEADERS", one.as_str(), *one as u8));
    let define = |(kind, name, code): (&str, &str, u8)| {
        let constant = format!("SHMLIMIT_SEGMENT_{kind}_{}", name.to_uppercase());
        format!("/**\n * {name:?} in configuration files.\n */\n#define {constant} {code}\n")
    };
    algorithms.chain(formats).map(|code| format!("\n{}", define(code))).collect()
}

/// Whether a source file describes the layout of a segment.
fn is_layout(file: &Path) -> bool {
    let within = file.strip_prefix(crate_directory().join("src")).unwrap();
    within.starts_with("layout") || within == Path::new("layout.rs")
}

/// The C names of the items in the wanted source files.
fn names(wanted: impl Fn(&Path) -> bool) -> Vec<String> {
    let mut files = Vec::new();
    sources(&crate_directory().join("src"), &mut files);
    let texts = files.iter().filter(|file| wanted(file)).map(|file| std::fs::read_to_string(file).unwrap());
    let name = |line: &str| {
        let item = line
            .strip_prefix("pub ")?
            .trim_start_matches("unsafe ")
            .trim_start_matches("extern \"C-unwind\" ");
        let (kind, rest) = item.split_once(' ')?;
        let is_item = ["const", "struct", "type", "fn"].contains(&kind);
        let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
        (is_item && name.to_lowercase().starts_with("shmlimit")).then(|| name.to_owned())
    };
    texts.flat_map(|text| text.lines().filter_map(name).collect::<Vec<_>>()).collect()
}

/// Collects every source file of the crate.
fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { sources(&path, found) } else { found.push(path) }
    }
}

/// `scripts/languages/header` sets the variable to write the headers instead of comparing them.
#[test]
fn the_committed_headers_equal_the_generated_ones() {
    for header in HEADERS {
        let generated = header.generated();
        if std::env::var_os("SHMLIMIT_WRITE_HEADER").is_some() {
            std::fs::write(header.committed(), &generated).unwrap();
        }
        let committed = std::fs::read_to_string(header.committed()).unwrap_or_default();
        assert!(
            generated == committed,
            "include/{} is out of date; run scripts/languages/header. It should be:\n{generated}",
            header.file
        );
    }
}

#[test]
fn the_header_states_the_conventions() {
    assert!(HEADERS[0].generated().contains("API conventions"));
}

#[test]
fn the_header_is_in_the_order_in_which_a_program_needs_it() {
    let header = HEADERS[0].generated();
    let at = |text: &str| header.find(text).unwrap_or_else(|| panic!("no {text:?} in the header"));
    let headings: Vec<usize> =
        header_order::GROUPS.iter().map(|(heading, _)| at(&format!("\n/* ---- {heading} -"))).collect();
    assert!(headings.is_sorted(), "{headings:?}");
    let ordered = [
        "SHMLIMIT_VERSION_MAJOR ",
        "SHMLIMIT_OK ",
        "shmlimit_last_error(",
        "struct shmlimit_options {",
        " shmlimit_open(",
        " shmlimit_close(",
        "struct shmlimit_request {",
        "SHMLIMIT_REASON_SLEEP ",
        "struct shmlimit_answer {",
        " shmlimit_acquire(",
        " shmlimit_try_acquire(",
        " shmlimit_release(",
        " shmlimit_cancel(",
        "struct shmlimit_outcome {",
        " shmlimit_record(",
        " shmlimit_enqueue(",
        " shmlimit_set(",
        " shmlimit_pause(",
        " shmlimit_remove(",
        " shmlimit_snapshot_take(",
        " shmlimit_list(",
        " shmlimit_test_clock_new(",
    ];
    let code: Vec<&str> = header.lines().filter(|line| !header_order::is_comment(line)).collect();
    let code = code.join("\n");
    let positions: Vec<Option<usize>> = ordered.iter().map(|text| code.find(text)).collect();
    assert!(positions.iter().all(Option::is_some) && positions.is_sorted(), "{positions:?}");
}

#[test]
fn the_version_macros_equal_cargos_version() {
    let header = HEADERS[0].generated();
    let [major, minor, patch] = ["MAJOR", "MINOR", "PATCH"].map(|part| {
        let found =
            header.lines().find_map(|line| line.strip_prefix(&format!("#define SHMLIMIT_VERSION_{part} ")));
        found.unwrap().parse::<u32>().unwrap()
    });
    assert_eq!(format!("{major}.{minor}.{patch}"), env!("CARGO_PKG_VERSION"));
    assert!(header.contains(&format!("#define SHMLIMIT_VERSION \"{}\"\n", env!("CARGO_PKG_VERSION"))));
}

/// Items that the C++ header does not need: it has types, destructors and enums instead.
const NOT_IN_CPP: [&str; 5] = [
    "SHMLIMIT_OK",
    "SHMLIMIT_LAYOUT_VERSION",
    "SHMLIMIT_SEGMENT_SIZE",
    "shmlimit_layout_version",
    "shmlimit_segment_size",
];

#[test]
fn every_item_of_the_c_header_is_used_by_the_cpp_header() {
    let header = std::fs::read_to_string(crate_directory().join("../include/shmlimit.hpp")).unwrap();
    let words: Vec<&str> = header.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let of_c = names(|file| !is_layout(file));
    let lacking =
        of_c.iter().filter(|name| !words.contains(&name.as_str()) && !NOT_IN_CPP.contains(&name.as_str()));
    let lacking: Vec<&String> = lacking.collect();
    assert!(lacking.is_empty(), "shmlimit.hpp lacks {lacking:?}");
}

#[test]
fn every_exported_item_is_in_one_of_the_headers_under_our_prefix() {
    let [functions, layout] = HEADERS.map(|header| header.generated());
    for (header, other, wanted) in [(&functions, &layout, false), (&layout, &functions, true)] {
        let names = names(|file| is_layout(file) == wanted);
        assert!(names.len() > 20, "this test no longer sees the source");
        for name in names {
            let defines = |header: &str| {
                [format!("#define {name} "), format!(" {name};"), format!("{name}(")].iter().any(|form| {
                    header.lines().any(|line| !line.trim_start().starts_with('*') && line.contains(form))
                })
            };
            assert!(defines(header), "{name} is in no header");
            assert!(!defines(other), "{name} is in both headers");
        }
    }
}

#[test]
fn every_struct_of_the_layout_is_asserted_field_by_field() {
    let header = HEADERS[1].generated();
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
