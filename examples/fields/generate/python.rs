//! Generates the Python classes.

use super::wrapped;
use shmlimit::schema::{Field, Kind, STRUCTS, Struct};
use std::collections::BTreeSet;

pub const FILE: &str = "ffi/python/python/shmlimit/_snapshot.py";

const HEAD: &str = "\
\"\"\"A limiter at one moment, as dataclasses. Times are seconds.

Generated from src/limiter/fields.rs by scripts/languages/fields. What a snapshot can do is in _snapshot_methods.py.
\"\"\"

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Tuple

from ._names import IMPORTS
from ._snapshot_methods import SnapshotMethods


def _seconds(nanoseconds: Optional[int]) -> Optional[float]:
    return None if nanoseconds is None else nanoseconds / 1e9
";

/// The content of `_snapshot.py`. Each class comes after the classes that it contains.
pub fn classes() -> String {
    let types: BTreeSet<_> =
        STRUCTS.iter().flat_map(|of| of.fields).filter_map(|field| field.one_of).collect();
    let types: Vec<_> = types.into_iter().collect();
    let mut out = HEAD.replace("IMPORTS", &types.join(", "));
    for of in STRUCTS.iter().rev() {
        out += &class(of);
    }
    out
}

/// The name of a struct in Python: `Rule` for `RuleSnapshot`.
pub fn class_name(of: &Struct) -> &str {
    match of.name.strip_suffix("Snapshot") {
        None | Some("") => of.name,
        Some(name) => name,
    }
}

fn class(of: &Struct) -> String {
    let is_top = of.name == "Snapshot";
    let base = if is_top { "(SnapshotMethods)" } else { "" };
    let mut out = format!("\n\n@dataclass(frozen=True)\nclass {}{base}:\n", class_name(of));
    out += &format!("    \"\"\"{}\"\"\"\n\n", of.doc.trim());
    let fields = || of.fields.iter().filter(|field| field.json.is_some());
    for field in fields() {
        out += &format!("    {}: {}\n", field.python, type_of(field));
        let doc = wrapped(&format!("\"\"\"{}\"\"\"", field.meaning("None")), "   ", "", 116);
        out += &doc;
    }
    if is_top {
        out += "    _document: Dict[str, Any] = field(repr=False, compare=False)\n";
    }
    let exact = fields().filter(|field| matches!(field.kind, Kind::Path));
    let arguments: String = exact.map(|field| format!(", {}: Path", field.python)).collect();
    out += &format!(
        "\n    @classmethod\n    def _of(cls, document: Mapping[str, Any]{arguments}) -> {}:\n        return cls(\n",
        class_name(of)
    );
    for field in fields() {
        out += &format!("            {}={},\n", field.python, value(field));
    }
    if is_top {
        out += "            _document=dict(document),\n";
    }
    out + "        )\n"
}

/// The type of a field in Python.
pub fn type_of(field: &Field) -> String {
    let plain = match field.kind {
        Kind::Bool => "bool".to_owned(),
        Kind::U32 | Kind::U64 => "int".to_owned(),
        Kind::Float | Kind::Time => "float".to_owned(),
        Kind::Path => "Path".to_owned(),
        Kind::Costs | Kind::Codes => "Mapping[str, int]".to_owned(),
        Kind::Histogram => "Tuple[int, ...]".to_owned(),
        Kind::Part(part) => class_name(part).to_owned(),
        Kind::List(element) => format!("Tuple[{}, ...]", class_name(element)),
        _ => field.one_of.unwrap_or("str").to_owned(),
    };
    if field.optional { format!("Optional[{plain}]") } else { plain }
}

/// The expression that reads a field from the document.
fn value(field: &Field) -> String {
    let key = if field.flat {
        "document".to_owned()
    } else {
        format!("document[\"{}\"]", field.json.unwrap_or_default())
    };
    match (field.kind, field.optional) {
        // The document contains the path as text, but not every path is valid text.
        (Kind::Path, _) => field.python.to_owned(),
        (Kind::Time, false) => format!("{key} / 1e9"),
        (Kind::Time, true) => format!("_seconds({key})"),
        (Kind::Histogram, _) => format!("tuple({key})"),
        (Kind::Part(part), false) => format!("{}._of({key})", class_name(part)),
        (Kind::Part(part), true) => format!("None if {key} is None else {}._of({key})", class_name(part)),
        (Kind::List(element), _) => format!("tuple({}._of(one) for one in {key})", class_name(element)),
        _ => key,
    }
}
