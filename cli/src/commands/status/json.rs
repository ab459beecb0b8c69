//! `status --json`: one object per limiter.

use crate::ui::limiter::json::{ChangeLine, Json};
use crate::ui::limiter::next_change::Change;
use crate::ui::limiter::warnings::{self, Warning};
use serde::Serialize;
use shmlimit::Snapshot;

/// One line of `--json`: the snapshot's document, with what the tool derives from it before the settings. The keys are a
/// contract: docs/status-json.md.
#[derive(Serialize)]
pub struct Line {
    #[serde(flatten)]
    before: Json,
    next_change: Option<ChangeLine>,
    warnings: Vec<Warning>,
    #[serde(flatten)]
    after: Json,
}

/// The first key that follows `next_change` and `warnings`.
const AFTER: &str = "fairness";

impl From<&Snapshot> for Line {
    fn from(snapshot: &Snapshot) -> Line {
        let mut before = snapshot.document();
        let place = before.iter().position(|(name, _)| name == AFTER).unwrap_or(before.len());
        let after = before.split_off(place);
        Line {
            before: Json(before),
            next_change: Change::of(snapshot).map(ChangeLine::from),
            warnings: warnings::of(&snapshot.name, &snapshot.condition),
            after: Json(after),
        }
    }
}
