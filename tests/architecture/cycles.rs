//! Import cycles: inside a folder, modules use each other in one direction only.
//!
//! A path is followed through the re-exports of the modules it names, so that `use crate::Policy` counts as a use of
//! `policy`. A use of the folder's own file (`mod.rs`, `lib.rs`) is not an edge: only siblings are compared.

use super::rules::Source;
use std::collections::{BTreeMap, BTreeSet};

type Path = Vec<String>;

/// The modules of one crate.
pub struct Crate<'s> {
    modules: BTreeMap<Path, &'s Source>,
    /// Maps (module, name) of a `pub use` in that module to the path that the name stands for.
    exports: BTreeMap<(Path, String), Path>,
}

impl<'s> Crate<'s> {
    /// The crate whose `lib.rs` or `main.rs` is in `folder`.
    pub fn new(folder: &str, sources: &'s [Source]) -> Crate<'s> {
        let mut modules = BTreeMap::new();
        for source in sources {
            let Some(path) = source.name.strip_prefix(folder).and_then(|rest| rest.strip_suffix(".rs"))
            else {
                continue;
            };
            let mut path: Path = path.split('/').map(str::to_owned).collect();
            if ["mod", "lib", "main"].contains(&path[path.len() - 1].as_str()) {
                path.pop();
            }
            if !path.iter().any(|part| part == "tests") {
                modules.insert(path, source);
            }
        }
        let mut this = Crate { modules, exports: BTreeMap::new() };
        for (module, source) in &this.modules {
            for (names, alias) in uses(source) {
                let Some(target) = absolute(module, 0, &names, true) else { continue };
                this.exports.insert((module.clone(), alias), target);
            }
        }
        this
    }

    /// Every group of sibling modules that form a cycle, as text.
    pub fn cycles(&self) -> Vec<String> {
        let mut graphs: BTreeMap<Path, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
        for (module, source) in &self.modules {
            for path in paths(source) {
                let Some(target) = absolute(module, path.depth, &path.names, false) else { continue };
                let target = self.owner(&target);
                let common = module.iter().zip(&target).take_while(|(a, b)| a == b).count();
                if common < module.len() && common < target.len() {
                    let graph = graphs.entry(module[..common].to_vec()).or_default();
                    graph.entry(module[common].clone()).or_default().insert(target[common].clone());
                }
            }
        }
        let cycles = graphs.iter().flat_map(|(folder, graph)| {
            circles(graph).into_iter().map(|circle| {
                let folder = if folder.is_empty() { "the crate".to_owned() } else { folder.join("/") };
                let edges = circle.iter().map(|from| {
                    let to: Vec<&str> =
                        graph[from].iter().filter(|to| circle.contains(*to)).map(String::as_str).collect();
                    format!("{from} -> {}", to.join(", "))
                });
                format!("{folder}: {}", edges.collect::<Vec<_>>().join("; "))
            })
        });
        cycles.collect()
    }

    /// The module that defines the item at a path.
    fn owner(&self, path: &[String]) -> Path {
        let mut path = path.to_vec();
        // A re-export leads to another path. Eight of them in a row are more than any real code has.
        for _ in 0..8 {
            let known = (0..=path.len()).rev().find(|n| self.modules.contains_key(&path[..*n])).unwrap_or(0);
            let Some(name) = path.get(known) else { return path };
            match self.exports.get(&(path[..known].to_vec(), name.clone())) {
                Some(target) => {
                    let rest = path.split_off(known + 1);
                    path = target.iter().cloned().chain(rest).collect();
                }
                None => return path[..known].to_vec(),
            }
        }
        path
    }
}

struct Mention {
    /// The number of inline modules around the mention.
    depth: usize,
    names: Path,
}

/// The path in the crate that `names` refers to, written in `module` within `depth` inline modules. `None` for
/// another crate.
fn absolute(module: &[String], depth: usize, names: &[String], bare: bool) -> Option<Path> {
    let first = names.first()?.as_str();
    let supers = names.iter().take_while(|name| *name == "super").count();
    let (base, rest) = match first {
        "crate" => (Vec::new(), &names[1..]),
        "self" => (module.to_vec(), &names[1..]),
        "super" if supers <= depth => (module.to_vec(), &names[supers..]),
        "super" => (module[..module.len().checked_sub(supers - depth)?].to_vec(), &names[supers..]),
        _ if bare => (module.to_vec(), names),
        _ => return None,
    };
    Some(base.into_iter().chain(rest.iter().cloned()).collect())
}

/// Every path of a file that begins with `crate`, `super` or `self`, outside its tests.
fn paths(source: &Source) -> Vec<Mention> {
    let mut found = Vec::new();
    let (mut inline, mut depth) = (Vec::new(), 0_usize);
    let mut i = 0;
    while i < source.tokens.len() {
        match source.tokens[i].text.as_str() {
            "{" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                inline.retain(|end| *end <= depth);
            }
            "mod" if source.is(i + 1, "tests") && source.is(i + 2, "{") => {
                i = closing(source, i + 2);
                continue;
            }
            "mod" if source.is(i + 2, "{") => inline.push(depth + 1),
            "crate" | "super" | "self" if !(i > 0 && source.is(i - 1, "::")) && source.is(i + 1, "::") => {
                let mut all = Vec::new();
                tree(source, &mut i.clone(), &[], &mut all);
                found.extend(all.into_iter().map(|(names, _)| Mention { depth: inline.len(), names }));
            }
            _ => {}
        }
        i += 1;
    }
    found
}

/// Every name that the `use` items of the file bring in, with the path it stands for.
fn uses(source: &Source) -> Vec<(Path, String)> {
    let mut found = Vec::new();
    let mut depth = 0_usize;
    for i in 0..source.tokens.len() {
        match source.tokens[i].text.as_str() {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            "use" if depth == 0 && i > 0 && (source.is(i - 1, "pub") || source.is(i - 1, ")")) => {
                tree(source, &mut (i + 1), &[], &mut found);
            }
            _ => {}
        }
    }
    found
}

/// Expands a path, or a group of paths, into all the paths it stands for, each with the name it has afterwards.
fn tree(source: &Source, i: &mut usize, prefix: &[String], found: &mut Vec<(Path, String)>) {
    let mut path = prefix.to_vec();
    loop {
        let Some(token) = source.tokens.get(*i) else { return };
        if token.text == "{" {
            *i += 1;
            while !source.is(*i, "}") && *i < source.tokens.len() {
                tree(source, i, &path, found);
                if source.is(*i, ",") {
                    *i += 1;
                }
            }
            *i += 1;
            return;
        }
        if token.text != "self" || path.is_empty() {
            path.push(token.text.clone());
        }
        *i += 1;
        if !source.is(*i, "::") {
            break;
        }
        *i += 1;
    }
    let mut alias = path[path.len() - 1].clone();
    if source.is(*i, "as") {
        alias = source.tokens.get(*i + 1).map(|token| token.text.clone()).unwrap_or_default();
        *i += 2;
    }
    found.push((path, alias));
}

/// The position of the brace that closes the one at `i`.
fn closing(source: &Source, mut i: usize) -> usize {
    let mut depth = 0_usize;
    while i < source.tokens.len() {
        match source.tokens[i].text.as_str() {
            "{" => depth += 1,
            "}" if depth == 1 => return i + 1,
            "}" => depth -= 1,
            _ => {}
        }
        i += 1;
    }
    i
}

/// The groups of nodes that reach each other.
fn circles(graph: &BTreeMap<String, BTreeSet<String>>) -> Vec<BTreeSet<String>> {
    let reach = |from: &String| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(node) = open.pop() {
            for next in graph.get(node).into_iter().flatten() {
                if seen.insert(next.clone()) {
                    open.push(next);
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&String, BTreeSet<String>> = graph.keys().map(|node| (node, reach(node))).collect();
    let mut found = Vec::new();
    for (node, its) in &reached {
        let circle: BTreeSet<String> = its
            .iter()
            .filter(|other| reached.get(other).is_some_and(|back| back.contains(*node)))
            .cloned()
            .collect();
        if circle.len() > 1 && !found.contains(&circle) {
            found.push(circle);
        }
    }
    found
}
