//! Draws the demo as a picture that is redrawn in place, or prints it as lines.

use super::clients::{CLIENTS, Half, Kind};
use super::results::{Progress, Results, WHAT_NOW};
use super::server::Score;
use crate::ui::output::{self, Paint};
use ratatui::crossterm::terminal::size;
use std::io;

/// The maximum width of a picture. Wider terminals leave the rest empty.
const WIDEST: usize = 80;
/// The minimum width: below it there is no room for two columns of figures.
const NARROWEST: usize = 44;
const NAME: usize = 12;
/// The width of the figures: ok and 429.
const FIGURES: usize = 11;
const GAP: usize = 2;
/// How many seconds a column has room for.
const SECONDS: usize = 5;
const OK: &str = "█";
const THROTTLED: &str = "▒";

/// A picture on the terminal.
pub struct Picture {
    paint: Paint,
    /// The width of each line drawn last, which is needed to move the cursor back to the first line.
    drawn: Vec<usize>,
}

impl Picture {
    /// Begins a picture, or returns `None` if the terminal is too small.
    pub fn begin() -> Option<Picture> {
        let (columns, rows) = size().ok()?;
        let fits = usize::from(columns) >= NARROWEST && usize::from(rows) > HEIGHT;
        // The cursor stays visible and below the picture, so nothing needs to be restored if this process is stopped
        // or killed.
        fits.then(|| Picture { paint: Paint::for_stdout(), drawn: Vec::new() })
    }

    pub fn draw(&mut self, results: &Results) -> io::Result<()> {
        let columns = size().map_or(WIDEST, |(columns, _)| usize::from(columns).max(1));
        let lines = frame(results, columns.min(WIDEST), self.paint);
        // A terminal that became narrower has wrapped the lines.
        let rows: usize = self.drawn.iter().map(|width| width.div_ceil(columns).max(1)).sum();
        let mut text = if rows > 0 { format!("\x1b[{rows}A\r\x1b[J") } else { String::new() };
        for line in &lines {
            text += line;
            text += "\x1b[K\r\n";
        }
        self.drawn = lines.iter().map(|line| width(line)).collect();
        output::raw(&text)
    }
}

/// The height of a picture, plus one line for the cursor.
const HEIGHT: usize = 20;

/// Returns how many columns a text takes. Colour sequences take none.
fn width(text: &str) -> usize {
    let (mut columns, mut inside) = (0, false);
    for c in text.chars() {
        match (inside, c) {
            (false, '\x1b') => inside = true,
            (true, 'm') => inside = false,
            (true, _) => {}
            (false, _) => columns += 1,
        }
    }
    columns
}

/// Returns the lines of the whole picture.
fn frame(results: &Results, columns: usize, paint: Paint) -> Vec<String> {
    let fit = |text: &str| text.chars().take(columns - 1).collect::<String>();
    let column = (columns - 1 - NAME - 2 * GAP) / 2;
    let two = |name: &str, left: String, right: String| {
        let fill = column.saturating_sub(width(&left));
        format!("{name:NAME$}{:GAP$}{left}{:fill$}{:GAP$}{right}", "", "", "")
    };
    let limit = results.limit;
    let (rate, burst) = (limit.rate, limit.burst);
    let mut lines = vec![
        paint.bold(&fit("shmlimit demo: one API, four programs, one limit for all of them")),
        fit(&format!(
            "The API at {} allows {rate} calls a second, {burst} at once; else 429.",
            results.server
        )),
        fit(&format!("Each makes up to {rate} a second; after a 429 it {}.", results.retry_style.to_text())),
        paint.dim(&fit(&kinds_text(results))),
        String::new(),
    ];
    let titles = if column >= 28 {
        ["1 each limits itself", "2 all share one shmlimit"]
    } else {
        ["1 without", "2 shmlimit"]
    };
    lines.push(two("", paint.bold(titles[0]), paint.bold(titles[1])));
    let states = results.progress.map(|progress| paint.dim(&state(progress, results)));
    let [left, right] = states;
    lines.push(two("", left, right));
    let bar = column.saturating_sub(FIGURES);
    let heads = || paint.dim(&format!("{:bar$}{:>5}{:>6}", "", "ok", "429"));
    lines.push(two("", heads(), heads()));
    let most = results.counts.iter().flat_map(|counts| counts.programs).map(Score::calls).max();
    // The scale has room for each client's share with shmlimit, so that it seldom changes.
    let share = u64::from(limit.rate) * results.length.as_secs().max(1) / CLIENTS as u64;
    let scale = most.unwrap_or(0).max(share + 2);
    for (client, name) in results.names().iter().enumerate() {
        let cell = |half: Half| {
            let score = results.counts[half as usize].programs[client];
            format!("{}{}", bars(score, scale, bar, paint), figures(score, paint))
        };
        lines.push(two(name, cell(Half::Without), cell(Half::With)));
    }
    let sum = |half: Half| {
        let score = results.total(half);
        format!("{:bar$}{}", "", figures(score, paint))
    };
    lines.push(two("together", sum(Half::Without), sum(Half::With)));
    let each = |half: Half, of: fn(&Score) -> u64| {
        let seconds = &results.counts[half as usize].seconds;
        let last = &seconds[seconds.len().saturating_sub(SECONDS.min(column / 4))..];
        last.iter().map(|score| format!("{:>4}", of(score))).collect::<String>()
    };
    lines.push(two("ok a second", each(Half::Without, |s| s.ok), each(Half::With, |s| s.ok)));
    lines.push(two("429 a second", each(Half::Without, |s| s.throttled), each(Half::With, |s| s.throttled)));
    lines.push(String::new());
    lines.push(paint.bold(&fit("3 the API tells one of them to wait a second: do the others stop too?")));
    lines.extend(folded(&probe_text(results), columns - 1));
    lines
}

/// Describes which clients are scripts, and which are this tool.
fn kinds_text(results: &Results) -> String {
    let scripts: Vec<_> =
        results.kinds.iter().filter(|kind| **kind != Kind::Rust).map(|kind| kind.name()).collect();
    match scripts.len() {
        0 => "All four are this tool, run as programs of their own.".to_owned(),
        _ => format!("{}: scripts; rust: this tool as a program.", scripts.join(", ")),
    }
}

fn state(progress: Progress, results: &Results) -> String {
    let length = results.length.as_secs_f64();
    match progress {
        Progress::ToCome => "to come".to_owned(),
        Progress::Starting => "the programs start …".to_owned(),
        Progress::Running(spent) => format!("{:.1} s of {length:.1}", spent.as_secs_f64()),
        Progress::Done => format!("{length:.1} s, over"),
    }
}

/// Wraps a text into exactly two lines, so that the lines below do not move.
fn folded(text: &str, columns: usize) -> [String; 2] {
    let mut lines = [String::from(" "), String::from(" ")];
    let mut line = 0;
    for word in text.split_whitespace() {
        if line == 0 && lines[0].chars().count() + 1 + word.chars().count() > columns {
            line = 1;
        }
        lines[line] += " ";
        lines[line] += word;
    }
    lines.map(|line| line.trim_end().chars().take(columns).collect())
}

fn probe_text(results: &Results) -> String {
    if !results.probing {
        String::new()
    } else if results.progress[1] != Progress::Done {
        "The API answers one call with 429: Retry-After 1 …".to_owned()
    } else {
        results.probe_text()
    }
}

fn figures(score: Score, paint: Paint) -> String {
    let throttled = format!("{:>6}", score.throttled);
    let throttled = if score.throttled > 0 { paint.level(0.0, &throttled) } else { throttled };
    format!("{:>5}{throttled}", score.ok)
}

/// Draws green bars for calls that succeeded and red ones for refused calls. They also differ without colours.
fn bars(score: Score, scale: u64, columns: usize, paint: Paint) -> String {
    let room = columns as u64;
    let length = |count: u64| usize::try_from(count * room / scale.max(1)).unwrap_or(columns);
    // A small count must be visible too.
    let ok = length(score.ok).max(usize::from(score.ok > 0));
    let throttled = length(score.calls()).saturating_sub(ok).max(usize::from(score.throttled > 0));
    let throttled = throttled.min(columns - ok);
    let fill = columns - ok - throttled;
    let (ok, throttled) = (OK.repeat(ok), THROTTLED.repeat(throttled));
    format!("{}{}{:fill$}", paint.level(1.0, &ok), paint.level(0.0, &throttled), "")
}

/// Returns the text below the picture: the result, and what to do next.
pub fn conclusion(results: &Results, paint: Paint) -> String {
    let [without, with] = results.verdict();
    let [first, second] = WHAT_NOW.map(|(command, what)| format!("{command:<33}{}", paint.dim(what)));
    format!("{without}\n{}\nNow:  {first}\n      {second}", paint.bold(&with))
}

/// Returns the introduction for output as lines.
pub fn introduction(results: &Results) -> String {
    let limit = results.limit;
    let mut text = format!(
        "shmlimit demo: one API, four programs, one limit for all of them\n\
         the API at {} allows {} calls a second, {} at once; else it says 429, Retry-After: 1\n\
         each program makes up to {} calls a second; after a 429 it {}",
        results.server,
        limit.rate,
        limit.burst,
        limit.rate,
        results.retry_style.to_text()
    );
    for (name, kind) in results.names().iter().zip(results.kinds) {
        text += &format!("\n  {name:NAME$} {}", kind.description());
    }
    text
}

/// Returns one second of a half as a line.
pub fn second(half: Half, second: usize, score: Score) -> String {
    let (ok, throttled) = (score.ok, score.throttled);
    format!("{:<7}  second {:>2}  {ok:>4} ok  {throttled:>4} x 429", half.as_str(), second + 1)
}

/// Returns both halves side by side as lines.
pub fn table(results: &Results) -> String {
    let mut text = format!("{:NAME$}  {:>22}   {:>22}\n", "", "without shmlimit", "with shmlimit");
    text += &format!("{:NAME$}  {h}   {h}", "", h = format_args!("{:>8}{:>7}{:>7}", "calls", "ok", "429"));
    let row = |name: &str, scores: [Score; 2]| {
        let [left, right] =
            scores.map(|score| format!("{:>8}{:>7}{:>7}", score.calls(), score.ok, score.throttled));
        format!("\n{name:NAME$}  {left}   {right}")
    };
    for (client, name) in results.names().iter().enumerate() {
        text += &row(name, [0, 1].map(|half| results.counts[half].programs[client]));
    }
    text + &row("together", [Half::Without, Half::With].map(|half| results.total(half)))
}

#[cfg(test)]
mod tests {
    use super::super::clients::RetryStyle;
    use super::super::server::Limit;
    use super::*;
    use std::time::Duration;

    fn sample_results() -> Results {
        let kinds = [Kind::Shell, Kind::Python, Kind::Rust, Kind::Rust];
        let server = "127.0.0.1:65535".parse().unwrap();
        let mut results =
            Results::new(Limit::of(20), server, kinds, RetryStyle::Naive, Duration::from_secs(4));
        results.progress = [Progress::Done, Progress::Running(Duration::from_millis(2100))];
        results.counts[0].programs = [Score { ok: 9, throttled: 50 }; CLIENTS];
        results.counts[0].seconds = vec![Score { ok: 1000, throttled: 1000 }; 9];
        results.counts[1].programs = [Score { ok: 20, throttled: 0 }; CLIENTS];
        results.probing = true;
        results
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for columns in NARROWEST..=WIDEST {
            for line in frame(&sample_results(), columns, Paint::PLAIN) {
                assert!(width(&line) < columns, "{columns}: {} {line:?}", width(&line));
            }
        }
    }

    #[test]
    fn picture_and_conclusion_fit_into_24_lines() {
        let lines = frame(&sample_results(), 80, Paint::PLAIN).len();
        assert!(lines < HEIGHT, "{lines}");
        let end = conclusion(&sample_results(), Paint::PLAIN).lines().count();
        assert!(lines + end < 24, "{lines} and {end}");
    }

    #[test]
    fn client_kind_that_occurs_twice_has_a_number() {
        assert_eq!(sample_results().names(), ["sh + curl", "python3", "rust 1", "rust 2"]);
    }

    #[test]
    fn bars_distinguish_ok_from_429_without_colours_and_never_overflow() {
        let bar = |ok, throttled| bars(Score { ok, throttled }, 60, 20, Paint::PLAIN);
        assert_eq!(bar(30, 30), format!("{}{}", OK.repeat(10), THROTTLED.repeat(10)));
        assert_eq!(bar(0, 1), format!("{THROTTLED}{:19}", ""));
        assert_eq!(width(&bar(60, 0)), 20);
        assert_eq!(width(&bar(59, 1)), 20);
    }
}
