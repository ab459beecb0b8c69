//! The generated part of docs/presets.md.

use super::all;

/// Every preset with its source and notes, in Markdown: what `docs/presets.md` holds between its marks.
pub fn reference() -> String {
    let mut page = String::new();
    for preset in all() {
        let break_before = if page.is_empty() { "" } else { "\n" };
        page.push_str(&format!("{break_before}### `{}`\n\n{}.\n\n", preset.name, preset.about));
        page.push_str(&format!("- Numbers: {}\n", preset.source));
        for note in preset.notes {
            page.push_str(&format!("- {note}\n"));
        }
    }
    page
}
