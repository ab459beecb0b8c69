//! Writes families as text. The two formats differ in the declaration of counters, in units, and in the last line.

use super::Format;
use super::data_model::{Family, Kind, PREFIX, Sample, Value, cumulative};
use shmlimit_kernel::characters::is_unsafe;
use std::fmt::{self, Write};

/// Writes all families. Families without a sample are left out.
pub fn write(families: &[Family], format: Format) -> String {
    let mut out = String::new();
    for family in families.iter().filter(|family| !family.samples.is_empty()) {
        // Writing to a string cannot fail.
        let _ = write_family(&mut out, family, format);
    }
    if format == Format::OpenMetrics {
        out.push_str("# EOF\n");
    }
    out
}

fn write_family(out: &mut String, family: &Family, format: Format) -> fmt::Result {
    let name = &family.name;
    let suffix = match family.kind {
        Kind::Counter => "_total",
        Kind::Info => "_info",
        Kind::Gauge | Kind::Histogram => "",
    };
    let (declared, kind) = match (format, family.kind) {
        (Format::OpenMetrics, Kind::Counter) => ("", "counter"),
        (Format::OpenMetrics, Kind::Info) => ("", "info"),
        (Format::Prometheus, Kind::Counter) => (suffix, "counter"),
        (Format::Prometheus, Kind::Info) => (suffix, "gauge"),
        (_, Kind::Gauge) => ("", "gauge"),
        (_, Kind::Histogram) => ("", "histogram"),
    };
    writeln!(out, "# HELP {PREFIX}{name}{declared} {}", escape(&family.help))?;
    writeln!(out, "# TYPE {PREFIX}{name}{declared} {kind}")?;
    if let (Format::OpenMetrics, Some(unit)) = (format, family.unit()) {
        writeln!(out, "# UNIT {PREFIX}{name}{declared} {unit}")?;
    }
    for sample in &family.samples {
        match &sample.value {
            Value::Whole(value) => writeln!(out, "{PREFIX}{name}{suffix}{} {value}", Labels(sample, None))?,
            Value::Real(value) => writeln!(out, "{PREFIX}{name}{suffix}{} {value}", Labels(sample, None))?,
            Value::Times { counts, sum } => {
                let mut all = 0;
                for (bound, count) in cumulative(counts) {
                    let bound = bound.map_or("+Inf".to_owned(), seconds);
                    writeln!(out, "{PREFIX}{name}_bucket{} {count}", Labels(sample, Some(&bound)))?;
                    all = count;
                }
                writeln!(out, "{PREFIX}{name}_sum{} {}", Labels(sample, None), sum.as_nanos() as f64 / 1e9)?;
                writeln!(out, "{PREFIX}{name}_count{} {all}", Labels(sample, None))?;
            }
        }
    }
    Ok(())
}

/// Milliseconds as seconds, in the usual form of a float: with a decimal point.
fn seconds(millis: u64) -> String {
    format!("{:?}", millis as f64 / 1e3)
}

/// The labels of a sample, and the bound of a bucket.
struct Labels<'s>(&'s Sample, Option<&'s str>);

impl fmt::Display for Labels<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Labels(sample, bound) = self;
        let own = sample.labels.iter().map(|(key, value)| (*key, value.as_str()));
        let mut before = '{';
        for (key, value) in own.chain(bound.map(|bound| ("le", bound))) {
            write!(f, "{before}{key}=\"{}\"", escape(value))?;
            before = ',';
        }
        if before == ',' { f.write_char('}') } else { Ok(()) }
    }
}

fn escape(text: &str) -> String {
    let escaped = |c: char| match c {
        '\\' => "\\\\".to_owned(),
        '"' => "\\\"".to_owned(),
        '\n' => "\\n".to_owned(),
        c if is_unsafe(c) => format!("\\{}", c.escape_unicode()),
        c => c.to_string(),
    };
    text.chars().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        let labels = vec![("rule", "a\"b\\c\nd\u{202e}".to_owned())];
        let sample = Sample { labels, value: Value::Whole(1) };
        assert_eq!(Labels(&sample, Some("0.5")).to_string(), r#"{rule="a\"b\\c\nd\\u{202e}",le="0.5"}"#);
    }
}
