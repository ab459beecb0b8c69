//! Parses one operation of a script from its line. The run checks it against the limiter.

use super::fields::{self, Fields};
use serde_json::Value;
use shmlimit::Priority;
use shmlimit::config::nearest;
use shmlimit_kernel::breaker::BreakerCommand;
use shmlimit_kernel::outcome::OutcomeClass;
use shmlimit_kernel::pause::{PAUSE_REASON_BYTES, is_showable};

/// The maximum tries of one `acquire`, so that a line cannot run for hours.
pub const MOST_TRIES: u64 = 1_000_000;

const OPS: [&str; 10] =
    ["acquire", "record", "release", "cancel", "force", "pause", "resume", "set", "headers", "advance"];

/// An operation and its time.
#[derive(Debug, PartialEq)]
pub struct Op {
    /// The time; `None` means the present.
    pub at: Option<u64>,
    pub what: What,
}

#[derive(Debug, PartialEq)]
pub enum What {
    Acquire {
        cost: Cost,
        priority: Priority,
        tries: Option<u64>,
    },
    Record(Record),
    Release,
    Cancel,
    Force(BreakerCommand),
    Pause {
        length: Option<u64>,
        reason: String,
    },
    Resume,
    Set {
        key: String,
        value: Value,
    },
    Headers {
        headers: Vec<(String, String)>,
        parser: Option<String>,
    },
    /// How far to advance; `None` if `t` gives the time.
    Advance {
        by: Option<u64>,
    },
}

#[derive(Debug, PartialEq)]
pub struct Record {
    pub class: OutcomeClass,
    pub retry_after: Option<String>,
    pub attempt: Option<u32>,
    pub priority: Priority,
    pub cost: Option<Cost>,
}

/// The cost of a call, as the script gives it.
#[derive(Debug, PartialEq)]
pub enum Cost {
    Requests(u64),
    /// Amounts by unit name.
    Units(Vec<(String, u64)>),
}

/// Why a line is not an operation, and its `op` as far as it could be read.
#[derive(Debug, PartialEq)]
pub struct BadOp {
    pub op: Option<String>,
    pub message: String,
}

impl What {
    pub const fn name(&self) -> &'static str {
        match self {
            What::Acquire { .. } => "acquire",
            What::Record(_) => "record",
            What::Release => "release",
            What::Cancel => "cancel",
            What::Force(_) => "force",
            What::Pause { .. } => "pause",
            What::Resume => "resume",
            What::Set { .. } => "set",
            What::Headers { .. } => "headers",
            What::Advance { .. } => "advance",
        }
    }
}

/// Parses one line.
pub fn read(line: &[u8]) -> Result<Op, BadOp> {
    let mut fields = Fields::of(line).map_err(|message| BadOp { op: None, message })?;
    let op = match fields.text("op") {
        Ok(Some(op)) => op,
        Ok(None) => {
            return Err(BadOp { op: None, message: format!("op: missing; there are: {}", OPS.join(", ")) });
        }
        Err(message) => return Err(BadOp { op: None, message }),
    };
    rest(&op, fields).map_err(|message| BadOp { op: Some(op), message })
}

fn rest(op: &str, mut fields: Fields) -> Result<Op, String> {
    let at = fields.whole("t")?;
    let (what, known): (What, &[&'static str]) = match op {
        "acquire" => (acquire(&mut fields)?, &["t", "cost", "priority", "prio", "n"]),
        "record" => (
            What::Record(record(&mut fields)?),
            &["t", "status", "error", "retry_after", "attempt", "priority", "prio", "cost"],
        ),
        "release" => (What::Release, &["t"]),
        "cancel" => (What::Cancel, &["t"]),
        "force" => (force(&mut fields)?, &["t", "state"]),
        "pause" => (pause(&mut fields)?, &["t", "for_ns", "reason"]),
        "resume" => (What::Resume, &["t"]),
        "set" => (set(&mut fields)?, &["t", "key", "value"]),
        "headers" => (headers(&mut fields)?, &["t", "headers", "parser"]),
        "advance" => {
            let by = fields.whole("ns")?;
            if by.is_some() && at.is_some() {
                return Err("ns: give either ns or t".to_owned());
            }
            (What::Advance { by }, &["ns", "t"])
        }
        _ => {
            return Err(match nearest(op, OPS) {
                Some(near) => format!("op = {op:?}: unknown; did you mean {near:?}?"),
                None => format!("op = {op:?}: unknown; there are: {}", OPS.join(", ")),
            });
        }
    };
    fields.done(known)?;
    Ok(Op { at, what })
}

fn acquire(fields: &mut Fields) -> Result<What, String> {
    let tries = fields.whole("n")?;
    if tries.is_some_and(|n| n == 0 || n > MOST_TRIES) {
        return Err(format!("n: must be from 1 to {MOST_TRIES}"));
    }
    let cost = cost(fields)?.unwrap_or(Cost::Requests(1));
    Ok(What::Acquire { cost, priority: priority(fields)?, tries })
}

fn record(fields: &mut Fields) -> Result<Record, String> {
    let class = match (fields.whole("status")?, fields.text("error")?) {
        (Some(_), Some(_)) => return Err("error: give either status or error".to_owned()),
        (None, None) => return Err("status: missing; give status or error".to_owned()),
        (Some(status), None) => u16::try_from(status)
            .ok()
            .and_then(OutcomeClass::of_status)
            .ok_or_else(|| format!("status = {status}: must be from 100 to 599"))?,
        (None, Some(error)) => match error.as_str() {
            "connect_timeout" | "read_timeout" | "dns" | "connection" => OutcomeClass::Net,
            _ => {
                return Err(format!(
                    "error = {error:?}: must be connect_timeout, read_timeout, dns or connection"
                ));
            }
        },
    };
    let attempt = match fields.whole("attempt")? {
        Some(0) => return Err("attempt: counts from 1".to_owned()),
        // No program makes more attempts, and waits stop growing long before.
        attempt => attempt.map(|attempt| u32::try_from(attempt).unwrap_or(u32::MAX)),
    };
    let retry_after = fields.header("retry_after")?;
    Ok(Record { class, retry_after, attempt, priority: priority(fields)?, cost: cost(fields)? })
}

fn force(fields: &mut Fields) -> Result<What, String> {
    let state = fields.text("state")?.ok_or("state: missing")?;
    let names = || BreakerCommand::ALL.map(BreakerCommand::as_str).join(", ");
    let force = state
        .parse::<BreakerCommand>()
        .map_err(|_| format!("state = {state:?}: no such state; there are: {}", names()))?;
    Ok(What::Force(force))
}

fn pause(fields: &mut Fields) -> Result<What, String> {
    let length = fields.whole("for_ns")?;
    if length == Some(0) {
        return Err("for_ns: must be at least 1; without it the pause lasts until resume".to_owned());
    }
    let reason = fields.text("reason")?.unwrap_or_default();
    if reason.len() > PAUSE_REASON_BYTES || !is_showable(&reason) {
        return Err(format!(
            "reason: must be at most {PAUSE_REASON_BYTES} bytes, without control characters"
        ));
    }
    Ok(What::Pause { length, reason })
}

fn set(fields: &mut Fields) -> Result<What, String> {
    let key = fields.text("key")?.ok_or("key: missing")?;
    let value = fields.take("value").ok_or("value: missing")?;
    Ok(What::Set { key, value })
}

fn headers(fields: &mut Fields) -> Result<What, String> {
    const FORM: &str = "headers: must be {name: value} or [[name, value], ...]";
    let headers = match fields.take("headers") {
        None => return Err("headers: missing".to_owned()),
        Some(Value::Object(map)) => {
            let one = |(name, value)| fields::header("headers", value).map(|value| (name, value));
            map.into_iter().map(one).collect::<Result<_, _>>()?
        }
        Some(Value::Array(list)) => {
            let one = |pair: Value| match pair {
                Value::Array(pair) => match <[Value; 2]>::try_from(pair) {
                    Ok([Value::String(name), value]) => Ok((name, fields::header("headers", value)?)),
                    _ => Err(FORM.to_owned()),
                },
                _ => Err(FORM.to_owned()),
            };
            list.into_iter().map(one).collect::<Result<_, _>>()?
        }
        Some(_) => return Err(FORM.to_owned()),
    };
    Ok(What::Headers { headers, parser: fields.text("parser")? })
}

fn priority(fields: &mut Fields) -> Result<Priority, String> {
    let name = match (fields.text("priority")?, fields.text("prio")?) {
        (Some(_), Some(_)) => return Err("prio: is the same as priority; give one".to_owned()),
        (name, other) => name.or(other),
    };
    let Some(name) = name else { return Ok(Priority::default()) };
    name.parse().map_err(|_| format!("priority = {name:?}: must be background, user or webhook"))
}

fn cost(fields: &mut Fields) -> Result<Option<Cost>, String> {
    Ok(match fields.take("cost") {
        None => None,
        Some(Value::Object(units)) => {
            let one = |(unit, amount): (String, Value)| {
                fields::whole(&format!("cost.{unit}"), &amount).map(|amount| (unit, amount))
            };
            Some(Cost::Units(units.into_iter().map(one).collect::<Result<_, _>>()?))
        }
        Some(Value::Number(number)) => Some(Cost::Requests(fields::whole("cost", &Value::Number(number))?)),
        Some(other) => {
            return Err(format!("cost: must be a number or {{unit: number}}, not {}", fields::kind(&other)));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(line: &str) -> String {
        read(line.as_bytes()).unwrap_err().message
    }

    #[test]
    fn optional_fields_may_be_left_out() {
        let op = read(br#"{"op":"acquire"}"#).unwrap();
        let cost = Cost::Requests(1);
        assert_eq!(
            op,
            Op { at: None, what: What::Acquire { cost, priority: Priority::Background, tries: None } }
        );
        let op = read(br#"{"op":"record","status":503,"t":7,"prio":"user","attempt":null}"#).unwrap();
        let record = Record {
            class: OutcomeClass::Server,
            retry_after: None,
            attempt: None,
            priority: Priority::User,
            cost: None,
        };
        assert_eq!(op, Op { at: Some(7), what: What::Record(record) });
    }

    #[test]
    fn numbers_are_whole_and_exact() {
        let at = |text: &str| read(format!(r#"{{"op":"release","t":{text}}}"#).as_bytes()).map(|op| op.at);
        assert_eq!(at("18446744073709551615"), Ok(Some(u64::MAX)));
        assert_eq!(at("2e9"), Ok(Some(2_000_000_000)));
        for bad in ["18446744073709551616", "-1", "1.5", "1e300", "\"1\"", "true", "[]"] {
            assert!(at(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn headers_may_be_a_map_or_a_list() {
        for text in [r#"{"A":"1","b":2}"#, r#"[["A","1"],["b",2]]"#] {
            let op = read(format!(r#"{{"op":"headers","headers":{text}}}"#).as_bytes()).unwrap();
            let headers = vec![("A".to_owned(), "1".to_owned()), ("b".to_owned(), "2".to_owned())];
            assert_eq!(op.what, What::Headers { headers, parser: None });
        }
        for text in
            ["1", r#"["A","1"]"#, r#"[["A"]]"#, r#"[["A","1","2"]]"#, r#"[[1,"2"]]"#, r#"{"A":["1"]}"#]
        {
            assert!(read(format!(r#"{{"op":"headers","headers":{text}}}"#).as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn mistakes_are_named_in_the_message() {
        assert!(message("{").starts_with("not valid JSON"));
        assert!(message("[1]").contains("a JSON object"));
        assert!(message(r#"{"op":"aquire"}"#).contains("did you mean \"acquire\"?"));
        assert!(message(r#"{"op":"acquire","costs":1}"#).contains("did you mean \"cost\"?"));
        assert!(message(r#"{"op":"record"}"#).contains("status: missing"));
        assert!(message(r#"{"op":"record","status":200,"error":"dns"}"#).contains("either"));
        assert!(message(r#"{"op":"record","status":99}"#).contains("from 100 to 599"));
        assert!(message(r#"{"op":"record","status":600}"#).contains("from 100 to 599"));
        assert!(message(r#"{"op":"record","error":"tls"}"#).contains("connect_timeout"));
        assert!(message(r#"{"op":"record","status":200,"attempt":0}"#).contains("from 1"));
        assert!(message(r#"{"op":"acquire","n":0}"#).contains("from 1 to"));
        assert!(message(r#"{"op":"advance","ns":1,"t":2}"#).contains("either"));
        assert!(message(r#"{"op":"force","state":"awake"}"#).contains("no such state"));
        let bad = read(br#"{"op":"dance"}"#).unwrap_err();
        assert_eq!(bad.op.as_deref(), Some("dance"));
        assert_eq!(read(br#"{"op":3}"#).unwrap_err().op, None);
    }
}
