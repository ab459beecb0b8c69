//! Reads the IETF's `RateLimit` headers, in the three forms of the drafts (R97).

use super::list::{Member, members};
use super::number::number;
use super::windows::{MOST_WINDOWS, Windows};
use super::{Header, Parser, Reading};
use shmlimit_kernel::time::Nanos;

/// The name of the window if the headers do not name one.
const DEFAULT: &str = "default";

/// `RateLimit-Limit`, `-Remaining`, `-Reset`; `RateLimit: limit=, remaining=, reset=`; and `RateLimit: "p";r=;t=`,
/// each with `RateLimit-Policy`. A window has the name of its policy, or `default`.
#[derive(Clone, Copy, Debug)]
pub struct Ietf;

impl Parser for Ietf {
    fn parse(&self, headers: &[Header<'_>], _wall_now: u64) -> Vec<(String, Reading)> {
        let mut found = Found::default();
        for (name, value) in headers {
            // A malformed member or number is ignored, and the others stay (R94). A value is ignored as a whole if
            // its parts cannot be told apart: a quote does not end, or several numbers came where one is expected.
            if let Some(more) = Found::read(name, value) {
                found.add(more);
            }
        }
        found.sorted()
    }
}

/// The contents of the headers.
#[derive(Default)]
struct Found {
    named: Windows,
    /// The values that belong to no named policy.
    unnamed: Reading,
    /// Policies without a name.
    quotas: Vec<Quota>,
}

/// A quota and the length of its window.
#[derive(Clone, Copy)]
struct Quota {
    units: u64,
    window: Option<Nanos>,
}

impl Found {
    /// The contents of one header; `None` if the value as a whole is malformed.
    fn read(name: &str, value: &str) -> Option<Found> {
        let mut found = Found::default();
        if name.eq_ignore_ascii_case("ratelimit-limit") {
            members(value)?.enumerate().for_each(|(i, member)| found.limit(member, i == 0));
        } else if name.eq_ignore_ascii_case("ratelimit-policy") {
            members(value)?.for_each(|member| found.policy(member));
        } else if name.eq_ignore_ascii_case("ratelimit") {
            members(value)?.for_each(|member| found.state(member));
        } else if name.eq_ignore_ascii_case("ratelimit-remaining") {
            found.unnamed("remaining", number_of(value)?);
        } else if name.eq_ignore_ascii_case("ratelimit-reset") {
            found.unnamed("reset", number_of(value)?);
        }
        Some(found)
    }

    /// A member of `RateLimit-Limit`, `100` in `100, 100;w=60`. The first member is the limit, and members with a
    /// window are policies. Further members without a window come from headers that were joined.
    fn limit(&mut self, member: Member<'_>, first: bool) {
        let Some(units) = number(member.item()) else { return };
        let quota = Quota { units, window: parameters(member).window };
        let is_policy = member.parameters().any(|(key, _)| key.eq_ignore_ascii_case("w"));
        if first || !is_policy {
            self.unnamed.restrict(Reading { limit: Some(units), ..Reading::default() });
        }
        self.quota(quota);
    }

    /// A member of `RateLimit-Policy`: `"p";q=100;w=60`, or `100;w=60` in the drafts without names.
    fn policy(&mut self, member: Member<'_>) {
        let Reading { limit, window, .. } = parameters(member);
        if let Some(units) = number(member.item()) {
            self.quota(Quota { units, window });
        } else if let Some(name) = member.name() {
            self.named.add(&name, Reading { limit, window, ..Reading::default() });
        }
    }

    /// A member of `RateLimit`: `"p";r=50;t=30`, or `remaining=50` in the drafts without names.
    fn state(&mut self, member: Member<'_>) {
        let item = member.item();
        if let Some((key, value)) = item.split_once('=').filter(|_| !item.starts_with('"')) {
            self.unnamed(key.trim_end(), value);
        } else if let Some(name) = member.name() {
            let Reading { remaining, reset_after, .. } = parameters(member);
            self.named.add(&name, Reading { remaining, reset_after, ..Reading::default() });
        }
    }

    fn unnamed(&mut self, key: &str, value: &str) {
        let mut reading = Reading::default();
        if key.eq_ignore_ascii_case("limit") {
            reading.limit = number(value);
        } else if key.eq_ignore_ascii_case("remaining") {
            reading.remaining = number(value);
        } else if key.eq_ignore_ascii_case("reset") {
            reading.reset_after = number(value).map(Nanos::from_secs);
        }
        self.unnamed.restrict(reading);
    }

    fn quota(&mut self, quota: Quota) {
        if self.quotas.len() < MOST_WINDOWS {
            self.quotas.push(quota);
        }
    }

    fn add(&mut self, more: Found) {
        self.named.add_all(more.named);
        self.unnamed.restrict(more.unnamed);
        more.quotas.into_iter().for_each(|quota| self.quota(quota));
    }

    fn sorted(mut self) -> Vec<(String, Reading)> {
        // The limit tells which of several unnamed policies is effective. A single policy is effective in any case.
        if let (None, [only]) = (self.unnamed.limit, &self.quotas[..]) {
            self.unnamed.restrict(Reading { limit: Some(only.units), ..Reading::default() });
        }
        let limit = self.unnamed.limit;
        for quota in self.quotas.iter().filter(|quota| Some(quota.units) == limit) {
            self.unnamed.restrict(Reading { window: quota.window, ..Reading::default() });
        }
        self.named.add(DEFAULT, self.unnamed);
        self.named.sorted()
    }
}

/// The number in a value. The value may have parameters, because some services send `76;w=21600`.
fn number_of(value: &str) -> Option<&str> {
    let mut members = members(value)?;
    let only = members.next()?;
    members.next().is_none().then(|| only.item())
}

/// The known parameters, in any of these headers. Malformed parameters are ignored.
fn parameters(member: Member<'_>) -> Reading {
    let mut reading = Reading::default();
    for (key, value) in member.parameters() {
        let mut more = Reading::default();
        match key {
            "q" | "Q" => more.limit = number(value),
            "w" | "W" => more.window = number(value).map(Nanos::from_secs),
            "r" | "R" => more.remaining = number(value),
            "t" | "T" => more.reset_after = number(value).map(Nanos::from_secs),
            _ => {}
        }
        reading.restrict(more);
    }
    reading
}

#[cfg(test)]
mod tests;
