//! Formats figures as lines for people and for programs.

use super::measure::{Bound, Target};
use crate::ui::output::Paint;
use serde_json::{Value, json};

/// One measured figure.
pub struct Row {
    /// The stable key of the figure.
    pub key: &'static str,
    /// A description of the figure.
    pub what: &'static str,
    pub value: f64,
    pub unit: &'static str,
    /// The baseline or bound that the value is compared with.
    pub compared: Option<Compared>,
}

/// A comparison with another figure, or with a bound alone.
pub struct Compared {
    /// The name of the baseline; empty if the bound applies to the value itself.
    pub with: &'static str,
    pub ratio: f64,
    pub bound: Option<Bound>,
    /// Whether a missed bound counts.
    pub required: bool,
    /// What the ratio should reach in the end. A goal is only shown.
    pub goal: Option<f64>,
}

impl Row {
    pub fn new(key: &'static str, what: &'static str, value: f64, unit: &'static str) -> Row {
        Row { key, what, value, unit, compared: None }
    }

    /// Compares the value with a baseline. The ratio must keep the bound.
    pub fn against(self, with: &'static str, ratio: f64, bound: Bound) -> Row {
        Row {
            compared: Some(Compared { with, ratio, bound: Some(bound), required: true, goal: None }),
            ..self
        }
    }

    /// Compares the value with a baseline, without a bound.
    pub fn beside(self, with: &'static str, ratio: f64) -> Row {
        Row { compared: Some(Compared { with, ratio, bound: None, required: false, goal: None }), ..self }
    }

    /// Requires that the value itself keeps a bound.
    pub fn bounded(self, bound: Bound) -> Row {
        let ratio = self.value;
        self.against("", ratio, bound)
    }

    /// Adds a goal on the same side as the bound.
    pub fn with_goal(mut self, goal: f64) -> Row {
        if let Some(compared) = &mut self.compared {
            compared.goal = Some(goal);
        }
        self
    }

    /// Makes a missed bound count for nothing.
    pub fn not_required(mut self) -> Row {
        if let Some(compared) = &mut self.compared {
            compared.required = false;
        }
        self
    }

    fn target(&self) -> Option<Target> {
        let compared = self.compared.as_ref()?;
        let (measured, required) = (compared.ratio, compared.required);
        compared.bound.map(|bound| Target { name: self.what, measured, bound, required })
    }

    /// Returns whether a required target is missed by more than other work on the machine may explain.
    pub fn is_missed(&self) -> bool {
        self.target().is_some_and(|target| target.required && !target.met_but_for_noise())
    }

    /// Returns whether the goal is met, if there is one.
    fn goal_met(&self) -> Option<bool> {
        let (target, goal) = (self.target()?, self.compared.as_ref()?.goal?);
        let bound = match target.bound {
            Bound::AtMost(_) => Bound::AtMost(goal),
            Bound::AtLeast(_) => Bound::AtLeast(goal),
        };
        Some(Target { bound, ..target }.met())
    }

    /// Formats the title of a part, with the names of the columns of targets.
    pub fn heading(title: &str, paint: Paint) -> String {
        let gap = 61usize.saturating_sub(title.chars().count()).max(1);
        format!("{}{}{}", paint.bold(title), " ".repeat(gap), paint.dim("target  goal"))
    }

    pub fn line(&self, paint: Paint) -> String {
        let mut line = format!("  {:<31} {:>6} {:<3}", self.what, number(self.value), self.unit);
        let Some(compared) = &self.compared else { return line.trim_end().to_owned() };
        let ratio = if compared.with.is_empty() {
            String::new()
        } else {
            format!("{} x {}", number(compared.ratio), compared.with)
        };
        line += &format!(" {ratio:<15}");
        if let Some(target) = self.target() {
            let (sign, bound) = match target.bound {
                Bound::AtMost(most) => ("<=", most),
                Bound::AtLeast(least) => (">=", least),
            };
            let verdict = match (target.met(), target.required) {
                (true, _) if self.goal_met() == Some(true) => paint.level(1.0, "goal"),
                (true, _) => paint.level(1.0, "ok"),
                (false, true) if target.met_but_for_noise() => paint.level(0.1, "nearly"),
                (false, true) => paint.level(0.0, "missed"),
                (false, false) => paint.dim("(busy)"),
            };
            let goal = compared.goal.map_or_else(String::new, shortest);
            line += &format!(" {:<8} {goal:<3} {verdict}", format!("{sign} {}", shortest(bound)));
        }
        line.trim_end().to_owned()
    }

    pub fn to_json(&self) -> Value {
        let mut object =
            json!({"bench": self.key, "what": self.what, "value": self.value, "unit": self.unit});
        if let (Some(compared), Value::Object(fields)) = (&self.compared, &mut object) {
            if !compared.with.is_empty() {
                fields.insert("baseline".into(), compared.with.into());
                fields.insert("ratio".into(), compared.ratio.into());
            }
            if let Some(target) = self.target() {
                let (key, bound) = match target.bound {
                    Bound::AtMost(most) => ("at_most", most),
                    Bound::AtLeast(least) => ("at_least", least),
                };
                fields.insert(key.into(), bound.into());
                fields.insert("required".into(), target.required.into());
                fields.insert("met".into(), target.met().into());
                if let (Some(goal), Some(met)) = (compared.goal, self.goal_met()) {
                    fields.insert("goal".into(), goal.into());
                    fields.insert("goal_met".into(), met.into());
                }
            }
        }
        object
    }
}

/// Formats a number with three or four significant digits.
fn number(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        middle if middle >= 10.0 => format!("{value:.1}"),
        small if (0.99..1.0).contains(&small) => format!("{value:.4}"),
        _ => format!("{value:.2}"),
    }
}

/// Formats a bound as people write it: 2, 0.4, 0.999.
fn shortest(bound: f64) -> String {
    bound.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ratio: f64) -> Row {
        Row::new("granted", "a grant", 50.0, "ns").against("clock", ratio, Bound::AtMost(2.0))
    }

    #[test]
    fn line_has_value_ratio_bound_and_verdict() {
        let words = |ratio| row(ratio).line(Paint::PLAIN).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(1.8), "a grant 50.0 ns 1.80 x clock <= 2 ok");
        assert_eq!(words(2.1), "a grant 50.0 ns 2.10 x clock <= 2 nearly");
        assert_eq!(words(2.3), "a grant 50.0 ns 2.30 x clock <= 2 missed");
    }

    #[test]
    fn miss_counts_only_beyond_noise_and_only_if_required() {
        assert!(!row(2.1).is_missed());
        assert!(row(2.3).is_missed());
        assert!(!row(2.3).not_required().is_missed());
    }

    #[test]
    fn goal_is_shown_beside_the_bound_and_never_counts() {
        let words = |row: Row| row.line(Paint::PLAIN).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(row(1.8).with_goal(1.5)), "a grant 50.0 ns 1.80 x clock <= 2 1.5 ok");
        assert_eq!(words(row(1.4).with_goal(1.5)), "a grant 50.0 ns 1.40 x clock <= 2 1.5 goal");
        assert!(!row(1.8).with_goal(1.5).is_missed());
        let object = row(1.8).with_goal(1.5).to_json();
        assert_eq!((&object["goal"], &object["goal_met"]), (&1.5.into(), &false.into()));
        assert!(row(1.8).to_json().get("goal").is_none());
    }

    #[test]
    fn json_object_has_the_same_figures_as_the_line() {
        let object = row(2.1).to_json();
        assert_eq!(object["bench"], "granted");
        assert_eq!(
            (&object["ratio"], &object["at_most"], &object["met"]),
            (&2.1.into(), &2.0.into(), &false.into())
        );
    }
}
