//! The part of a policy that says how waiting calls are served.

crate::named_enum! {
    /// Whose turn it is among those who wait with the same priority (R131).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum Fairness {
        /// Every group has equal turns; a process is a group unless told otherwise (R143).
        #[default]
        Process => "process",
        /// Strictly in the order of arrival.
        Fifo => "fifo",
    }
    /// The name in configuration files.
    pub const fn as_str;
    /// The names in configuration files, in the order of the variants.
    pub const NAMES;
    impl FromStr;
}

/// How those who wait are served, as decisions need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queueing {
    /// Whose turn it is within a priority.
    pub fairness: Fairness,
    /// What the background gets even under a flood of higher priorities, in millionths.
    pub background_share: u32,
    /// Whether there are priorities at all; else all calls are the background's, and there is no reserve.
    pub priorities: bool,
}

/// All of the budget, as a share in millionths.
pub const WHOLE_SHARE: u32 = 1_000_000;

impl Queueing {
    /// From its word of an encoded policy; any word gives values in range.
    #[inline]
    pub fn from_word(word: u64) -> Queueing {
        Queueing {
            fairness: if word & 1 == 1 { Fairness::Fifo } else { Fairness::Process },
            background_share: ((word >> 32) as u32).min(WHOLE_SHARE),
            priorities: word & 2 == 0,
        }
    }

    /// The word for an encoded policy.
    #[inline]
    pub fn to_word(self) -> u64 {
        u64::from(self.fairness == Fairness::Fifo)
            | u64::from(!self.priorities) << 1
            | u64::from(self.background_share) << 32
    }
}
