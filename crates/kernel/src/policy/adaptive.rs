//! The part of a policy that says how response headers set the pace (R82).

use super::error::{Key, PolicyError};
use super::health::MILLION;
use super::name::{NAME_WORDS, Name};
use super::{MAX_AMOUNT, named, within, within_span};
use crate::time::Nanos;
use core::time::Duration;
use std::num::NonZeroU8;

/// Maximum number of windows that headers may describe.
pub const MAX_WINDOWS: usize = 8;
/// Maximum number of gaps between calls that are remembered.
pub const MAX_HISTORY: u32 = 1000;

/// The stored code of a header format. The library that parses headers defines the codes.
///
/// ```
/// # use shmlimit_kernel as shmlimit;
/// use shmlimit::policy::HeaderCode;
/// use std::num::NonZeroU8;
///
/// // A program takes the code from `HeaderFormat::code`.
/// assert_eq!(HeaderCode(NonZeroU8::MIN).0.get(), 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HeaderCode(pub NonZeroU8);

crate::named_enum! {
    /// The kind of a provider's rate-limit window.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::policy::WindowKind;
    ///
    /// assert_eq!("sliding".parse(), Ok(WindowKind::Sliding));
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum WindowKind {
        /// The window starts again at its end.
        Fixed => "fixed",
        /// The window moves with time.
        Sliding => "sliding",
    }
    /// The name in configuration files.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// assert_eq!(shmlimit::policy::WindowKind::Fixed.as_str(), "fixed");
    /// ```
    pub const fn as_str;
    impl FromStr;
    /// The names in configuration files, in the order of the variants.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// assert_eq!(shmlimit::policy::WindowKind::NAMES, ["fixed", "sliding"]);
    /// ```
    pub const NAMES;
}

/// One rate-limit window of the provider, as configured.
///
/// ```
/// # use shmlimit_kernel as shmlimit;
/// use shmlimit::policy::{PaceWindowDraft, WindowKind};
/// use std::time::Duration;
///
/// let interval = Duration::from_secs(60);
/// let window = PaceWindowDraft { name: "requests", limit: 500, interval, kind: WindowKind::Fixed };
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaceWindowDraft<'a> {
    /// The name that the header parser gives to the window.
    pub name: &'a str,
    /// The limit of the window, unless the headers say otherwise.
    pub limit: u64,
    /// The length of the window.
    pub interval: Duration,
    /// The kind of the window.
    pub kind: WindowKind,
}

/// The configuration of the pace, before validation.
///
/// ```
/// # use shmlimit_kernel as shmlimit;
/// use shmlimit::policy::AdaptiveDraft;
/// use shmlimit::{Policy, PolicyDraft};
///
/// // Use three quarters of the provider's limit before the pace is slowed.
/// let adaptive = AdaptiveDraft { threshold: 750_000, ..AdaptiveDraft::DEFAULT };
/// let policy = Policy::new(&PolicyDraft { adaptive: Some(adaptive), ..PolicyDraft::DEFAULT })?;
/// assert_eq!(policy.adaptive().unwrap().threshold, 750_000);
/// # Ok::<(), shmlimit::PolicyError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdaptiveDraft<'a> {
    /// The header format. `None`: it is given with each response.
    pub parser: Option<HeaderCode>,
    /// The fraction used, in millionths, from which the pace is slowed.
    pub threshold: u32,
    /// The number of gaps between calls that are averaged.
    pub history: u32,
    /// The minimum number of gaps for an average.
    pub min_samples: u32,
    /// Windows up to this length use the simple rule (R86).
    pub short_window: Duration,
    /// The windows. Other windows in the headers are ignored.
    pub windows: &'a [PaceWindowDraft<'a>],
}

impl AdaptiveDraft<'_> {
    /// The default values.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// assert_eq!(shmlimit::policy::AdaptiveDraft::DEFAULT.threshold, 500_000); // half of the limit
    /// ```
    pub const DEFAULT: Self = AdaptiveDraft {
        parser: None,
        threshold: MILLION / 2,
        history: 100,
        min_samples: 10,
        short_window: Duration::from_secs(10),
        windows: &[],
    };
}

impl Default for AdaptiveDraft<'_> {
    fn default() -> Self {
        AdaptiveDraft::DEFAULT
    }
}

/// One valid rate-limit window of the provider.
///
/// ```
/// # use shmlimit_kernel as shmlimit;
/// # use shmlimit::policy::{AdaptiveDraft, PaceWindowDraft, WindowKind};
/// # use shmlimit::{Policy, PolicyDraft};
/// # use std::time::Duration;
/// # let interval = Duration::from_secs(60);
/// # let windows = [PaceWindowDraft { name: "requests", limit: 500, interval, kind: WindowKind::Fixed }];
/// # let adaptive = Some(AdaptiveDraft { windows: &windows, ..AdaptiveDraft::DEFAULT });
/// let policy = Policy::new(&PolicyDraft { adaptive, ..PolicyDraft::DEFAULT })?;
/// let window = policy.adaptive().unwrap().windows().next().unwrap();
/// assert_eq!((window.name.as_str(), window.limit), ("requests", 500));
/// # Ok::<(), shmlimit::PolicyError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaceWindow {
    /// The name that the header parser gives to the window.
    pub name: Name,
    /// The limit of the window, unless the headers say otherwise.
    pub limit: u64,
    pub(crate) interval: Nanos,
    /// The kind of the window.
    pub kind: WindowKind,
}

impl PaceWindow {
    /// The length of the window.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// # use shmlimit::policy::{AdaptiveDraft, PaceWindowDraft, WindowKind};
    /// # use shmlimit::{Policy, PolicyDraft};
    /// # use std::time::Duration;
    /// # let interval = Duration::from_secs(60);
    /// # let windows = [PaceWindowDraft { name: "requests", limit: 500, interval, kind: WindowKind::Fixed }];
    /// # let adaptive = Some(AdaptiveDraft { windows: &windows, ..AdaptiveDraft::DEFAULT });
    /// let policy = Policy::new(&PolicyDraft { adaptive, ..PolicyDraft::DEFAULT })?;
    /// let window = policy.adaptive().unwrap().windows().next().unwrap();
    /// assert_eq!(window.interval(), Duration::from_secs(60));
    /// # Ok::<(), shmlimit::PolicyError>(())
    /// ```
    pub const fn interval(&self) -> Duration {
        self.interval.duration()
    }
}

/// The configuration of the pace, validated.
///
/// ```
/// # use shmlimit_kernel as shmlimit;
/// use shmlimit::policy::AdaptiveDraft;
/// use shmlimit::{Policy, PolicyDraft};
///
/// let adaptive = Some(AdaptiveDraft::DEFAULT);
/// let policy = Policy::new(&PolicyDraft { adaptive, ..PolicyDraft::DEFAULT })?;
/// assert_eq!(policy.adaptive().unwrap().history, 100);
/// # Ok::<(), shmlimit::PolicyError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adaptive {
    /// The header format. `None`: it is given with each response.
    pub parser: Option<HeaderCode>,
    /// The fraction used, in millionths, from which the pace is slowed.
    pub threshold: u32,
    /// The number of gaps between calls that are averaged.
    pub history: u32,
    /// The minimum number of gaps for an average.
    pub min_samples: u32,
    pub(crate) short_window: Nanos,
    windows: [Option<PaceWindow>; MAX_WINDOWS],
}

/// Number of words for the numbers of [`Adaptive`], and for each of its windows.
pub(super) const ADAPTIVE_WORDS: usize = 3;
pub(super) const PACE_WINDOW_WORDS: usize = NAME_WORDS + 3;

impl Adaptive {
    pub(super) fn new(draft: &AdaptiveDraft<'_>) -> Result<Adaptive, PolicyError> {
        let check = |name, value: u32, least: u32, most: u32, unit| {
            within(Key::top(name), u64::from(value), u128::from(least), u128::from(most), unit).map(drop)
        };
        check("adaptive.threshold", draft.threshold, 1, MILLION, " millionths")?;
        check("adaptive.history", draft.history, 1, MAX_HISTORY, "")?;
        check("adaptive.min_samples", draft.min_samples, 1, draft.history, " (adaptive.history)")?;
        within_span(Key::top("adaptive.short_window"), draft.short_window, Duration::ZERO)?;
        let count = draft.windows.len();
        if count > MAX_WINDOWS {
            return Err(PolicyError::TooMany { key: Key::top("adaptive.windows"), count, max: MAX_WINDOWS });
        }
        let mut windows = [None; MAX_WINDOWS];
        for (i, (slot, window)) in windows.iter_mut().zip(draft.windows).enumerate() {
            let key = |name| Key::of_window(i, name);
            within(key("limit"), window.limit, 1, u128::from(MAX_AMOUNT), "")?;
            within_span(key("interval"), window.interval, Duration::from_nanos(1))?;
            if draft.windows[..i].iter().any(|other| other.name == window.name) {
                let problem = "another window has the same name";
                return Err(PolicyError::Conflict { key: key("name"), problem });
            }
            *slot = Some(PaceWindow {
                name: named(key("name"), window.name)?,
                limit: window.limit,
                interval: Nanos::of(window.interval),
                kind: window.kind,
            });
        }
        let AdaptiveDraft { parser, threshold, history, min_samples, .. } = *draft;
        let short_window = Nanos::of(draft.short_window);
        Ok(Adaptive { parser, threshold, history, min_samples, short_window, windows })
    }

    /// Converts this back to a draft, with `windows`.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::policy::AdaptiveDraft;
    /// use shmlimit::{Policy, PolicyDraft};
    ///
    /// let adaptive = Some(AdaptiveDraft::DEFAULT);
    /// let policy = Policy::new(&PolicyDraft { adaptive, ..PolicyDraft::DEFAULT })?;
    /// assert_eq!(policy.adaptive().unwrap().draft(&[]), AdaptiveDraft::DEFAULT);
    /// # Ok::<(), shmlimit::PolicyError>(())
    /// ```
    pub fn draft<'a>(&self, windows: &'a [PaceWindowDraft<'a>]) -> AdaptiveDraft<'a> {
        let Adaptive { parser, threshold, history, min_samples, .. } = *self;
        let short_window = self.short_window();
        AdaptiveDraft { parser, threshold, history, min_samples, short_window, windows }
    }

    /// Windows up to this length use the simple rule (R86).
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::policy::AdaptiveDraft;
    /// use shmlimit::{Policy, PolicyDraft};
    ///
    /// let adaptive = Some(AdaptiveDraft::DEFAULT);
    /// let policy = Policy::new(&PolicyDraft { adaptive, ..PolicyDraft::DEFAULT })?;
    /// assert_eq!(policy.adaptive().unwrap().short_window(), AdaptiveDraft::DEFAULT.short_window);
    /// # Ok::<(), shmlimit::PolicyError>(())
    /// ```
    pub const fn short_window(&self) -> Duration {
        self.short_window.duration()
    }

    /// The windows, in order.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// # use shmlimit::policy::{AdaptiveDraft, PaceWindowDraft, WindowKind};
    /// # use shmlimit::{Policy, PolicyDraft};
    /// # use std::time::Duration;
    /// # let interval = Duration::from_secs(60);
    /// # let windows = [PaceWindowDraft { name: "requests", limit: 500, interval, kind: WindowKind::Fixed }];
    /// # let adaptive = Some(AdaptiveDraft { windows: &windows, ..AdaptiveDraft::DEFAULT });
    /// let policy = Policy::new(&PolicyDraft { adaptive, ..PolicyDraft::DEFAULT })?;
    /// assert_eq!(policy.adaptive().unwrap().windows().count(), 1);
    /// # Ok::<(), shmlimit::PolicyError>(())
    /// ```
    pub fn windows(&self) -> impl Iterator<Item = &PaceWindow> + '_ {
        self.windows.iter().flatten()
    }

    /// Decodes the words of an encoded policy. Any words give values in range. `None` if the pace is off.
    pub(crate) fn from_words(
        words: [u64; ADAPTIVE_WORDS],
        window: impl Fn(usize) -> [u64; PACE_WINDOW_WORDS],
    ) -> Option<Adaptive> {
        let [head, samples, short_window] = words;
        if head & 1 == 0 {
            return None;
        }
        let count = ((head >> 16) as u8 as usize).min(MAX_WINDOWS);
        let windows = std::array::from_fn(|i| {
            let [a, b, c, d, limit, interval, kind] = if i < count { window(i) } else { [0; 7] };
            Some(PaceWindow {
                name: Name::from_words([a, b, c, d])?,
                limit,
                interval: Nanos(interval),
                kind: if kind == 0 { WindowKind::Fixed } else { WindowKind::Sliding },
            })
        });
        Some(Adaptive {
            parser: NonZeroU8::new((head >> 8) as u8).map(HeaderCode),
            threshold: (head >> 32) as u32,
            history: (samples as u32).clamp(1, MAX_HISTORY),
            min_samples: (samples >> 32) as u32,
            short_window: Nanos(short_window),
            windows,
        })
    }

    pub(super) fn to_words(self) -> ([u64; ADAPTIVE_WORDS], [[u64; PACE_WINDOW_WORDS]; MAX_WINDOWS]) {
        let count = self.windows().count() as u64;
        let parser = self.parser.map_or(0, |code| u64::from(code.0.get()));
        let head = 1 | parser << 8 | count << 16 | u64::from(self.threshold) << 32;
        let samples = u64::from(self.history) | u64::from(self.min_samples) << 32;
        let windows = self.windows.map(|window| match window {
            None => [0; PACE_WINDOW_WORDS],
            Some(PaceWindow { name, limit, interval, kind }) => {
                let [a, b, c, d] = name.to_words();
                [a, b, c, d, limit, interval.0, u64::from(kind == WindowKind::Sliding)]
            }
        });
        ([head, samples, self.short_window.0], windows)
    }
}
