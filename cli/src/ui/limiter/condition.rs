//! Formats the condition of a limiter: its pause, breaker, gate, outcomes and pace.

use crate::ui::count;
use crate::ui::escape::printable;
use crate::ui::layout::{self, Part, ScreenStyle};
use crate::ui::limiter::warnings;
use crate::ui::suggestion;
use crate::ui::time::{format_age, format_remaining, format_wait};
use shmlimit::{BreakerState, Counts, GateSnapshot, PauseSnapshot, Snapshot, TransitionCause};
use shmlimit_kernel::policy::BreakerKind;
use std::time::Duration;

/// The number of status codes that are listed.
const CODES: usize = 6;

/// Writes the pause, its process and its reason; nothing without a pause.
pub fn write_pause(out: &mut String, snapshot: &Snapshot, width: usize, screen: ScreenStyle) {
    let Some(pause) = &snapshot.paused else { return };
    let until = match pause.ends_in {
        Some(left) => format!("{} left", format_remaining(left)),
        None => "until it is resumed".to_owned(),
    };
    let parts = [
        Part::Level(0.0, until),
        Part::Plain(format!("by {}", paused_by(pause))),
        Part::Dim(suggestion::with_directory(&format!(
            "end it with: shmlimit resume {}",
            suggestion::operand(&snapshot.name)
        ))),
    ];
    layout::write_row(out, screen, ("paused", width), &parts);
}

/// Returns the user or program that paused the limiter, when and why: `alice (4711), 5m ago: database migration`.
pub fn paused_by(pause: &PauseSnapshot) -> String {
    let reason = pause.reason.as_ref().map(|text| format!(": {}", printable(text))).unwrap_or_default();
    format!("{} ({}), {} ago{reason}", printable(&pause.program), pause.pid, format_age(pause.paused_for))
}

/// Writes the breaker's state, since when and why; nothing while the breaker is in its initial state.
pub fn write_state(out: &mut String, snapshot: &Snapshot, width: usize, screen: ScreenStyle) {
    let now = &snapshot.condition;
    if now.breaker == BreakerKind::None || (now.reason.is_none() && now.state == BreakerState::Normal) {
        return;
    }
    let mut words = now.state_name.to_owned();
    if let Some(cause) = now.reason {
        words += &format!(" for {}: {} ({})", format_age(now.state_for), cause_text(cause), cause.as_str());
    }
    let left = match now.state {
        BreakerState::Normal => 1.0,
        BreakerState::Throttle | BreakerState::HalfOpen => 0.1,
        BreakerState::Sleep | BreakerState::CacheOnly | BreakerState::Open => 0.0,
    };
    let mut parts = vec![Part::Level(left, words)];
    if now.breaker == BreakerKind::Fsm && now.rate > 0.0 {
        parts.push(Part::Dim(format!("{}/s", (now.rate * 1000.0).round() / 1000.0)));
    }
    layout::write_row(out, screen, ("breaker", width), &parts);
    for warning in warnings::of(&snapshot.name, now) {
        layout::write_row(out, screen, ("warning", width), &[Part::Level(0.1, warning.message)]);
        layout::write_row(out, screen, ("", width), &[Part::Dim(warning.advice)]);
    }
    // If the state does not end by itself, an operator must end it.
    let way_out = match now.state {
        _ if now.offline => "online",
        BreakerState::CacheOnly => "online",
        BreakerState::Sleep => "normal",
        BreakerState::Open => "closed",
        _ => return,
    };
    if now.offline || now.eta.is_none() {
        let offline = if now.offline { "offline; " } else { "" };
        let text = suggestion::with_directory(&format!(
            "{offline}end it with: shmlimit force {} {way_out}",
            suggestion::operand(&snapshot.name)
        ));
        layout::write_row(out, screen, ("", width), &[Part::Dim(text)]);
    }
}

pub const fn cause_text(cause: TransitionCause) -> &'static str {
    match cause {
        TransitionCause::Forced => "by an operator",
        TransitionCause::Consec429 => "too many 429 in a row",
        TransitionCause::ErrorRatio => "too many errors",
        TransitionCause::SustainedErrors => "too many errors for too long",
        TransitionCause::SuccessWindowOk => "calls succeed again",
        TransitionCause::SleepExpired => "the sleep is over",
        TransitionCause::ProbeOk => "probes succeeded",
        TransitionCause::ProbeFailed => "a probe failed",
        TransitionCause::AutoRecover => "recovers by itself",
        TransitionCause::ConsecutiveFailures => "too many failures in a row",
        TransitionCause::ResetTimeout => "the reset timeout is over",
    }
}

/// Returns how long the gate stays closed, and who closed it.
pub fn gate_texts(gate: &GateSnapshot) -> (String, String) {
    let closed = format!("by Retry-After, {} left", format_remaining(gate.opens_in));
    let recorded = format_age(gate.recorded);
    (closed, format!("recorded by {} ({}) {recorded} ago", printable(&gate.program), gate.pid))
}

/// Writes the rows about the gate, the outcomes and the pace. A row without information is left out.
pub fn write(out: &mut String, snapshot: &Snapshot, width: usize, screen: ScreenStyle) {
    let now = &snapshot.condition;
    if let Some(gate) = &now.gate {
        let (closed, by) = gate_texts(gate);
        let way_out = suggestion::with_directory(&format!(
            "end it with: shmlimit force {} clear-gate",
            suggestion::operand(&snapshot.name)
        ));
        layout::write_row(
            out,
            screen,
            ("paused", width),
            &[Part::Level(0.0, closed), Part::Plain(by), Part::Dim(way_out)],
        );
    }
    let codes = codes(&snapshot.counts);
    if !codes.is_empty() {
        let ratio = match now.samples {
            0 => Part::Dim("no call lately".to_owned()),
            samples => {
                let calls = if samples == 1 { "call".to_owned() } else { count(samples.into(), "calls") };
                let text = format!("{:.1}% errors in the last {calls}", now.error_ratio * 100.0);
                // An error ratio of one half is already shown in red.
                if now.error_ratio > 0.0 {
                    Part::Level(0.5 - now.error_ratio, text)
                } else {
                    Part::Plain(text)
                }
            }
        };
        layout::write_row(out, screen, ("outcomes", width), &[ratio, Part::Dim(format!("in all: {codes}"))]);
    }
    if let Some(pace) = now.pace.as_ref() {
        let known = pace.windows.iter().filter(|window| window.remaining < window.limit);
        let windows: Vec<String> = known
            .map(|window| format!("{} {} of {} left", window.name, window.remaining, window.limit))
            .collect();
        let gap = match pace.interval {
            // Headers without a limit need no row.
            Duration::ZERO if windows.is_empty() => return,
            Duration::ZERO => Part::Plain("no limit".to_owned()),
            gap => Part::Level(0.1, format!("one call every {}", format_wait(gap))),
        };
        let mut parts = vec![gap];
        parts.extend(pace.bottleneck.as_ref().map(|name| Part::Plain(format!("because of {name}"))));
        parts.extend((!windows.is_empty()).then(|| Part::Dim(windows.join(", "))));
        layout::write_row(out, screen, ("pace", width), &parts);
    }
}

/// Lists how calls ended, the most frequent result first.
fn codes(counts: &Counts) -> String {
    let mut codes: Vec<_> = counts.codes.iter().collect();
    codes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let more = if codes.len() > CODES { ", …" } else { "" };
    let parts: Vec<String> =
        codes.into_iter().take(CODES).map(|(code, count)| format!("{count} × {code}")).collect();
    format!("{}{more}", parts.join(", "))
}
