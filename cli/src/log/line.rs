//! One line of the log: the standard keys of R114 first, then the other fields of the event.

use super::Format;
use crate::ui::escape::{self, is_unsafe};
use crate::ui::time;
use std::fmt::{self, Write};
use std::time::SystemTime;
use tracing::Level;
use tracing::field::{Field, Visit};

/// The keys that every line has, in this order.
pub const KEYS: [&str; 8] =
    ["state", "event", "sleep", "consec429", "err_rate_30s", "rate", "sem", "retry_after"];

/// The text for a missing value.
const NONE: &str = "-";

/// The values of an event, by key.
pub struct Line {
    at: SystemTime,
    level: Level,
    said: Vec<(&'static str, Value)>,
}

enum Value {
    Text(String),
    Whole(u64),
    Ratio(f64),
    Truth(bool),
}

impl Line {
    pub fn new(level: Level) -> Line {
        Line { at: SystemTime::now(), level, said: Vec::new() }
    }

    /// Formats the line, with its line feed.
    pub fn write(&self, format: Format) -> String {
        let mut text = String::with_capacity(256);
        // Writing to a string cannot fail.
        let _ = match format {
            Format::Logfmt => self.write_logfmt(&mut text),
            Format::Json => self.write_json(&mut text),
        };
        text.push('\n');
        text
    }

    fn value(&self, key: &str) -> Option<&Value> {
        self.said.iter().find(|(said, _)| *said == key).map(|(_, value)| value)
    }

    /// Returns the other fields. The limiter's name is first.
    fn more(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        let own = |wanted: bool| {
            let is_own =
                move |(key, _): &&(&str, Value)| !KEYS.contains(key) && (*key == "limiter") == wanted;
            self.said.iter().filter(is_own).map(|(key, value)| (*key, value))
        };
        own(true).chain(own(false))
    }

    fn write_logfmt(&self, out: &mut String) -> fmt::Result {
        write!(out, "ts={} lvl={} comp=ratelimiter", time::format_utc(self.at), self.level)?;
        let standard = KEYS.into_iter().map(|key| (key, self.value(key)));
        for (key, value) in standard.chain(self.more().map(|(key, value)| (key, Some(value)))) {
            write!(out, " {}=", if key == "message" { "msg" } else { key })?;
            match value {
                None => out.push_str(NONE),
                Some(Value::Text(text)) => quote(out, text)?,
                Some(Value::Whole(number)) => write!(out, "{number}")?,
                Some(Value::Ratio(ratio)) => write!(out, "{ratio:.2}")?,
                Some(Value::Truth(truth)) => write!(out, "{truth}")?,
            }
        }
        Ok(())
    }

    fn write_json(&self, out: &mut String) -> fmt::Result {
        write!(
            out,
            "{{\"ts\":\"{}\",\"lvl\":\"{}\",\"comp\":\"ratelimiter\"",
            time::format_utc(self.at),
            self.level
        )?;
        let standard = KEYS.into_iter().map(|key| (key, self.value(key)));
        for (key, value) in standard.chain(self.more().map(|(key, value)| (key, Some(value)))) {
            write!(out, ",\"{}\":", if key == "message" { "msg" } else { key })?;
            match value {
                None => out.push_str("null"),
                Some(Value::Text(text)) if text == NONE => out.push_str("null"),
                // This key is stored as text, because it may have no value. A number is written without quotes.
                Some(Value::Text(text)) if key == "sem" && text.parse::<u32>().is_ok() => out.push_str(text),
                Some(Value::Text(text)) => {
                    out.push_str(&escape::json(serde_json::Value::from(text.as_str()).to_string()))
                }
                Some(Value::Whole(number)) => write!(out, "{number}")?,
                Some(Value::Ratio(ratio)) => out.push_str(&serde_json::Value::from(*ratio).to_string()),
                Some(Value::Truth(truth)) => write!(out, "{truth}")?,
            }
        }
        out.push('}');
        Ok(())
    }
}

/// Writes a single word unchanged. Other text is quoted and escaped, so that it stays on one line.
fn quote(out: &mut String, text: &str) -> fmt::Result {
    let is_plain = |c: char| !c.is_whitespace() && !is_unsafe(c) && !matches!(c, '"' | '=' | '\\');
    if !text.is_empty() && text.chars().all(is_plain) {
        return out.write_str(text);
    }
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(out, "\\{c}")?,
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if is_unsafe(c) => write!(out, "\\u{:04x}", u32::from(c))?,
            c => out.push(c),
        }
    }
    out.write_char('"')
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.said.push((field.name(), Value::Text(format!("{value:?}"))));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.said.push((field.name(), Value::Text(value.to_owned())));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.said.push((field.name(), Value::Whole(value)));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.said.push((field.name(), Value::Ratio(value)));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.said.push((field.name(), Value::Truth(value)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(said: Vec<(&'static str, Value)>) -> Line {
        Line { at: SystemTime::UNIX_EPOCH, level: Level::INFO, said }
    }

    /// Parses a logfmt line, for the tests.
    fn read(line: &str) -> Vec<(String, String)> {
        let (mut pairs, mut rest) = (Vec::new(), line.trim_end_matches('\n'));
        while !rest.is_empty() {
            let (key, after) = rest.split_once('=').expect("a key");
            let (value, after) = match after.strip_prefix('"') {
                None => {
                    after.split_once(' ').map_or((after.to_owned(), ""), |(v, rest)| (v.to_owned(), rest))
                }
                Some(quoted) => {
                    let (mut value, mut chars) = (String::new(), quoted.char_indices());
                    let end = loop {
                        let (at, c) = chars.next().expect("a closing quote");
                        match c {
                            '"' => break at + 1,
                            '\\' => match chars.next().unwrap().1 {
                                'n' => value.push('\n'),
                                'r' => value.push('\r'),
                                't' => value.push('\t'),
                                'u' => {
                                    let code: String = (0..4).map(|_| chars.next().unwrap().1).collect();
                                    let code = u32::from_str_radix(&code, 16).unwrap();
                                    value.push(char::from_u32(code).unwrap());
                                }
                                c => value.push(c),
                            },
                            c => value.push(c),
                        }
                    };
                    (value, quoted[end..].trim_start_matches(' '))
                }
            };
            pairs.push((key.to_owned(), value));
            rest = after;
        }
        pairs
    }

    #[test]
    fn r114_line_matches_the_sample() {
        let said = vec![
            ("limiter", Value::Text("tmdb".to_owned())),
            ("state", Value::Text("throttle".to_owned())),
            ("event", Value::Text("backoff".to_owned())),
            ("sleep", Value::Text("1.8s".to_owned())),
            ("consec429", Value::Whole(3)),
            ("err_rate_30s", Value::Ratio(0.24)),
            ("rate", Value::Text("17rps".to_owned())),
            ("sem", Value::Text("2".to_owned())),
        ];
        let line = line(said);
        assert_eq!(
            line.write(Format::Logfmt),
            "ts=1970-01-01T00:00:00.000Z lvl=INFO comp=ratelimiter state=throttle event=backoff sleep=1.8s \
             consec429=3 err_rate_30s=0.24 rate=17rps sem=2 retry_after=- limiter=tmdb\n"
        );
        assert_eq!(
            line.write(Format::Json),
            "{\"ts\":\"1970-01-01T00:00:00.000Z\",\"lvl\":\"INFO\",\"comp\":\"ratelimiter\",\"state\":\"throttle\",\
             \"event\":\"backoff\",\"sleep\":\"1.8s\",\"consec429\":3,\"err_rate_30s\":0.24,\"rate\":\"17rps\",\
             \"sem\":2,\"retry_after\":null,\"limiter\":\"tmdb\"}\n"
        );
    }

    proptest! {
        /// Whatever fields are set or missing, the result is one line with all keys, and no field is lost.
        #[test]
        fn r114_every_line_has_all_keys_whatever_fields_are_set(
            texts in prop::collection::vec(prop::option::of(any::<String>()), 10),
            number in any::<u64>(),
            ratio in 0.0..=1.0,
        ) {
            let names: Vec<&'static str> = KEYS.into_iter().chain(["limiter", "message"]).collect();
            let mut said: Vec<_> = names.iter().zip(&texts)
                .filter_map(|(key, text)| text.clone().map(|text| (*key, Value::Text(text)))).collect();
            said.push(("number", Value::Whole(number)));
            said.push(("ratio", Value::Ratio(ratio)));
            let line = line(said);
            let text = line.write(Format::Logfmt);
            prop_assert_eq!(text.matches('\n').count(), 1);
            for text in [&text, &line.write(Format::Json)] {
                prop_assert!(!text.trim_end_matches('\n').chars().any(is_unsafe), "{:?}", text);
            }
            let pairs = read(&text);
            let keys: Vec<&str> = pairs.iter().map(|(key, _)| key.as_str()).take(11).collect();
            prop_assert_eq!(&keys[..3], &["ts", "lvl", "comp"]);
            prop_assert_eq!(&keys[3..], &KEYS);
            let json: serde_json::Value = serde_json::from_str(&line.write(Format::Json)).unwrap();
            for (key, text) in names.iter().zip(&texts) {
                let key = if *key == "message" { "msg" } else { key };
                let found = pairs.iter().find(|(found, _)| found == key).map(|(_, value)| value.as_str());
                let wanted = text.as_deref().or(KEYS.contains(&key).then_some(NONE));
                prop_assert_eq!(found, wanted);
                let wanted = text.as_deref().filter(|text| *text != NONE);
                if key != "sem" {
                    prop_assert_eq!(json.get(key).and_then(|value| value.as_str()), wanted);
                }
                prop_assert!(json.get(key).is_some() || !KEYS.contains(&key));
            }
        }
    }
}
