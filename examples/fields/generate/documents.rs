//! Generates the tables of the documents.

use shmlimit::schema::{Field, Kind, STRUCTS, Struct};

pub const STATUS: &str = "docs/status-json.md";
pub const METRICS: &str = "docs/metrics.md";

const HEAD: &str = "| JSON | C | Python | type | meaning |\n| --- | --- | --- | --- | --- |\n";

/// The tables of `status --json`: first the limiter, then each object and list in it.
pub fn status() -> String {
    let Some(top) = STRUCTS.first() else { return String::new() };
    let mut tables = vec![HEAD.to_owned()];
    rows(top, "", None, &mut tables);
    tables.join("\n")
}

/// Adds the rows of a struct to the first table or to a separate table, and the tables of its nested structs.
fn rows(of: &Struct, python: &str, prefix: Option<&str>, tables: &mut Vec<String>) {
    let own = tables.len() - 1;
    for field in of.fields {
        let Some(json) = field.json else { continue };
        if let (Kind::Part(part), true) = (field.kind, field.flat) {
            let first = tables.len() - 1;
            // The nested tables come after this one.
            let mut nested = vec![String::new()];
            rows(part, &format!("{}.", field.python), prefix, &mut nested);
            let own_rows = nested.remove(0);
            tables[own] += &own_rows;
            tables.splice(first + 1.., nested);
            continue;
        }
        tables[own] += &row(field, json, python, prefix);
        let (part, is_list) = match field.kind {
            Kind::Part(part) => (part, false),
            Kind::List(element) => (element, true),
            _ => continue,
        };
        let word = field.c.unwrap_or(field.name);
        let prefix = if is_list || !field.optional { None } else { Some(word) };
        let title = match is_list {
            true => format!("Each of `{json}` (in C `{}`, in Python `{}`):", c_struct(part), class(part)),
            false => format!("`{json}` (in Python `{}`):", class(part)),
        };
        let mut nested = vec![format!("{title}\n\n{HEAD}")];
        rows(part, "", prefix, &mut nested);
        tables.extend(nested);
    }
}

fn row(field: &Field, json: &str, python: &str, prefix: Option<&str>) -> String {
    let c = match (field.c, field.kind, prefix) {
        (None, ..) => String::new(),
        (Some(_), Kind::Part(_), _) if !field.optional => String::new(),
        (Some(c), Kind::Part(_), _) => format!("`{}`, `{c}_…`", field.name),
        (Some(c), _, Some(prefix)) if !c.starts_with(prefix) => format!("`{prefix}_{c}`"),
        (Some(c), ..) => format!("`{c}`"),
    };
    let meaning = field.meaning("null");
    let meaning = meaning.strip_suffix('.').unwrap_or(&meaning);
    format!("| `{json}` | {c} | `{python}{}` | {} | {meaning} |\n", field.python, type_of(field))
}

fn type_of(field: &Field) -> String {
    let plain = match field.kind {
        Kind::Bool => "true or false",
        Kind::U32 | Kind::U64 | Kind::Float => "number",
        Kind::Time => "time",
        Kind::Part(_) | Kind::Costs | Kind::Codes => "object",
        Kind::List(_) | Kind::Histogram => "list",
        _ => "text",
    };
    if field.optional { format!("{plain} or null") } else { plain.to_owned() }
}

fn class(of: &Struct) -> &str {
    super::python::class_name(of)
}

fn c_struct(of: &Struct) -> String {
    format!("shmlimit_{}", shmlimit::schema::snake_case(of.name))
}

/// The table of the metrics that show exactly one field.
pub fn metrics() -> String {
    let mut out = "| name | type | labels | meaning |\n| --- | --- | --- | --- |\n".to_owned();
    for of in STRUCTS {
        for field in of.fields {
            let (Some(metric), Some(name)) = (field.metric, field.metric_name(of)) else { continue };
            let unit = if matches!(field.kind, Kind::Time) { "_seconds" } else { "" };
            let (end, kind) = if metric.is_counter { ("_total", "counter") } else { ("", "gauge") };
            let labels = match of.name {
                "RuleSnapshot" => "`rule`, `unit`",
                "PaceWindowSnapshot" => "`window`",
                _ => "",
            };
            let meaning = field.meaning("absent");
            let meaning = meaning.strip_suffix('.').unwrap_or(&meaning);
            out += &format!("| `shmlimit_{name}{unit}{end}` | {kind} | {labels} | {meaning} |\n");
        }
    }
    out
}
