//! Opening a limiter: where it lives, and what it is made of if it must be made.

use super::Limiter;
use super::events;
use super::segment_chain::LimiterSegment;
use super::waiter::Group;
use crate::describe;
use crate::environment::{Change, Patch};
use crate::presets;
use shmlimit_kernel::Policy;
use shmlimit_segment::Error;
use shmlimit_segment::directory::{Allowances, Directory, PreviousLimiter};
use shmlimit_segment::file::create::{self, Creation};
use shmlimit_segment::file::{self, InitialState};
use shmlimit_segment::paths::{self, LimiterName};
use shmlimit_segment::sys::Account;
use shmlimit_segment::{AttachOptions, ClockSource, Role, Segment};
use std::path::PathBuf;

/// How often a limiter that keeps changing under our hands is opened again before giving up.
const TRIES: usize = 64;
/// After so many tries it is opened under the creation lock, where nothing replaces it meanwhile.
const UNLOCKED_TRIES: usize = 8;

/// How to open a limiter. See [`Limiter::builder`].
#[derive(Debug, Clone)]
pub struct Builder {
    name: String,
    pub(super) directory: Option<PathBuf>,
    policy: Option<Policy>,
    #[cfg(feature = "config")]
    source: crate::config::ConfigSource,
    shared_with: Option<Account>,
    group: Option<String>,
    network: bool,
    environment: bool,
    observer: bool,
    pub(super) clock: ClockSource,
    pub(super) bounds: AttachOptions,
}

impl Builder {
    pub(super) fn new(name: &str) -> Builder {
        let bounds = AttachOptions::default();
        Builder {
            name: name.to_owned(),
            directory: None,
            policy: None,
            #[cfg(feature = "config")]
            source: Default::default(),
            shared_with: None,
            group: None,
            network: false,
            environment: true,
            observer: false,
            clock: ClockSource::default(),
            bounds,
        }
    }

    /// Where limiters live. Default: `SHMLIMIT_DIR`, `ANIVAULT_DIR`, `/var/run/shmlimit` if it can be used, else
    /// `/var/tmp/shmlimit-UID`, else (where `/var/tmp` is on overlayfs, as in most containers) `/dev/shm/shmlimit-UID`.
    #[must_use]
    pub fn directory(mut self, path: impl Into<PathBuf>) -> Builder {
        self.directory = Some(path.into());
        self
    }

    /// The limiter must have exactly this policy: it is made so, or refused if it is there and differs (R144).
    /// Without a policy the limiter is used as it is, or made from the preset of its name.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Builder {
        self.policy = Some(policy);
        self
    }

    /// [`policy`](Self::policy) by a preset, the text of a configuration file, or single settings. An empty choice is
    /// none. Of a policy and a choice, the policy counts.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// use shmlimit::{Limiter, config::ConfigSource};
    ///
    /// let choice = ConfigSource::default().setting("rate", "10/s").setting("concurrency", "2");
    /// let limiter = Limiter::builder("api").directory(directory.path()).config(choice).open()?;
    /// assert_eq!(limiter.policy()?.concurrency(), Some(2));
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "config")]
    #[must_use]
    pub fn config(mut self, source: crate::config::ConfigSource) -> Builder {
        self.source = source;
        self
    }

    /// Shares the directory with the members of a group of users: [`Account::group`] finds it by name.
    #[must_use]
    pub fn shared_with(mut self, group: impl Into<Account>) -> Builder {
        self.shared_with = Some(group.into());
        self
    }

    /// Processes of one group have their turns in the queue together, as if they were one (R143). Default:
    /// `SHMLIMIT_GROUP`; else each process has its own.
    #[must_use]
    pub fn group(mut self, name: impl Into<String>) -> Builder {
        self.group = Some(name.into());
        self
    }

    /// What `status` calls this participant, for people: at most 15 bytes are kept. Default: the program's own name. For
    /// programs that call on behalf of another, as `shmlimit run` does.
    #[must_use]
    pub fn program(mut self, name: &str) -> Builder {
        self.bounds.program = [0; 16];
        let length = (0..=name.len().min(15)).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
        self.bounds.program[..length].copy_from_slice(&name.as_bytes()[..length]);
        self
    }

    /// Trusts a network file system, on the caller's own risk (R135).
    #[must_use]
    pub fn allow_network_fs(mut self) -> Builder {
        self.network = true;
        self
    }

    /// Leaves variables such as `SHMLIMIT_RATE_BASE` alone, which otherwise change the settings of a limiter with a
    /// five-state breaker when it is opened (R109; [`crate::environment`]).
    #[must_use]
    pub fn ignore_environment(mut self) -> Builder {
        self.environment = false;
        self
    }

    /// Opens the limiter to be looked at, not to be used: it takes no slot, variables of the environment are left alone,
    /// and when it is deleted this handle says so ([`Error::UnknownLimiter`]), where one that is used would make it again.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # shmlimit::Limiter::builder("tmdb").directory(directory.path()).open()?;
    /// let limiter = shmlimit::Limiter::builder("tmdb").directory(directory.path()).observer().open_existing()?;
    /// println!("{} calls in flight", limiter.snapshot()?.in_flight);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn observer(mut self) -> Builder {
        self.bounds.role = Role::Observer;
        Builder { observer: true, ..self.ignore_environment() }
    }

    /// Opens the limiter to administer it: to change, force, record, pause or remove. Eight of the 512 slots are kept for
    /// such handles, so that programs that use up all others cannot lock the operator out. Close it when that is done.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # shmlimit::Limiter::builder("tmdb").directory(directory.path()).open()?;
    /// let limiter = shmlimit::Limiter::builder("tmdb").directory(directory.path()).operator().open_existing()?;
    /// limiter.force(shmlimit::BreakerCommand::ClearGate)?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn operator(mut self) -> Builder {
        self.bounds.role = Role::Operator;
        self
    }

    /// Other bounds than the usual, for tests that cannot wait a second.
    #[doc(hidden)]
    #[must_use]
    pub fn bounds(mut self, bounds: AttachOptions) -> Builder {
        self.bounds = AttachOptions { role: self.bounds.role, ..bounds };
        self
    }

    /// Opens the limiter, and makes it if it is not there.
    pub fn open(self) -> Result<Limiter, Error> {
        until_settled(|| self.open_now())
    }

    fn open_now(&self) -> Result<Limiter, Error> {
        let wanted = self.wanted()?;
        let make = match wanted {
            Some(policy) => Some(policy),
            None => presets::policy(&self.name).transpose()?,
        };
        // What cannot be made must be there, and its directory with it.
        let Some(make) = make else { return self.open_existing_now() };
        let (name, directory) = self.place(true)?;
        let mut used_up = false;
        // Variables that do not fit are an error before anything is made. What they change is told as a change, below.
        self.patched(&make)?;
        let segment = settle_noting(&directory, &name, self.bounds, Some(make), &mut used_up)?;
        if let Some(wanted) = wanted {
            let (there, wanted) = (self.patched(&segment.policy()?)?, self.patched(&wanted)?);
            if there != wanted {
                let differences = describe::differences(&there, &wanted);
                let (name, directory) = (name.as_str().to_owned(), directory.path().to_owned());
                let updatable = segment.takes(&wanted)?;
                return Err(Error::ConfigMismatch { name, directory, differences, updatable });
            }
        }
        let changes = self.patch(&segment)?;
        let limiter = Limiter::new(name, directory, self.bounds, segment, self.turns_with(), true)?;
        Ok(limiter.after_changes(changes).noting_used_up(used_up))
    }

    /// Opens the limiter only if it is there; makes neither it nor its directory.
    pub fn open_existing(self) -> Result<Limiter, Error> {
        until_settled(|| self.open_existing_now())
    }

    fn open_existing_now(&self) -> Result<Limiter, Error> {
        let (name, directory) = self.place(false)?;
        let segment = settle(&directory, &name, self.bounds, None)?;
        let changes = self.patch(&segment)?;
        let limiter = Limiter::new(name, directory, self.bounds, segment, self.turns_with(), !self.observer)?;
        Ok(limiter.after_changes(changes))
    }

    /// Makes the limiter; an error if it is there already.
    pub fn create(self) -> Result<Limiter, Error> {
        let (name, directory) = self.place(true)?;
        let policy = self.made_from(&name, &directory)?;
        let mut used_up = false;
        if !create::create_noting(&directory, &name, policy, self.bounds.place, &mut used_up)? {
            let name = name.as_str().to_owned();
            return Err(Error::AlreadyExists { name, directory: directory.path().to_owned() });
        }
        let segment = settle(&directory, &name, self.bounds, None)?;
        let limiter = Limiter::new(name, directory, self.bounds, segment, self.turns_with(), true)?;
        Ok(limiter.noting_used_up(used_up))
    }

    /// Opens the limiter and gives it the policy that was named, for all who share it: a hot change that keeps what its
    /// rules have seen (R144). Makes it if it is not there. [`Error::DoesNotFit`] if only a new one can have that policy.
    pub fn update(self) -> Result<Limiter, Error> {
        let (name, directory) = self.place(true)?;
        let policy = self.made_from(&name, &directory)?;
        let segment = settle(&directory, &name, self.bounds, Some(policy))?;
        let changed = segment.change_policy(|_| Ok(policy))?;
        events::changed(name.as_str(), &changed);
        Limiter::new(name, directory, self.bounds, segment, self.turns_with(), true)
    }

    /// Makes the limiter afresh in place of the one there may be; its users go over to the new one within a second.
    pub fn replace(self) -> Result<Limiter, Error> {
        let (name, directory) = self.place(true)?;
        let seed = InitialState::fresh(self.made_from(&name, &directory)?);
        let mut old = None;
        let replaced = create::replace(&directory, &name, &seed, || {
            match open_once(&directory, &name, self.bounds.as_operator()) {
                Ok(Some(there)) => old.insert(there).retire(),
                // What cannot be opened has no users to tell; it is replaced all the same, unless it is no segment at all.
                Ok(None)
                | Err(
                    Error::Foreign { segment: true, .. } | Error::Damaged { .. } | Error::Unsettled { .. },
                ) => Ok(()),
                Err(error) => Err(error),
            }
        });
        // Only now: before, they would find no successor, and all wait for the creation lock.
        if let Some(old) = old {
            old.wake_all(old.sleepers());
        }
        replaced?;
        let segment = settle(&directory, &name, self.bounds, None)?;
        Limiter::new(name, directory, self.bounds, segment, self.turns_with(), true)
    }

    /// What the limiter is to be made from.
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

    /// The policy that the limiter must have, if one was named.
    fn wanted(&self) -> Result<Option<Policy>, Error> {
        #[cfg(feature = "config")]
        if self.policy.is_none() && !self.source.is_empty() {
            return Ok(Some(self.source.policy(&self.name)?));
        }
        Ok(self.policy)
    }

    /// What the environment makes of a policy.
    fn patched(&self, policy: &Policy) -> Result<Policy, Error> {
        if self.environment { Ok(Patch::patched(policy)?) } else { Ok(*policy) }
    }

    /// The operator's hot patch (R110): what the environment says is applied for all, logged by the process that did
    /// it, and returned.
    fn patch(&self, segment: &Segment) -> Result<Vec<Change>, Error> {
        let there = segment.policy()?;
        if self.patched(&there)? == there {
            return Ok(Vec::new());
        }
        let changed = segment.change_policy(|there| self.patched(there))?;
        events::patched(&self.name, &changed);
        Ok(Patch::read()?.changes(&changed.before, &changed.policy))
    }

    pub(super) fn place(&self, make: bool) -> Result<(LimiterName, Directory), Error> {
        let name = LimiterName::new(&self.name)?;
        self.check_test_directory()?;
        let places = paths::places(self.directory.as_deref());
        let mut directory = Directory::find(&places, Allowances { make, network: self.network })?;
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

/// Opens again what was replaced between being opened and being used for the first time.
fn until_settled(open: impl Fn() -> Result<Limiter, Error>) -> Result<Limiter, Error> {
    for _ in 1..UNLOCKED_TRIES {
        match open() {
            Err(Error::Unsettled { .. }) => {}
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
        // Attaching repairs. Where that is not possible, what is there is shown.
        match Segment::attach(verified, bounds.as_operator()) {
            Err(Error::SlotsFull { .. }) => {}
            repaired => drop(repaired?),
        }
        let verified = file::open(directory, name)?;
        return verified.map(|verified| Segment::attach(verified, bounds)).transpose();
    }
    Segment::attach(verified, bounds).map(Some)
}

/// Opens the segment that is there, or makes one with that policy, until one of the two has worked.
fn settle(
    directory: &Directory,
    name: &LimiterName,
    bounds: AttachOptions,
    make: Option<Policy>,
) -> Result<Segment, Error> {
    settle_noting(directory, name, bounds, make, &mut false)
}

/// [`settle`], which notes if it made one with nothing to give.
fn settle_noting(
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
            Err(Error::Unsettled { .. }) => create::clear_retired(directory, name, make)?,
            Err(error) => return Err(error),
        }
    }
    Err(Error::Unsettled { path: directory.path().join(name.file_name()) })
}

/// The segment that takes the place of one that was deleted, replaced or retired. Where there is none, it goes on
/// with the same policy; if the old one was merely deleted, also with what its rules had seen. Unless it must not be made;
/// and one that was removed on purpose does not come back by itself.
pub(super) fn successor(
    directory: &Directory,
    name: &LimiterName,
    bounds: AttachOptions,
    old: &Segment,
    make: bool,
) -> Result<LimiterSegment, Error> {
    // The old one is asked only if there is no other: it may be damaged, and replaced for that very reason.
    let mut there = settle(directory, name, bounds, None);
    for _ in 0..TRIES {
        if !make || old.is_removed() || !matches!(there, Err(Error::UnknownLimiter { .. })) {
            break;
        }
        let created = create::create_with(directory, name, |before, generation| match before {
            // A later segment than the old one was.
            PreviousLimiter::Removed => Ok(None),
            _ => old.succession(generation).map(Some),
        })?;
        if created == Creation::Unwanted {
            break;
        }
        there = settle(directory, name, bounds, None);
    }
    let segment = there?;
    // So that the others who still use it go over at once.
    old.hand_over();
    LimiterSegment::new(name.clone(), segment)
}
