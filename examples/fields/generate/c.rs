//! Generates the C structs and the code that fills them, as Rust source for cbindgen and the compiler.
//!
//! A part of a snapshot becomes fields of `shmlimit_snapshot`. A list becomes a list of pointers to structs. The
//! order of the fields is the binary interface: fields keep the order of the existing file, and new fields come at
//! the end.

use super::wrapped;
use shmlimit::schema::{Field, Kind, STRUCTS, Struct, snake_case};
use std::collections::BTreeMap;
use std::io;

pub const STRUCTS_FILE: &str = "ffi/src/snapshot/structs.rs";
pub const FILL_FILE: &str = "ffi/src/snapshot/fill.rs";

/// One field of a C struct.
struct Member {
    name: String,
    rust_type: String,
    doc: String,
    value: String,
}

/// One C struct.
#[derive(Default)]
struct Layout {
    members: Vec<Member>,
    /// Statements that run before the struct is filled.
    before: Vec<String>,
}

/// The content of `structs.rs`, with the fields in their existing order.
pub fn structs(present: &str) -> io::Result<String> {
    let mut out = String::from(
        "//! The structs of a snapshot, as C sees them.\n//!\n//! Generated from src/limiter/fields.rs by scripts/languages/fields. \
         The order of the fields is the binary interface:\n//! new fields come at the end.\n\n\
         use crate::request::shmlimit_cost;\nuse std::ffi::c_char;\n",
    );
    for of in emitted() {
        out += "\n";
        let doc = match is_top(of) {
            true => format!(
                "{} Made by shmlimit_snapshot_take(), and freed with everything in it by shmlimit_snapshot_free(). Its \
                 lists are lists of pointers, so that all of these structs can grow at their ends.",
                of.doc.trim()
            ),
            false => of.doc.trim().to_owned(),
        };
        out += &wrapped(&doc, "", "///", 116);
        out += &format!("#[repr(C)]\npub struct {} {{\n", struct_name(of));
        let members = in_order(layout(of).members, &recorded(present, &struct_name(of)), &struct_name(of))?;
        for member in &members {
            out += &wrapped(&member.doc, "    ", "///", 116);
            out += &format!("    pub {}: {},\n", member.name, member.rust_type);
        }
        out += "}\n";
    }
    out += "\n/// How often calls ended with one code.\n#[repr(C)]\npub struct shmlimit_code_count {\n    \
            /// The HTTP status, or the name of an error: \"200\", \"connect_timeout\".\n    pub code: *const c_char,\n    \
            /// How often.\n    pub count: u64,\n}\n";
    Ok(out)
}

/// The content of `fill.rs`: for each struct, a function that makes it from its Rust value.
pub fn fill(present: &str) -> io::Result<String> {
    let mut out = String::from(
        "//! Fills the structs of a snapshot.\n//!\n//! Generated from src/limiter/fields.rs by scripts/languages/fields.\n\n\
         use super::structs::*;\nuse super::{Owned, priority};\nuse crate::grant::{nanos, nanos_or_never};\n\
         use crate::request::shmlimit_cost;\nuse std::ptr::null;\n",
    );
    for of in emitted() {
        let (name, c) = (function(of), struct_name(of));
        let Layout { members, before } = layout(of);
        let members = in_order(members, &recorded(present, &c), &c)?;
        out += &format!("\npub(super) fn {name}(one: &shmlimit::{}, owned: &mut Owned) -> {c} {{\n", of.name);
        for statement in before {
            out += &format!("    {statement}\n");
        }
        out += &format!("    {c} {{\n");
        for member in members {
            out += &match member.value == member.name {
                true => format!("        {},\n", member.name),
                false => format!("        {}: {},\n", member.name, member.value),
            };
        }
        out += "    }\n}\n";
    }
    Ok(out)
}

/// The structs that C has: the elements of lists first, then the snapshot.
fn emitted() -> Vec<&'static Struct> {
    let is_element = |of: &&Struct| {
        STRUCTS.iter().flat_map(|other| other.fields).any(
            |field| matches!(field.kind, Kind::List(element) if element.name == of.name && field.c.is_some()),
        )
    };
    STRUCTS.iter().filter(is_element).chain(STRUCTS.iter().filter(|of| is_top(of))).collect()
}

fn is_top(of: &Struct) -> bool {
    of.name == "Snapshot"
}

fn struct_name(of: &Struct) -> String {
    format!("shmlimit_{}", snake_case(of.name))
}

fn function(of: &Struct) -> String {
    if is_top(of) { "snapshot".to_owned() } else { of.word() }
}

/// The fields of a struct in the existing file, in order.
fn recorded(file: &str, name: &str) -> Vec<String> {
    let body = file.split_once(&format!("pub struct {name} {{\n")).map_or("", |(_, rest)| rest);
    let body = body.split_once("\n}\n").map_or(body, |(body, _)| body);
    let name = |line: &str| Some(line.strip_prefix("    pub ")?.split_once(": ")?.0.to_owned());
    body.lines().filter_map(name).collect()
}

/// The members in the recorded order, with the new ones at the end. There is no padding, so a field exists if and
/// only if the struct of the library is long enough for it.
fn in_order(members: Vec<Member>, order: &[String], of: &str) -> io::Result<Vec<Member>> {
    let names = members.iter().map(|member| member.name.clone());
    let mut new: Vec<String> = names.filter(|name| !order.contains(name)).collect();
    let mut left: BTreeMap<String, Member> =
        members.into_iter().map(|member| (member.name.clone(), member)).collect();
    // Fields of 8 bytes come first; two fields of 4 bytes make 8 again.
    new.sort_by_key(|name| is_short(&left[name]));
    let mut ordered = Vec::new();
    for name in order.iter().chain(&new) {
        if name.starts_with("reserved") {
            ordered.push(reserved(name));
        } else if let Some(member) = left.remove(name) {
            ordered.push(member);
        } else {
            return Err(io::Error::other(format!("{of}.{name} is in the C interface and must stay")));
        }
    }
    if ordered.iter().filter(|member| is_short(member)).count() % 2 == 1 {
        let before = ordered.iter().filter(|member| member.name.starts_with("reserved")).count();
        let name = if before == 0 { "reserved".to_owned() } else { format!("reserved{}", before + 1) };
        ordered.push(reserved(&name));
    }
    Ok(ordered)
}

fn is_short(member: &Member) -> bool {
    member.rust_type == "u32"
}

fn reserved(name: &str) -> Member {
    Member {
        name: name.to_owned(),
        rust_type: "u32".to_owned(),
        doc: "Always 0.".to_owned(),
        value: "0".to_owned(),
    }
}

fn layout(of: &Struct) -> Layout {
    let mut layout = Layout::default();
    if is_top(of) {
        layout.members.push(Member {
            name: "size".to_owned(),
            rust_type: "usize".to_owned(),
            doc: "sizeof(shmlimit_snapshot) of the library.".to_owned(),
            value: "size_of::<shmlimit_snapshot>()".to_owned(),
        });
    }
    add(&mut layout, of, &Base { value: "one", optional: None });
    layout
}

/// The source of the fields of a struct.
struct Base<'b> {
    /// The variable that holds the struct, or an option of it.
    value: &'b str,
    /// For an optional part: the prefix of its fields, and the field that says whether the part exists.
    optional: Option<(&'b str, &'b str)>,
}

impl Base<'_> {
    fn member(&self, name: &str) -> String {
        match self.optional {
            // `paused_for_ns` already contains `pause`.
            Some((prefix, _)) if !name.starts_with(prefix) => format!("{prefix}_{name}"),
            _ => name.to_owned(),
        }
    }

    /// An iterator over the elements of a list of the struct.
    fn iterator(&self, field: &Field) -> String {
        match self.optional {
            None => format!("{}.{}.iter()", self.value, field.name),
            Some(_) => format!("{}.iter().flat_map(|part| &part.{})", self.value, field.name),
        }
    }
}

fn add(layout: &mut Layout, of: &Struct, base: &Base<'_>) {
    for field in of.fields {
        let Some(c) = field.c else { continue };
        let value = base.value;
        match field.kind {
            Kind::Part(part) if field.optional => {
                layout.before.push(format!("let {c} = {value}.{}.as_ref();", field.name));
                layout.members.push(Member {
                    name: field.name.to_owned(),
                    rust_type: "u32".to_owned(),
                    doc: format!("1 = there is a {c}: its fields begin with `{c}`. {}", field.meaning("0")),
                    value: format!("u32::from({c}.is_some())"),
                });
                add(layout, part, &Base { value: c, optional: Some((c, field.name)) });
            }
            Kind::Part(part) => {
                layout.before.push(format!("let {c} = &{value}.{};", field.name));
                add(layout, part, &Base { value: c, optional: None });
            }
            Kind::List(element) => {
                let made = format!("{}(element, owned)", function(element));
                list(layout, base, field, c, &format!("*const {}", struct_name(element)), &made, "pointers");
            }
            Kind::Costs => {
                let made = "shmlimit_cost { unit: owned.text(&element.0), amount: element.1 }";
                list(layout, base, field, c, "shmlimit_cost", made, "list");
            }
            Kind::Codes => {
                let made =
                    "shmlimit_code_count { code: owned.text(&element.0.to_string()), count: element.1 }";
                list(layout, base, field, c, "*const shmlimit_code_count", made, "pointers");
            }
            _ => {
                let (rust_type, none) = scalar(field.kind);
                let mut doc = field.meaning(none);
                match field.kind {
                    Kind::Bool => doc = format!("1 = yes, 0 = no: {}", lower_first(&doc)),
                    Kind::Priority => doc = "The call's priority: SHMLIMIT_PRIORITY_….".to_owned(),
                    _ => {}
                }
                let mut filled = converted(field, &format!("{value}.{}", field.name));
                if let Some((prefix, flag)) = base.optional {
                    let zero = if rust_type == "*const c_char" { "NULL" } else { "0" };
                    doc = format!("Of the {prefix}: {} {zero} while `{flag}` is 0.", lower_first(&doc));
                    let empty = if zero == "NULL" { "null()" } else { "0" };
                    filled = format!("{value}.map_or({empty}, |{value}| {filled})");
                }
                layout.members.push(Member {
                    name: base.member(c),
                    rust_type: rust_type.to_owned(),
                    doc,
                    value: filled,
                });
            }
        }
    }
}

fn list(layout: &mut Layout, base: &Base<'_>, field: &Field, c: &str, item: &str, made: &str, keep: &str) {
    let name = base.member(c);
    let count = format!("{}_count", name.strip_suffix('s').unwrap_or(&name));
    layout.before.push(format!("let {name} = {}.map(|element| {made}).collect();", base.iterator(field)));
    layout.before.push(format!("let ({name}, {count}) = owned.{keep}({name});"));
    layout.members.push(Member {
        name: name.clone(),
        rust_type: format!("*const {item}"),
        doc: field.meaning("NULL"),
        value: name.clone(),
    });
    layout.members.push(Member {
        name: count.clone(),
        rust_type: "usize".to_owned(),
        doc: format!("How many elements `{name}` has."),
        value: count,
    });
}

/// The type of a value in C, and the value that represents its absence.
fn scalar(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Bool | Kind::U32 | Kind::Priority => ("u32", "0"),
        Kind::U64 | Kind::Id => ("u64", "0"),
        Kind::Float => ("f64", "0"),
        Kind::Time => ("u64", "SHMLIMIT_NEVER"),
        Kind::Histogram => ("[u64; 16]", "0"),
        _ => ("*const c_char", "NULL"),
    }
}

fn converted(field: &Field, value: &str) -> String {
    match (field.kind, field.optional) {
        (Kind::Bool, _) => format!("u32::from({value})"),
        (Kind::Time, false) => format!("nanos({value})"),
        (Kind::Time, true) => format!("nanos_or_never({value})"),
        (Kind::Text, false) => format!("owned.text(&{value})"),
        (Kind::Text, true) => format!("{value}.as_ref().map_or(null(), |text| owned.text(text))"),
        (Kind::Name, false) => format!("owned.text({value}.as_str())"),
        (Kind::Name, true) => format!("{value}.map_or(null(), |name| owned.text(name.as_str()))"),
        (Kind::Path, _) => format!("owned.text(&{value}.to_string_lossy())"),
        (Kind::Priority, _) => format!("priority({value})"),
        (Kind::Id, _) => format!("{value}.0"),
        (_, true) => format!("{value}.unwrap_or(0)"),
        (_, false) => value.to_owned(),
    }
}

fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_lowercase().chain(letters).collect())
}
