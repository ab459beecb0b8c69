//! Draws the picture as SVG: plain shapes and text, without external resources.

use super::super::human::{number, time};
use super::axis::{marks, time_step};
use super::buckets::{Bucket, Buckets};
use shmlimit_kernel::breaker::BreakerState;
use shmlimit_kernel::policy::BreakerKind;
use std::fmt::Write;

const WIDTH: f64 = 960.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 936.0;
const TOP: f64 = 78.0;
const CALLS: f64 = 190.0;
const STRIP: f64 = 18.0;
const SMALL: f64 = 84.0;
/// The space between panels, for the heading of the next panel.
const GAP: f64 = 40.0;
/// The narrowest stretch that is visible.
const LEAST: f64 = 1.5;
const GRANTED: &str = "#2f6f9f";
const REFUSED: &str = "#d9822b";
const LINE: &str = "#3d4b5c";

const fn colour(state: BreakerState) -> &'static str {
    match state {
        BreakerState::Normal => "#8fc9a3",
        BreakerState::Throttle => "#f2c84b",
        BreakerState::Sleep | BreakerState::Open => "#c65b4a",
        BreakerState::HalfOpen => "#74aede",
        BreakerState::CacheOnly => "#9580c4",
    }
}

/// Converts times and values to positions, and collects the shapes.
struct Canvas<'b> {
    text: String,
    buckets: &'b Buckets,
    /// The time that the full width represents.
    span: f64,
}

/// Draws these buckets.
pub fn svg(title: &str, kind: BreakerKind, buckets: &Buckets) -> String {
    // The span covers whole buckets, so that the last bar is as wide as the others.
    let span = (buckets.list.len() as u64).saturating_mul(buckets.width);
    let mut canvas = Canvas { text: String::new(), buckets, span: span as f64 };
    let fsm = kind == BreakerKind::Fsm;
    let strip_at = TOP + CALLS + GAP;
    let flight_at = strip_at + if kind == BreakerKind::None { 0.0 } else { STRIP + GAP };
    let rate_at = flight_at + SMALL + GAP;
    let bottom = if fsm { rate_at + SMALL } else { flight_at + SMALL };
    canvas.open(title, bottom + 58.0);
    if kind != BreakerKind::None {
        canvas.tints(TOP, CALLS);
        canvas.tints(flight_at, SMALL);
        if fsm {
            canvas.tints(rate_at, SMALL);
        }
    }
    canvas.time_axis(bottom);
    canvas.calls(TOP);
    if kind != BreakerKind::None {
        canvas.strip(strip_at, kind);
    }
    canvas.in_flight(flight_at);
    if fsm {
        canvas.rate(rate_at);
    }
    canvas.text.push_str("</svg>\n");
    canvas.text
}

impl Canvas<'_> {
    fn put(&mut self, shape: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.text.write_fmt(shape);
        self.text.push('\n');
    }

    fn x(&self, since: u64) -> f64 {
        LEFT + (RIGHT - LEFT) * (since as f64 / self.span).min(1.0)
    }

    fn open(&mut self, title: &str, height: f64) {
        let title = escaped(title);
        self.put(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
             height=\"{height}\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\" role=\"img\">\n\
             <title>{title}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>"
        ));
        self.put(format_args!(
            "<text x=\"{LEFT}\" y=\"28\" font-size=\"17\" font-weight=\"bold\" fill=\"#1d2733\">{title}</text>"
        ));
        let granted: u64 = self.buckets.list.iter().map(|bucket| bucket.granted).sum();
        let refused: u64 = self.buckets.list.iter().map(|bucket| bucket.refused).sum();
        let length = time(self.buckets.last - self.buckets.origin);
        self.put(format_args!(
            "<text x=\"{LEFT}\" y=\"47\" fill=\"#5b6775\">{granted} granted, {refused} refused, in {length} of \
             virtual time</text>"
        ));
    }

    fn heading(&mut self, y: f64, text: &str) {
        let y = y - 9.0;
        self.put(format_args!(
            "<text x=\"{LEFT}\" y=\"{y}\" fill=\"#1d2733\" font-weight=\"bold\">{text}</text>"
        ));
    }

    /// Draws coloured squares with names, to the right of a heading.
    fn legend(&mut self, y: f64, entries: &[(&str, &str)]) {
        let width = |name: &str| 22.0 + 6.6 * name.len() as f64;
        let mut x = RIGHT - entries.iter().map(|(_, name)| width(name)).sum::<f64>();
        for (colour, name) in entries {
            let (square, text, base) = (y - 18.0, x + 15.0, y - 9.0);
            self.put(format_args!(
                "<rect x=\"{x:.1}\" y=\"{square:.1}\" width=\"10\" height=\"10\" fill=\"{colour}\"/>\
                 <text x=\"{text:.1}\" y=\"{base:.1}\" fill=\"#3d4b5c\">{name}</text>"
            ));
            x += width(name);
        }
    }

    fn time_axis(&mut self, bottom: f64) {
        let span = self.span as u64;
        let step = time_step(span, 9);
        for since in (0..=span / step).map(|i| i.saturating_mul(step)) {
            let (x, label) = (self.x(since), time(since));
            let y = bottom + 18.0;
            self.put(format_args!(
                "<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom}\" stroke=\"#e6e9ed\"/>\
                 <text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\" fill=\"#5b6775\">{label}</text>"
            ));
        }
        let title = match self.buckets.origin {
            0 => "virtual time".to_owned(),
            origin => format!("virtual time since t = {origin} ns"),
        };
        let (x, y) = ((LEFT + RIGHT) / 2.0, bottom + 40.0);
        self.put(format_args!(
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\" fill=\"#3d4b5c\">{title}</text>"
        ));
    }

    /// Draws the lines and numbers at the side of a panel. Returns the value that its height represents.
    fn value_axis(&mut self, y: f64, height: f64, top: f64, whole: bool) -> f64 {
        let marks = marks(top, if height > 100.0 { 5 } else { 3 }, whole);
        let most = marks.last().copied().unwrap_or(1.0);
        for mark in marks {
            let at = y + height - height * mark / most;
            let stroke = if mark == 0.0 { "#8a95a1" } else { "#e6e9ed" };
            let (x, base, label) = (LEFT - 8.0, at + 4.0, number(mark));
            self.put(format_args!(
                "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{RIGHT}\" y2=\"{at:.1}\" stroke=\"{stroke}\"/>\
                 <text x=\"{x}\" y=\"{base:.1}\" text-anchor=\"end\" fill=\"#5b6775\">{label}</text>"
            ));
        }
        most
    }

    fn calls(&mut self, y: f64) {
        let buckets = self.buckets;
        let several = buckets.list.len() > 1;
        let per = if several { format!(" per {}", time(buckets.width)) } else { String::new() };
        self.heading(y, &format!("calls{per}"));
        self.legend(y, &[(GRANTED, "granted"), (REFUSED, "refused")]);
        let highest = buckets.list.iter().map(|bucket| bucket.granted + bucket.refused).max().unwrap_or(0);
        let most = self.value_axis(y, CALLS, highest as f64, true);
        for (i, bucket) in buckets.list.iter().enumerate() {
            let from = self.x(i as u64 * buckets.width);
            let to = self.x((i as u64 + 1).saturating_mul(buckets.width));
            // A single bucket is an instant, so it does not fill the whole width.
            let width = if several { (to - from).max(0.8) - 0.4 } else { 12.0 };
            let mut base = y + CALLS;
            for (count, colour) in [(bucket.granted, GRANTED), (bucket.refused, REFUSED)] {
                let height = CALLS * count as f64 / most;
                base -= height;
                if count > 0 {
                    self.put(format_args!(
                        "<rect x=\"{from:.1}\" y=\"{base:.2}\" width=\"{width:.1}\" height=\"{height:.2}\" \
                         fill=\"{colour}\"/>"
                    ));
                }
            }
        }
    }

    /// Returns the stretches of one state each: state, start and end position. Adjacent stretches of one state are
    /// merged.
    fn spans(&self) -> Vec<(BreakerState, f64, f64)> {
        let mut found: Vec<(BreakerState, f64, f64)> = Vec::new();
        for (i, Bucket { states, .. }) in self.buckets.list.iter().enumerate() {
            let mut since = i as u64 * self.buckets.width;
            for (state, length) in states {
                let (from, to) = (self.x(since), self.x(since.saturating_add(*length)));
                since = since.saturating_add(*length);
                match found.last_mut() {
                    Some((last, _, end)) if last == state => *end = to,
                    _ => found.push((*state, from, to)),
                }
            }
        }
        if self.buckets.last == self.buckets.origin {
            // For a single instant, draw its final state.
            return found.last().map(|(state, ..)| (*state, LEFT, RIGHT)).into_iter().collect();
        }
        // The last bucket may not be over, but nothing else will happen.
        if let Some((.., to)) = found.last_mut() {
            *to = RIGHT;
        }
        found
    }

    /// Draws a tint behind a panel where the state was not normal.
    fn tints(&mut self, y: f64, height: f64) {
        for (state, from, to) in self.spans() {
            if state != BreakerState::Normal && to > from {
                let (width, colour) = (to - from, colour(state));
                self.put(format_args!(
                    "<rect x=\"{from:.2}\" y=\"{y}\" width=\"{width:.2}\" height=\"{height}\" fill=\"{colour}\" \
                     fill-opacity=\"0.13\"/>"
                ));
            }
        }
    }

    fn strip(&mut self, y: f64, kind: BreakerKind) {
        self.heading(y, "state");
        let spans = self.spans();
        let mut seen: Vec<BreakerState> = Vec::new();
        for (state, ..) in &spans {
            if !seen.contains(state) {
                seen.push(*state);
            }
        }
        let entries: Vec<_> = seen.iter().map(|state| (colour(*state), state.as_str(kind))).collect();
        self.legend(y, &entries);
        // Every stretch must be visible, so those narrower than a line are drawn on top.
        let (wide, narrow): (Vec<_>, Vec<_>) =
            spans.into_iter().partition(|(_, from, to)| to - from >= LEAST);
        for (state, from, to) in wide.into_iter().chain(narrow) {
            let (width, colour) = ((to - from).max(LEAST), colour(state));
            self.put(format_args!(
                "<rect x=\"{from:.2}\" y=\"{y}\" width=\"{width:.2}\" height=\"{STRIP}\" fill=\"{colour}\"/>"
            ));
        }
    }

    fn in_flight(&mut self, y: f64) {
        self.heading(y, "calls in flight");
        let highest =
            self.buckets.list.iter().filter_map(|bucket| bucket.in_flight).map(|(most, _)| most).max();
        let most = self.value_axis(y, SMALL, f64::from(highest.unwrap_or(0)), true);
        let mut end = 0.0;
        let values = self.buckets.list.iter().map(|bucket| match bucket.in_flight {
            Some((most, last)) => {
                end = f64::from(last);
                f64::from(most)
            }
            None => end,
        });
        let values = values.collect();
        self.steps(y, most, values);
    }

    fn rate(&mut self, y: f64) {
        self.heading(y, "rate in force, units per second");
        let highest = self.buckets.list.iter().filter_map(|bucket| bucket.rate).fold(0.0, f64::max);
        let most = self.value_axis(y, SMALL, highest, false);
        let mut last = self.buckets.list.iter().find_map(|bucket| bucket.rate).unwrap_or(0.0);
        let values = self.buckets.list.iter().map(|bucket| {
            last = bucket.rate.unwrap_or(last);
            last
        });
        let values = values.collect();
        self.steps(y, most, values);
    }

    /// Draws a step line with one value per bucket.
    fn steps(&mut self, y: f64, most: f64, values: Vec<f64>) {
        let mut path = String::new();
        let mut before = None;
        for (i, value) in values.iter().enumerate() {
            let x = self.x(i as u64 * self.buckets.width);
            let at = y + SMALL - SMALL * value / most;
            match before {
                None => _ = write!(path, "M{x:.1} {at:.1}"),
                Some(before) if before != *value => _ = write!(path, "H{x:.1}V{at:.1}"),
                Some(_) => {}
            }
            before = Some(*value);
        }
        self.put(format_args!(
            "<path d=\"{path}H{RIGHT}\" fill=\"none\" stroke=\"{LINE}\" stroke-width=\"1.6\" \
             stroke-linejoin=\"round\"/>"
        ));
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
