//! The variables that shmlimit reads.

use super::finding::Finding;
use shmlimit::config::nearest;
use shmlimit::environment::{self, Patch};

const CHECK: &str = "environment";
const PREFIX: &str = "SHMLIMIT_";

/// Those that are no settings of a limiter. A test looks through the source for others.
pub const OTHERS: [&str; 3] = ["SHMLIMIT_DIR", "SHMLIMIT_GROUP", "ANIVAULT_DIR"];

pub fn check() -> Vec<Finding> {
    let mut findings = Vec::new();
    let known: Vec<String> = environment::variables().chain(OTHERS.into_iter().map(str::to_owned)).collect();
    let mut given: Vec<String> =
        std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect();
    given.sort();
    for name in given.iter().filter(|name| !known.contains(name)) {
        let near = nearest(name, known.iter().map(String::as_str));
        // The other prefix belongs to another program too, which has variables of its own.
        if !name.starts_with(PREFIX) && near.is_none() {
            continue;
        }
        let finding = Finding::warn(CHECK, name, "is no variable that shmlimit reads");
        findings.push(match near {
            Some(near) => finding.advice(format!("did you mean {near}?")),
            None => finding.advice(format!("unset {name}; which there are: shmlimit man | man -l -")),
        });
    }
    match Patch::read() {
        Err(error) => {
            findings.push(Finding::bad(CHECK, "variables", error.to_string()).advice(
                "correct or unset it: limiters with a five-state breaker cannot be opened until then",
            ))
        }
        Ok(patch) => {
            let set: Vec<String> = patch.variables().map(|(name, value)| format!("{name}={value}")).collect();
            findings.push(match set.is_empty() {
                true => Finding::ok(CHECK, "variables", "none changes a setting"),
                false => Finding::ok(
                    CHECK,
                    "variables",
                    format!("{} (for limiters with a five-state breaker)", set.join(", ")),
                ),
            });
        }
    }
    findings
}
