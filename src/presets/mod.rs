//! Presets: ready-made policies, named after the API they are for. Every number can be overridden (R104).

mod exchanges;
mod media;
mod services;

use crate::headers::HeaderFormat;
use shmlimit_kernel::policy::{AdaptiveDraft, PaceWindowDraft, WindowKind};
use shmlimit_kernel::{Algorithm, Policy, PolicyDraft, PolicyError, RuleDraft};
use std::time::Duration;

/// One ready-made policy.
///
/// ```
/// for preset in shmlimit::presets::all() {
///     println!("{}: {}", preset.name, preset.about);
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Preset {
    /// The preset's name.
    pub name: &'static str,
    /// The API it is for, in one line.
    pub about: &'static str,
    /// The source of the numbers, and its date (R103).
    pub source: &'static str,
    /// Further facts for its users, one or two sentences each (R105).
    pub notes: &'static [&'static str],
    /// The settings of the policy.
    pub draft: PolicyDraft<'static>,
}

impl Preset {
    /// The policy of this preset.
    ///
    /// ```
    /// assert!(shmlimit::presets::all().iter().all(|preset| preset.policy().is_ok()));
    /// ```
    pub fn policy(&self) -> Result<Policy, PolicyError> {
        Policy::new(&self.draft)
    }
}

const GROUPS: [&[Preset]; 3] = [media::ALL, exchanges::ALL, services::ALL];
const COUNT: usize = media::ALL.len() + exchanges::ALL.len() + services::ALL.len();
static ALL: [Preset; COUNT] = joined();

/// The names of all presets.
///
/// ```
/// assert!(shmlimit::presets::NAMES.contains(&"github"));
/// ```
pub const NAMES: [&str; COUNT] = names();

const fn joined() -> [Preset; COUNT] {
    let mut all = [media::ALL[0]; COUNT];
    let (mut group, mut i, mut n) = (0, 0, 0);
    while group < GROUPS.len() {
        if i < GROUPS[group].len() {
            all[n] = GROUPS[group][i];
            (i, n) = (i + 1, n + 1);
        } else {
            (group, i) = (group + 1, 0);
        }
    }
    all
}

const fn names() -> [&'static str; COUNT] {
    let all = joined();
    let mut names = [""; COUNT];
    let mut n = 0;
    while n < COUNT {
        names[n] = all[n].name;
        n += 1;
    }
    names
}

/// All presets, in the order of [`NAMES`].
///
/// ```
/// assert!(shmlimit::presets::all().iter().any(|preset| preset.name == "github"));
/// ```
pub fn all() -> &'static [Preset] {
    &ALL
}

/// The policy of a preset; `None` if no preset has that name.
///
/// ```
/// let tmdb = shmlimit::presets::policy("tmdb").unwrap().unwrap();
/// assert_eq!(tmdb.concurrency(), Some(4));
/// ```
pub fn policy(name: &str) -> Option<Result<Policy, PolicyError>> {
    ALL.iter().find(|preset| preset.name == name).map(Preset::policy)
}

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

const fn named(name: &'static str, algorithm: Algorithm, limit: u64, period: Duration) -> RuleDraft<'static> {
    RuleDraft { name: Some(name), ..RuleDraft::new(algorithm, limit, period) }
}

const fn window(
    name: &'static str,
    limit: u64,
    interval: Duration,
    kind: WindowKind,
) -> PaceWindowDraft<'static> {
    PaceWindowDraft { name, limit, interval, kind }
}

const fn adaptive(
    parser: HeaderFormat,
    windows: &'static [PaceWindowDraft<'static>],
) -> AdaptiveDraft<'static> {
    AdaptiveDraft { parser: Some(parser.code()), windows, ..AdaptiveDraft::DEFAULT }
}

/// Every preset with its source and notes, in Markdown: the text between the marks of `docs/presets.md`.
#[doc(hidden)]
pub fn reference() -> String {
    let mut page = String::new();
    for preset in all() {
        let break_before = if page.is_empty() { "" } else { "\n" };
        page.push_str(&format!("{break_before}### `{}`\n\n{}.\n\n", preset.name, preset.about));
        page.push_str(&format!("- Numbers: {}\n", preset.source));
        for note in preset.notes {
            page.push_str(&format!("- {note}\n"));
        }
    }
    page
}
