//! Writes a policy as a limiter file.

use crate::settings::{Kind, Settings};
use shmlimit_kernel::Policy;

/// Writes a policy as a file that reads back as the same policy. The file contains every key, so that it keeps its
/// meaning in versions with other defaults.
///
/// ```
/// use shmlimit::{config, presets};
///
/// let tmdb = presets::policy("tmdb").unwrap()?;
/// let file = config::to_toml(&tmdb);
/// assert!(file.contains("[[rules]]\nname = \"rps\"\nalgorithm = \"token_bucket\"\n"));
/// assert_eq!(*config::Config::from_toml(&file)?.policy(), tmdb);
/// # Ok::<(), shmlimit::ConfigError>(())
/// ```
pub fn to_toml(policy: &Policy) -> String {
    let mut text = String::new();
    let mut current = (String::new(), 0);
    for (key, i, value) in Settings::of(policy).each() {
        // `epoch_ns` is not part of a policy. `unlimited` and `auto` are the defaults, and other readers of the
        // format know no word for them.
        if key.key == "epoch_ns" || matches!(value.as_str(), "unlimited" | "auto") && key.kind != Kind::Name {
            continue;
        }
        let (table, name) = key.key.rsplit_once('.').unwrap_or(("", key.key));
        if current != (table.to_owned(), i) {
            let list = key.list();
            let head = list.map_or_else(|| format!("[{table}]"), |list| format!("[[{list}]]"));
            text.push_str(&format!("\n{head}\n"));
            current = (table.to_owned(), i);
        }
        text.push_str(&format!("{name} = {}\n", literal(key.kind, &value)));
    }
    text
}

/// A value as TOML. No value contains characters that would end its quotes.
fn literal(kind: Kind, value: &str) -> String {
    let quoted = match kind {
        Kind::Name | Kind::Choice(_) | Kind::Length { .. } => true,
        // A float would lose the last digits of the largest values.
        Kind::Rate { .. } => value.parse::<f64>().map_or(true, |float| float.to_string() != value),
        _ => false,
    };
    if quoted { format!("\"{value}\"") } else { value.to_owned() }
}
