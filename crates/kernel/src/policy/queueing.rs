//! The part of a policy that says how waiting calls are served.

crate::named_enum! {
    /// The order of waiting calls with the same priority (R131).
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::Fairness;
    ///
    /// assert_eq!("fifo".parse(), Ok(Fairness::Fifo));
    /// assert_eq!(Fairness::default(), Fairness::Process);
    /// ```
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum Fairness {
        /// Every group has equal turns. By default each process is a group (R143).
        #[default]
        Process => "process",
        /// Strictly in the order of arrival.
        Fifo => "fifo",
    }
    /// The name in configuration files.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// assert_eq!(shmlimit::Fairness::Process.as_str(), "process");
    /// ```
    pub const fn as_str;
    /// The names in configuration files, in the order of the variants.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// assert_eq!(shmlimit::Fairness::NAMES, ["process", "fifo"]);
    /// ```
    pub const NAMES;
    impl FromStr;
}

/// The settings of the queue in the form that decisions need.
///
/// ```
/// # use shmlimit_kernel as shmlimit;
/// use shmlimit::{Fairness, Policy, PolicyDraft};
///
/// let policy = Policy::new(&PolicyDraft { fairness: Fairness::Fifo, ..PolicyDraft::DEFAULT })?;
/// assert_eq!(policy.queueing().fairness, Fairness::Fifo);
/// # Ok::<(), shmlimit::PolicyError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queueing {
    /// The order within a priority.
    pub fairness: Fairness,
    /// The share of the budget that background calls are guaranteed under a flood of higher priorities, in
    /// millionths.
    pub background_share: u32,
    /// Whether the limiter has priorities. Otherwise all calls count as background calls, and there is no
    /// reserve.
    pub priorities: bool,
}

/// The whole budget, as a share in millionths.
pub const WHOLE_SHARE: u32 = 1_000_000;

impl Queueing {
    /// Decodes the word of an encoded policy. Any word gives values in range.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// assert_eq!(shmlimit::policy::Queueing::from_word(1).fairness, shmlimit::Fairness::Fifo);
    /// ```
    #[inline]
    pub fn from_word(word: u64) -> Queueing {
        Queueing {
            fairness: if word & 1 == 1 { Fairness::Fifo } else { Fairness::Process },
            background_share: ((word >> 32) as u32).min(WHOLE_SHARE),
            priorities: word & 2 == 0,
        }
    }

    /// Encodes the settings as a word.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// assert_eq!(shmlimit::policy::Queueing::from_word(1).to_word(), 1);
    /// ```
    #[inline]
    pub fn to_word(self) -> u64 {
        u64::from(self.fairness == Fairness::Fifo)
            | u64::from(!self.priorities) << 1
            | u64::from(self.background_share) << 32
    }
}
