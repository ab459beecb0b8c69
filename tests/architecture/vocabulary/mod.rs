//! One word for one thing in Rust, C, Python, the command line and JSON: `docs/vocabulary.md` lists them, and these tests
//! compare the page with the sources. A name that is in no row fails, and so does a row whose names do not exist.

mod doors;
mod page;

use page::{Row, Table};
use shmlimit::schema::{Kind, STRUCTS};
use std::collections::{BTreeMap, BTreeSet};

const PAGE: &str = "docs/vocabulary.md";

fn page() -> Vec<Table> {
    page::tables(&std::fs::read_to_string(super::root().join(PAGE)).unwrap())
}

/// The rows of all tables that have such a column.
fn rows(column: &str) -> Vec<Row> {
    let rows: Vec<Row> =
        page().into_iter().filter(|table| table.has(column)).flat_map(|table| table.rows).collect();
    assert!(!rows.is_empty(), "{PAGE} has no table with the column {column:?}");
    rows
}

/// A name without what its door adds to the word: the type or struct before it, prefixes, hyphens, the unit of a time.
fn plain(name: &str) -> String {
    let name = name.rsplit(['.', ':']).next().unwrap_or(name).trim_end_matches('=');
    let name = name.strip_prefix("shmlimit_").unwrap_or(name).trim_start_matches('-');
    // C has no methods: the name of a function begins with its object.
    let name =
        ["test_clock_", "pending_"].iter().find_map(|object| name.strip_prefix(object)).unwrap_or(name);
    let name = name.strip_suffix("_ns").unwrap_or(name);
    name.replace('-', "_")
}

#[test]
fn every_name_of_every_door_is_in_one_row_and_is_the_word_of_that_row() {
    let doors = [
        ("Rust", doors::rust()),
        ("C", doors::c()),
        ("Python", doors::python()),
        ("Command line", doors::cli()),
        ("JSON", doors::json()),
    ];
    let rows = rows("Word");
    let mut problems = Vec::new();
    for (door, present) in &doors {
        assert!(
            present.len() > 20,
            "{door}: only {} names: this test no longer sees the source",
            present.len()
        );
        let mut listed = BTreeMap::new();
        for row in &rows {
            for name in &row.names(door) {
                if !present.contains(name) {
                    problems.push(format!("{door} has no `{name}`, which the row `{}` names", row.word()));
                }
                if let Some(other) = listed.insert(name.clone(), row.word()) {
                    problems.push(format!("{door}: `{name}` is in the rows `{other}` and `{}`", row.word()));
                }
                if plain(name) != row.word() && name != row.word() && !row.explains(door) {
                    problems.push(format!(
                        "{door}: `{name}` is another word than `{}`: rename one, or say in the last column why {door} differs",
                        row.word()
                    ));
                }
            }
        }
        for name in present.iter().filter(|name| !listed.contains_key(*name)) {
            let word = plain(name);
            let what = match rows.iter().any(|row| row.word() == word) {
                true => format!("add `{name}` to the column {door} of the row `{word}`"),
                false => {
                    format!("add a row `{word}` with `{name}` in the column {door}, or use the word of a row")
                }
            };
            problems.push(format!("{door}: `{name}` is in no row: {what}"));
        }
    }
    assert!(problems.is_empty(), "{PAGE}:\n{}", problems.join("\n"));
}

#[test]
fn one_word_has_one_row() {
    let mut words = BTreeSet::new();
    for row in rows("Word") {
        assert!(words.insert(row.word().to_owned()), "{PAGE} has two rows `{}`", row.word());
        let used =
            ["Rust", "C", "Python", "Command line", "JSON"].iter().any(|door| !row.names(door).is_empty());
        assert!(used, "{PAGE}: no door has `{}`", row.word());
    }
}

#[test]
fn enumerations_have_the_same_names_in_every_door() {
    let (enums, literals) = (doors::enums(), doors::literals());
    let mut constants = doors::constants("include/shmlimit.h");
    constants.extend(doors::constants("include/shmlimit_segment.h"));
    let mut problems = Vec::new();
    let mut listed = BTreeSet::new();
    let groups = rows("Rust enum");
    for row in &groups {
        let name = row.word();
        listed.insert(name.to_owned());
        let Some(rust) = enums.get(name) else {
            problems.push(format!("there is no enum `{name}` with names"));
            continue;
        };
        let listed: BTreeSet<String> = row.names("Names").into_iter().collect();
        if listed != *rust {
            problems.push(format!("{name} has the names {rust:?}, and the row says {listed:?}"));
        }
        // `429`=`THROTTLED`: not every name can be part of an identifier.
        let spelled = row.pairs("Spelled in C");
        let missing = row.names("Not in C");
        let upper = |name: &String| spelled.get(name).cloned().unwrap_or_else(|| name.to_uppercase());
        for prefix in row.names("C constants") {
            let present: BTreeSet<String> = constants
                .iter()
                .filter_map(|constant| constant.strip_prefix(&prefix))
                .map(str::to_owned)
                .filter(|rest| !row.names("Only in C").contains(rest))
                .collect();
            let wanted: BTreeSet<String> =
                rust.iter().map(upper).filter(|rest| !missing.contains(&format!("{prefix}{rest}"))).collect();
            for lacking in wanted.difference(&present) {
                problems.push(format!("{name}: C lacks `{prefix}{lacking}` (ffi/src)"));
            }
            for other in present.difference(&wanted) {
                problems.push(format!(
                    "{name}: only C has `{prefix}{other}`: name it in the column \"Only in C\""
                ));
            }
        }
        if let Some(python) = literals.get(name) {
            let more: BTreeSet<String> = row.names("Only in Python").into_iter().collect();
            let wanted: BTreeSet<String> = rust.union(&more).cloned().collect();
            if *python != wanted {
                problems.push(format!("{name}: Python has the names {python:?}, Rust {wanted:?}"));
            }
        }
    }
    for name in enums.keys().filter(|name| !listed.contains(*name)) {
        problems.push(format!("the enum `{name}` has no row: add one with its names"));
    }
    assert!(problems.is_empty(), "{PAGE}:\n{}", problems.join("\n"));
}

/// The macros of `shmlimit.h`: an enumeration, a code of an error, or one that the page lists.
#[test]
fn every_constant_of_c_belongs_to_a_row() {
    let prefixes: Vec<String> = rows("Rust enum").iter().flat_map(|row| row.names("C constants")).collect();
    let listed: BTreeSet<String> = rows("Constant").iter().flat_map(|row| row.names("Constant")).collect();
    let constants = doors::constants("include/shmlimit.h");
    assert!(constants.len() > 60, "only {} constants: this test no longer sees the header", constants.len());
    let known = |name: &String| {
        let is_listed =
            |one: &String| one == name || one.strip_suffix('*').is_some_and(|start| name.starts_with(start));
        listed.iter().any(is_listed) || prefixes.iter().any(|prefix| name.starts_with(prefix))
    };
    let unknown: Vec<&String> = constants.iter().filter(|name| !known(name)).collect();
    assert!(unknown.is_empty(), "{PAGE}: add a row for {unknown:?} to the constants of C");
}

/// Snapshots: without a row the field has its name everywhere.
#[test]
fn fields_of_snapshots_have_one_name_unless_a_row_says_why() {
    let rows = rows("Field");
    let row_of = |name: &str| rows.iter().find(|row| row.word() == name);
    let mut differing = BTreeSet::new();
    let mut problems = Vec::new();
    for of in STRUCTS {
        for field in of.fields {
            let wire = |name: &str| name.strip_suffix("_ns").unwrap_or(name).to_owned();
            let metric = field.metric.and_then(|metric| metric.name);
            let names = [
                ("JSON", field.json.map(wire)),
                ("C", field.c.map(wire)),
                ("Python", field.json.map(|_| field.python.to_owned())),
                ("Metric", metric.map(str::to_owned)),
            ];
            let full = format!("{}.{}", of.name, field.name);
            // A part that is flat has no name of its own in JSON.
            let is_flat = field.flat && matches!(field.kind, Kind::Part(_));
            for (door, name) in names {
                let Some(name) = name.filter(|name| *name != field.name && !is_flat) else { continue };
                differing.insert(full.clone());
                if !row_of(&full).is_some_and(|row| row.names(door).contains(&name)) {
                    problems.push(format!(
                        "{full} is `{name}` in {door}: give it one name (src/limiter/fields.rs), or add a row"
                    ));
                }
            }
        }
    }
    for row in rows.iter().filter(|row| !differing.contains(row.word())) {
        problems.push(format!("{} has one name everywhere: remove its row", row.word()));
    }
    assert!(problems.is_empty(), "{PAGE}:\n{}", problems.join("\n"));
}

/// Names that R114 to R116 prescribe, and those of `simulate`, stay although another word is used elsewhere.
#[test]
fn prescribed_names_are_where_the_page_says() {
    let read = |path: &str| std::fs::read_to_string(super::root().join(path)).unwrap();
    let sources = [
        ("Logs", read("src/limiter/events.rs") + &read("crates/kernel/src/state/health.rs")),
        ("Metrics", read("docs/metrics.md")),
        ("Simulate", read("docs/simulate.md")),
    ];
    for row in rows("Simulate") {
        for (column, text) in &sources {
            for name in row.names(column) {
                assert!(text.contains(&name), "{PAGE}: no `{name}` in {column} for {}", row.word());
            }
        }
    }
}

#[test]
fn options_of_init_are_keys_of_the_configuration() {
    let keys = shmlimit::config::keys();
    let last = |key: &'static str| key.rsplit('.').next().unwrap_or(key);
    let mut named = 0;
    for row in rows("Setting") {
        for key in row.names("Setting") {
            let found = keys.iter().find(|one| one.key == key);
            assert!(
                found.is_some_and(|one| last(one.key) == row.word()),
                "{PAGE}: `{}` is not the key `{key}`",
                row.word()
            );
            named += 1;
        }
    }
    assert!(named > 4, "only {named} settings are named");
}
