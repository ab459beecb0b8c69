//! Writes the generated part of docs/configuration.md.

use crate::settings::{KeyInfo, Kind, keys};

/// The tables of all keys in Markdown: the text between the marks of `docs/configuration.md`.
pub fn reference() -> String {
    let mut page = String::new();
    let mut current = None;
    for key in keys() {
        let (table, name) = key.key.rsplit_once('.').unwrap_or(("", key.key));
        if current != Some(table) {
            let head = match key.list() {
                Some(list) => format!("Each of `[[{list}]]`:"),
                None if table.is_empty() => "At the top:".to_owned(),
                None => format!("In `[{table}]`:"),
            };
            let break_before = if page.is_empty() { "" } else { "\n" };
            page.push_str(&format!(
                "{break_before}{head}\n\n| key | takes | default | meaning |\n| --- | --- | --- | --- |\n"
            ));
            current = Some(table);
        }
        let changeable = if key.changeable { " ⟳" } else { "" };
        page.push_str(&format!(
            "| `{name}`{changeable} | {} | {} | {} |\n",
            takes(key.kind),
            default(key),
            key.meaning
        ));
    }
    page
}

fn takes(kind: Kind) -> String {
    match kind {
        Kind::Choice(words) => {
            let words: Vec<_> = words.iter().map(|word| format!("`\"{word}\"`")).collect();
            words.join(" ")
        }
        Kind::Name => "a name".to_owned(),
        Kind::Whole { most: u64::MAX, .. } => "a whole number".to_owned(),
        Kind::Whole { least, most } if most > u64::from(u32::MAX) => format!("a whole number from {least}"),
        kind => {
            let range = kind.range();
            let range = range.trim_start_matches("from ");
            range.replace("\"unlimited\"", "`\"unlimited\"`").replace("\"auto\"", "`\"auto\"`")
        }
    }
}

/// The default as a file would contain it. A default that is described in words stays as it is.
fn default(key: &KeyInfo) -> String {
    let written = match key.kind {
        _ if key.default.contains(' ') || key.default == "none" && !choice_has(key.kind, "none") => {
            return key.default.to_owned();
        }
        Kind::Name | Kind::Choice(_) | Kind::Length { .. } => true,
        _ => matches!(key.default, "unlimited" | "auto"),
    };
    if written { format!("`\"{}\"`", key.default) } else { format!("`{}`", key.default) }
}

fn choice_has(kind: Kind, word: &str) -> bool {
    matches!(kind, Kind::Choice(words) if words.contains(&word))
}
