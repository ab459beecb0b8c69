//! Checks the environment variables that shmlimit reads.

use super::finding::Finding;
use crate::options::VARIABLES;
use crate::platform::texts;
use shmlimit::config::nearest;
use shmlimit::environment::{self, Patch};

const CHECK: &str = "environment";
const PREFIX: &str = "SHMLIMIT_";
const OLDER_PREFIX: &str = "ANIVAULT_";

pub fn check() -> Vec<Finding> {
    let mut findings = Vec::new();
    let known: Vec<String> =
        environment::variables().chain(VARIABLES.map(|(name, _)| name.to_owned())).collect();
    let mut given: Vec<String> =
        std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect();
    given.sort();
    for name in given.iter().filter(|name| !known.contains(name)) {
        let Some(prefix) = [PREFIX, OLDER_PREFIX].into_iter().find(|prefix| name.starts_with(prefix)) else {
            continue;
        };
        // The common prefix is removed, because it would make any two names similar.
        let of_prefix = known.iter().filter_map(|known| known.strip_prefix(prefix));
        let near = nearest(&name[prefix.len()..], of_prefix).map(|near| format!("{prefix}{near}"));
        // Another program uses the older prefix too and has variables of its own.
        if prefix == OLDER_PREFIX && near.is_none() {
            continue;
        }
        let finding = Finding::warn(CHECK, name, "is not a variable that shmlimit reads");
        findings.push(match near {
            Some(near) => finding.advice(format!("did you mean {near}?")),
            None => finding.advice(texts::unset(name)),
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
                true => Finding::ok(CHECK, "variables", "no variable changes a setting"),
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
