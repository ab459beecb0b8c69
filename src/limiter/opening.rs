//! Opens a limiter: finds it or creates it, and applies the requested settings.

use super::Limiter;
use super::builder::{Builder, OnMismatch};
use super::events;
use super::segment_chain::LimiterSegment;
use super::waiter::Group;
use crate::environment::{Change, Patch};
use crate::{ConfigError, describe, presets};
use shmlimit_kernel::Policy;
use shmlimit_kernel::policy::BreakerKind;
use shmlimit_segment::Error;
use shmlimit_segment::directory::{Allowances, Directory, PreviousLimiter};
use shmlimit_segment::file::create::{self, Creation};
use shmlimit_segment::file::{self, InitialState};
use shmlimit_segment::paths::{self, LimiterName};
use shmlimit_segment::{AttachOptions, Role, Segment};
use std::io::ErrorKind;

/// How often opening is tried while other processes keep replacing the limiter.
const TRIES: usize = 64;
/// After this number of tries, the limiter is opened under the creation lock, so that no process can replace it meanwhile.
const UNLOCKED_TRIES: usize = 8;

impl Builder {
    /// Opens the limiter, and creates it if it does not exist. [`on_mismatch`](Self::on_mismatch) decides what
    /// happens if it exists with other settings.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("10/s").open()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(self) -> Result<Limiter, Error> {
        until_opened(|| self.open_now())
    }

    fn open_now(&self) -> Result<Limiter, Error> {
        let wanted = match self.wanted() {
            // Single settings go on top of those of an existing limiter. They may not be enough for a new one.
            Err(lacking) if self.on_mismatch != OnMismatch::Error && is_not_one_rule(&lacking) => {
                return self.open_lacking(lacking);
            }
            wanted => wanted?,
        };
        let make = match wanted {
            Some(policy) => Some(policy),
            None => presets::policy(&self.name).transpose()?,
        };
        // Without a policy for a new limiter, the limiter and its directory must exist.
        let Some(make) = make else { return self.open_existing_now() };
        let (name, directory) = self.locate(true)?;
        let mut used_up = false;
        // An invalid environment variable must fail before anything is created. The changes that valid ones make are
        // applied and returned below.
        self.patched(&make)?;
        let segment = open_or_create(&directory, &name, self.bounds, Some(make), &mut used_up)?;
        let changes = match wanted {
            Some(_) if self.on_mismatch == OnMismatch::Update => self.update(&name, &directory, &segment)?,
            Some(wanted) if self.on_mismatch == OnMismatch::Error => {
                self.check(&name, &directory, &segment, &wanted)?;
                self.patch(&segment)?
            }
            _ => self.patch(&segment)?,
        };
        let limiter = Limiter::new(name, directory, self.bounds, segment, self.turns_with(), true)?;
        Ok(limiter.after_changes(changes).noting_used_up(used_up))
    }

    /// Opens an existing limiter. If it does not exist, the error is `lacking`, which says what a new one needs.
    fn open_lacking(&self, lacking: Error) -> Result<Limiter, Error> {
        let opened = self.locate(false).and_then(|(name, directory)| {
            let segment = open_segment(&directory, &name, self.bounds)?;
            Ok((name, directory, segment))
        });
        let (name, directory, segment) = match opened {
            Err(Error::UnknownLimiter { .. }) => return Err(lacking),
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => return Err(lacking),
            opened => opened?,
        };
        let changes = match self.on_mismatch {
            OnMismatch::Update => self.update(&name, &directory, &segment)?,
            _ => self.patch(&segment)?,
        };
        let limiter = Limiter::new(name, directory, self.bounds, segment, self.turns_with(), true)?;
        Ok(limiter.after_changes(changes))
    }

    /// Fails if the limiter has another policy.
    fn check(
        &self,
        name: &LimiterName,
        directory: &Directory,
        segment: &Segment,
        wanted: &Policy,
    ) -> Result<(), Error> {
        let stored = segment.policy()?;
        let (there, wanted) = (self.patched(&stored)?, self.patched(wanted)?);
        if there == wanted {
            return Ok(());
        }
        let differences = describe::differences(&there, &wanted);
        let (name, directory) = (name.as_str().to_owned(), directory.path().to_owned());
        // Single settings change only the keys that they name. So an update with them may be impossible although the
        // whole policy would fit.
        let updatable = match self.updated(&stored) {
            Ok(updated) => segment.takes(&self.patched(&updated)?)?,
            Err(_) => false,
        };
        Err(Error::ConfigMismatch { name, directory, differences, updatable })
    }

    /// Changes a limiter in use to the requested settings, and keeps the counts of its rules (R144). Returns what
    /// the environment changed in it.
    fn update(
        &self,
        name: &LimiterName,
        directory: &Directory,
        segment: &Segment,
    ) -> Result<Vec<Change>, Error> {
        let changed = segment.change_policy(|there| {
            let updated = self.updated(there).map_err(|error| does_not_fit(name, directory, error))?;
            self.patched(&updated)
        })?;
        events::changed(name.as_str(), &changed);
        // Variables change only limiters with the five-state breaker. For other limiters an invalid variable is
        // ignored.
        if !self.environment || changed.policy.breaker().kind() != BreakerKind::Fsm {
            return Ok(Vec::new());
        }
        Ok(Patch::read()?.changes(&changed.before, &changed.policy))
    }

    /// Opens the limiter only if it exists. Creates neither the limiter nor its directory.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// use shmlimit::{Error, Limiter};
    ///
    /// let builder = Limiter::builder("api").directory(directory.path());
    /// assert!(matches!(builder.open_existing(), Err(Error::UnknownLimiter { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open_existing(self) -> Result<Limiter, Error> {
        until_opened(|| self.open_existing_now())
    }

    fn open_existing_now(&self) -> Result<Limiter, Error> {
        let (name, directory) = self.locate(false)?;
        let segment = open_segment(&directory, &name, self.bounds)?;
        let changes = self.patch(&segment)?;
        let limiter = Limiter::new(name, directory, self.bounds, segment, self.turns_with(), !self.observer)?;
        Ok(limiter.after_changes(changes))
    }

    /// Creates the limiter. Fails if it exists already.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// use shmlimit::{Error, Limiter};
    ///
    /// let builder = Limiter::builder("api").directory(directory.path()).rate("10/s");
    /// builder.clone().create()?;
    /// assert!(matches!(builder.create(), Err(Error::AlreadyExists { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn create(self) -> Result<Limiter, Error> {
        let (name, directory) = self.locate(true)?;
        let policy = self.made_from(&name, &directory)?;
        let mut used_up = false;
        if !create::create_noting(&directory, &name, policy, self.bounds.place, &mut used_up)? {
            let name = name.as_str().to_owned();
            return Err(Error::AlreadyExists { name, directory: directory.path().to_owned() });
        }
        let segment = open_segment(&directory, &name, self.bounds)?;
        let limiter = Limiter::new(name, directory, self.bounds, segment, self.turns_with(), true)?;
        Ok(limiter.noting_used_up(used_up))
    }

    /// Creates a new limiter in place of the existing one, if any. Its users switch to the new one within a second.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// let faster = shmlimit::Limiter::builder("api").directory(directory.path()).rate("200/min").replace()?;
    /// assert_eq!(faster.policy()?.rules()[0].limit, 200);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn replace(self) -> Result<Limiter, Error> {
        let (name, directory) = self.locate(true)?;
        let seed = InitialState::fresh(self.made_from(&name, &directory)?);
        let mut old = None;
        let replaced = create::replace(&directory, &name, &seed, || {
            match open_once(&directory, &name, self.bounds.as_operator()) {
                Ok(Some(there)) => old.insert(there).retire(),
                // A segment that cannot be opened has no users to notify. It is replaced anyway, unless the file is
                // not a segment.
                Ok(None)
                | Err(
                    Error::Foreign { segment: true, .. } | Error::Damaged { .. } | Error::Replaced { .. },
                ) => Ok(()),
                Err(error) => Err(error),
            }
        });
        // Wake the programs only after the replacement. If they woke before it, they would find no successor, and all
        // of them would wait for the creation lock.
        if let Some(old) = old {
            old.wake_all(old.sleepers());
        }
        replaced?;
        let segment = open_segment(&directory, &name, self.bounds)?;
        Limiter::new(name, directory, self.bounds, segment, self.turns_with(), true)
    }

    /// The policy for a new limiter.
    fn made_from(&self, name: &LimiterName, directory: &Directory) -> Result<Policy, Error> {
        let unknown = || Error::UnknownLimiter {
            name: name.as_str().to_owned(),
            directory: directory.path().to_owned(),
        };
        let policy = match self.wanted()? {
            Some(policy) => policy,
            None => presets::policy(name.as_str()).ok_or_else(unknown)??,
        };
        self.patched(&policy)
    }

    /// The policy after the environment is applied.
    fn patched(&self, policy: &Policy) -> Result<Policy, Error> {
        if self.environment { Ok(Patch::patched(policy)?) } else { Ok(*policy) }
    }

    /// Applies the environment as an operator's change (R110) for all processes, logs it, and returns it.
    fn patch(&self, segment: &Segment) -> Result<Vec<Change>, Error> {
        let there = segment.policy()?;
        if self.patched(&there)? == there {
            return Ok(Vec::new());
        }
        let changed = segment.change_policy(|there| self.patched(there))?;
        events::patched(&self.name, &changed);
        Ok(Patch::read()?.changes(&changed.before, &changed.policy))
    }

    pub(super) fn locate(&self, make: bool) -> Result<(LimiterName, Directory), Error> {
        let name = LimiterName::new(&self.name)?;
        self.check_test_directory()?;
        let candidates = paths::candidates(self.directory.as_deref());
        let mut directory = Directory::find(&candidates, Allowances { make, network: self.network })?;
        directory.clock = self.clock.clone();
        if let Some(note) = &directory.note {
            events::passed_over(&self.name, note);
        }
        if let Some(group) = self.shared_with {
            directory.share_with(group)?;
        }
        Ok((name, directory))
    }

    fn turns_with(&self) -> Option<Group> {
        self.group.as_deref().map(Group::named).or_else(Group::from_environment)
    }
}

/// Whether the error is about settings for one rule in a configuration without a rule.
fn is_not_one_rule(error: &Error) -> bool {
    match error {
        Error::Config(why) => matches!(why.downcast_ref(), Some(ConfigError::NotOneRule { .. })),
        _ => false,
    }
}

/// Settings that only a new limiter can have, as an [`Error::DoesNotFit`].
fn does_not_fit(name: &LimiterName, directory: &Directory, error: Error) -> Error {
    let problem = match &error {
        Error::Config(why) => match why.downcast_ref() {
            Some(ConfigError::NotChangeable { key }) => {
                format!("{key} cannot be changed in a limiter that is in use")
            }
            Some(ConfigError::Absent { key, problem }) => format!("{key}: {problem}"),
            Some(ConfigError::NoBurst { key, rule, algorithm, .. }) => {
                format!("{key}: rule {rule} is a {algorithm}, which has no burst")
            }
            _ => return error,
        },
        _ => return error,
    };
    let (name, directory) = (name.as_str().to_owned(), directory.path().to_owned());
    Error::DoesNotFit { name, directory, problem }
}

/// Opens the limiter again if it was replaced between opening and first use.
fn until_opened(open: impl Fn() -> Result<Limiter, Error>) -> Result<Limiter, Error> {
    for _ in 1..UNLOCKED_TRIES {
        match open() {
            Err(Error::Replaced { .. }) => {}
            opened => return opened,
        }
    }
    open()
}

pub(super) fn open_once(
    directory: &Directory,
    name: &LimiterName,
    bounds: AttachOptions,
) -> Result<Option<Segment>, Error> {
    let Some(verified) = file::open(directory, name)? else { return Ok(None) };
    if bounds.role == Role::Observer && verified.needs_repair()? {
        // Attaching repairs the segment. If it cannot attach, the observer shows the segment as it is.
        match Segment::attach(verified, bounds.as_operator()) {
            Err(Error::SlotsFull { .. }) => {}
            repaired => drop(repaired?),
        }
        let verified = file::open(directory, name)?;
        return verified.map(|verified| Segment::attach(verified, bounds)).transpose();
    }
    Segment::attach(verified, bounds).map(Some)
}

/// Opens the existing segment.
fn open_segment(directory: &Directory, name: &LimiterName, bounds: AttachOptions) -> Result<Segment, Error> {
    open_or_create(directory, name, bounds, None, &mut false)
}

/// Opens the existing segment, or creates one with the policy `make`, until one of the two succeeds. Notes whether it
/// created the segment in a used-up state.
fn open_or_create(
    directory: &Directory,
    name: &LimiterName,
    bounds: AttachOptions,
    make: Option<Policy>,
    used_up: &mut bool,
) -> Result<Segment, Error> {
    for attempt in 0..TRIES {
        let opened = match attempt {
            0..UNLOCKED_TRIES => open_once(directory, name, bounds),
            _ => directory.with_creation_lock(|_| open_once(directory, name, bounds)),
        };
        match opened {
            Ok(Some(segment)) => return Ok(segment),
            Ok(None) => match make {
                Some(policy) => drop(create::create_noting(directory, name, policy, bounds.place, used_up)?),
                None if file::is_there(directory, name)? => {}
                None => {
                    let (name, directory) = (name.as_str().to_owned(), directory.path().to_owned());
                    return Err(Error::UnknownLimiter { name, directory });
                }
            },
            Err(Error::Replaced { .. }) => create::clear_retired(directory, name, make)?,
            Err(error) => return Err(error),
        }
    }
    Err(Error::Replaced { path: directory.path().join(name.file_name()) })
}

/// The segment that replaces one that was deleted, replaced or retired. If there is none, a new one is created with
/// the same policy, and also with the counts of the rules if the old one was merely deleted. `None` if the handle
/// must not create one, or if the limiter was removed on purpose.
pub(super) fn successor(
    directory: &Directory,
    name: &LimiterName,
    bounds: AttachOptions,
    old: &Segment,
    make: bool,
) -> Result<LimiterSegment, Error> {
    // Do not read the old segment unless there is no other. It may be damaged, and that may be why it was replaced.
    let mut there = open_segment(directory, name, bounds);
    for _ in 0..TRIES {
        if !make || old.is_removed() || !matches!(there, Err(Error::UnknownLimiter { .. })) {
            break;
        }
        let created = create::create_with(directory, name, |before, generation| match before {
            // The latest limiter of this name was removed on purpose. It was created after `old`, so its removal
            // counts.
            PreviousLimiter::Removed => Ok(None),
            _ => old.succession(generation).map(Some),
        })?;
        if created == Creation::Unwanted {
            break;
        }
        there = open_segment(directory, name, bounds);
    }
    let segment = there?;
    // Other processes that still use the old segment then switch at once.
    old.hand_over();
    LimiterSegment::new(name.clone(), segment)
}
