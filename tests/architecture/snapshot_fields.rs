//! Checks that the files generated from the description of a snapshot (`src/limiter/fields.rs`) match it.

#[path = "../../examples/fields/generate/mod.rs"]
mod generate;

use shmlimit::schema::{Kind, STRUCTS};
use std::collections::BTreeSet;

#[test]
fn c_structs_python_classes_and_tables_match_the_description() {
    for (path, text) in generate::files(super::root()).unwrap() {
        let present = std::fs::read_to_string(super::root().join(path)).unwrap();
        let differs = present.lines().zip(text.lines()).find(|(present, text)| present != text);
        assert!(present == text, "run scripts/languages/fields: {path} differs: {differs:?}");
    }
}

#[test]
fn every_field_is_described_in_a_sentence_and_has_one_name_in_each_language() {
    for of in STRUCTS {
        assert!(of.doc.trim().ends_with('.'), "{}", of.name);
        let mut names = BTreeSet::new();
        for field in of.fields {
            let doc = field.doc.trim();
            assert!(doc.ends_with('.') && !doc.contains('|'), "{}.{}: {doc}", of.name, field.name);
            let says_none = doc.contains("`None`");
            assert_eq!(says_none, field.optional, "{}.{}: what does its absence mean?", of.name, field.name);
            for name in [field.json.map(|name| ("JSON", name)), field.c.map(|name| ("C", name))] {
                assert!(name.is_none_or(|name| names.insert(name)), "{}.{} {name:?}", of.name, field.name);
            }
            assert!(names.insert(("Python", field.python)), "{}.{}", of.name, field.python);
        }
    }
}

#[test]
fn metrics_are_numbers_and_their_names_are_unique() {
    let mut names = BTreeSet::new();
    for of in STRUCTS {
        for field in of.fields.iter().filter(|field| field.metric.is_some()) {
            let number = matches!(field.kind, Kind::Bool | Kind::U32 | Kind::U64 | Kind::Float | Kind::Time);
            assert!(number && names.insert(field.metric_name(of)), "{}.{}", of.name, field.name);
        }
    }
    assert!(names.len() > 20, "only {} metrics: this test no longer sees them", names.len());
}
