//! Opens a limiter: finds it or creates it, and applies the requested settings.

use super::Limiter;
use super::builder::Builder;
use super::events;
use super::reconcile::Requested;
use super::segment_chain::LimiterSegment;
use super::waiter::Group;
use crate::presets;
use shmlimit_kernel::Policy;
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
        let requested = self.requested()?;
        let make = match &requested {
            Requested::Nothing => presets::policy(&self.name).transpose()?,
            Requested::Policy(policy) => Some(**policy),
            Requested::Lacking(_) => None,
        };
        // Without a policy for a new limiter, the limiter and its directory must exist.
        let Some(make) = make else {
            return match (self.existing(), requested) {
                (Err(error), Requested::Lacking(lacking)) if is_absent(&error) => Err(lacking),
                (found, requested) => self.reconciled(found?, &requested),
            };
        };
        let (name, directory) = self.locate(true)?;
        let mut used_up = false;
        // An invalid environment variable must fail before anything is created. The changes that valid ones make are
        // applied and returned below.
        self.patched(&make)?;
        let segment = open_or_create(&directory, &name, self.bounds, Some(make), &mut used_up)?;
        let changes = self.reconcile(&name, &directory, &segment, &requested)?;
        let limiter = Limiter::new(name, directory, self.bounds, segment, self.turns_with(), true)?;
        Ok(limiter.after_changes(changes).noting_used_up(used_up))
    }

    /// Finds the existing limiter. Creates neither it nor its directory.
    fn existing(&self) -> Result<(LimiterName, Directory, Segment), Error> {
        let (name, directory) = self.locate(false)?;
        let segment = open_segment(&directory, &name, self.bounds)?;
        Ok((name, directory, segment))
    }

    /// The handle of an existing limiter, after [`reconcile`](Self::reconcile).
    fn reconciled(
        &self,
        (name, directory, segment): (LimiterName, Directory, Segment),
        requested: &Requested,
    ) -> Result<Limiter, Error> {
        let changes = self.reconcile(&name, &directory, &segment, requested)?;
        let limiter = Limiter::new(name, directory, self.bounds, segment, self.turns_with(), !self.observer)?;
        Ok(limiter.after_changes(changes))
    }

    /// Opens the limiter only if it exists. Creates neither the limiter nor its directory.
    ///
    /// Without a policy and settings, the limiter is used as it is. Otherwise they are compared with those of the
    /// limiter, and [`on_mismatch`](Self::on_mismatch) decides, as in [`open`](Self::open).
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// use shmlimit::{Error, Limiter};
    ///
    /// let builder = || Limiter::builder("api").directory(directory.path());
    /// assert!(matches!(builder().open_existing(), Err(Error::UnknownLimiter { .. })));
    /// builder().rate("100/min").create()?;
    /// assert!(matches!(builder().rate("60/min").open_existing(), Err(Error::ConfigMismatch { .. })));
    /// assert_eq!(builder().open_existing()?.policy()?.rules()[0].limit, 100);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open_existing(self) -> Result<Limiter, Error> {
        until_opened(|| self.open_existing_now())
    }

    fn open_existing_now(&self) -> Result<Limiter, Error> {
        let requested = self.requested()?;
        self.reconciled(self.existing()?, &requested)
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

/// Whether the error says that the limiter, or its directory, does not exist.
fn is_absent(error: &Error) -> bool {
    match error {
        Error::UnknownLimiter { .. } => true,
        Error::Io { source, .. } => source.kind() == ErrorKind::NotFound,
        _ => false,
    }
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
