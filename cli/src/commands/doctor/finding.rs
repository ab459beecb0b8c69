//! Findings of the doctor, one line each, for people and for programs.

use crate::ui::escape::printable;
use crate::ui::failure::Failure;
use crate::ui::json::{Json, object};
use crate::ui::output::{self, Paint};
use crate::ui::suggestion;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Everything is correct.
    Ok,
    /// It works, but an operator should know.
    Warn,
    /// It does not work.
    Bad,
}

/// One finding. The keys of `--json` are a contract.
#[derive(Debug)]
pub struct Finding {
    /// The check: directory, storage, clock, environment, files or limiter.
    pub check: &'static str,
    pub level: Level,
    /// The subject of the check: a path, a variable or a limiter.
    pub subject: String,
    pub message: String,
    /// The remedy; `null` if nothing needs to be done.
    pub advice: Option<String>,
    /// Whether the doctor repaired it.
    pub fixed: bool,
}

impl Finding {
    fn new(
        check: &'static str,
        level: Level,
        subject: impl Into<String>,
        message: impl Into<String>,
    ) -> Finding {
        let (subject, message) = (subject.into(), message.into());
        Finding { check, level, subject, message, advice: None, fixed: false }
    }

    pub fn ok(check: &'static str, subject: impl Into<String>, message: impl Into<String>) -> Finding {
        Finding::new(check, Level::Ok, subject, message)
    }

    pub fn warn(check: &'static str, subject: impl Into<String>, message: impl Into<String>) -> Finding {
        Finding::new(check, Level::Warn, subject, message)
    }

    pub fn bad(check: &'static str, subject: impl Into<String>, message: impl Into<String>) -> Finding {
        Finding::new(check, Level::Bad, subject, message)
    }

    /// Adds what to do about the finding.
    pub fn advice(mut self, advice: impl Into<String>) -> Finding {
        self.advice = Some(suggestion::with_directory(&advice.into()));
        self
    }

    /// Calls `repair` if wanted. If the repair fails, the finding stays and gets the reason.
    pub fn repaired(mut self, wanted: bool, repair: impl FnOnce() -> Result<String, String>) -> Finding {
        if wanted {
            match repair() {
                Ok(done) => {
                    self.message = format!("{}: {done}", self.message);
                    (self.fixed, self.advice) = (true, None);
                }
                Err(why) => self.message = format!("{}; not repaired: {why}", self.message),
            }
        }
        self
    }

    /// Returns whether the finding is bad and not repaired.
    pub fn is_bad(&self) -> bool {
        self.level == Level::Bad && !self.fixed
    }

    fn is_warning(&self) -> bool {
        self.level == Level::Warn && !self.fixed
    }

    fn to_json(&self) -> Json {
        let level = match self.level {
            Level::Ok => "ok",
            Level::Warn => "warn",
            Level::Bad => "bad",
        };
        object! {
            "check": self.check,
            "level": level,
            "subject": &self.subject,
            "message": &self.message,
            "advice": self.advice.as_ref(),
            "fixed": self.fixed,
        }
    }

    fn text(&self, paint: Paint) -> String {
        let level = match (self.fixed, self.level) {
            (true, _) => paint.level(1.0, "fixed"),
            (_, Level::Ok) => paint.level(1.0, "ok   "),
            (_, Level::Warn) => paint.level(0.1, "warn "),
            (_, Level::Bad) => paint.level(0.0, "bad  "),
        };
        let (subject, message) = (printable(&self.subject), printable(&self.message));
        let advice = self.advice.as_ref().map(|advice| format!("\n       -> {}", printable(advice)));
        format!("{level}  {}: {message}{}", paint.bold(&subject), advice.unwrap_or_default())
    }
}

/// Writes all findings.
pub fn write(findings: &[Finding], json: bool) -> Result<(), Failure> {
    let paint = Paint::for_stdout();
    for finding in findings {
        if json {
            output::json(&finding.to_json())?;
        } else {
            output::line(&finding.text(paint))?;
        }
    }
    if !json {
        output::line(&summary(findings))?;
    }
    Ok(())
}

fn summary(findings: &[Finding]) -> String {
    let count = |what: fn(&Finding) -> bool| findings.iter().filter(|finding| what(finding)).count();
    let (bad, warnings, fixed) =
        (count(Finding::is_bad), count(Finding::is_warning), count(|finding| finding.fixed));
    let mut parts = Vec::new();
    if bad > 0 {
        parts.push(format!("{bad} bad"));
    }
    match warnings {
        0 => {}
        1 => parts.push("1 warning".to_owned()),
        more => parts.push(format!("{more} warnings")),
    }
    if fixed > 0 {
        parts.push(format!("{fixed} fixed"));
    }
    if parts.is_empty() { "No problems found.".to_owned() } else { format!("{}.", parts.join(", ")) }
}
