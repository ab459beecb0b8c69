//! Opening and closing limiters.

use crate::boundary::{Failure, call};
use crate::code::{SHMLIMIT_BAD_VALUE, SHMLIMIT_CLOSED, SHMLIMIT_TOO_MANY};
use crate::handle_table::{InUse, Table};
use crate::input::{self, Growing, OutValue};
use crate::test_clock::{shmlimit_test_clock, test_clock};
use shmlimit::config::ConfigSource;
use shmlimit::{Account, Builder, Limiter, OnMismatch};
use std::ffi::c_char;

/// An open limiter. It is a checked number, not a pointer that can be read.
pub struct shmlimit_limiter {
    _private: [u8; 0],
}

const _: () = assert!(usize::BITS == 64, "a handle is a 64-bit number that has the type of a pointer");

static LIMITERS: Table<Limiter> = Table::new(1);

/// The limiter behind a handle.
pub(crate) fn limiter(handle: *const shmlimit_limiter) -> Result<InUse<'static, Limiter>, Failure> {
    let closed = || Failure::new(SHMLIMIT_CLOSED, "the limiter is closed, or was never opened");
    LIMITERS.get(handle.addr() as u64).ok_or_else(closed)
}

/// One setting: a key of docs/configuration.md and its value.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct shmlimit_setting {
    /// The key, such as "breaker.p_throttle".
    pub key: *const c_char,
    /// The value as in a configuration file, with or without quotes.
    pub value: *const c_char,
}

/// Open the limiter only if it exists. Create neither it nor its directory. If the options name settings, they are
/// compared as without this flag, and `on_mismatch` says what happens.
pub const SHMLIMIT_OPEN_EXISTING: u32 = 1;
/// Create the limiter. If it exists, fail with SHMLIMIT_ALREADY_EXISTS.
pub const SHMLIMIT_OPEN_CREATE: u32 = 2;
/// Create the limiter afresh. An existing one is replaced.
pub const SHMLIMIT_OPEN_REPLACE: u32 = 4;
/// Accept a directory on a network file system, at your own risk.
pub const SHMLIMIT_OPEN_ALLOW_NETWORK_FS: u32 = 8;
/// Ignore environment variables that change settings, such as SHMLIMIT_RATE_BASE.
pub const SHMLIMIT_OPEN_IGNORE_ENVIRONMENT: u32 = 16;
/// Share the directory with the group of users that has the number `gid`. Not on Windows: use `shared_with`.
pub const SHMLIMIT_OPEN_SHARE: u32 = 32;

/// Fail with SHMLIMIT_CONFIG_MISMATCH.
pub const SHMLIMIT_MISMATCH_ERROR: u32 = 0;
/// Use the limiter as it is. Its own settings apply.
pub const SHMLIMIT_MISMATCH_ADOPT: u32 = 1;
/// Change the settings of the limiter, for all programs that share it. Spent units stay spent.
pub const SHMLIMIT_MISMATCH_UPDATE: u32 = 2;

/// How to open a limiter. With `size` alone, an existing limiter is opened with its own settings. A limiter that does not
/// exist is created from the preset of its name.
///
/// If the options name settings and the limiter exists with others, `on_mismatch` says what happens.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct shmlimit_options {
    /// sizeof(shmlimit_options).
    pub size: usize,
    /// The directory of the limiters; NULL = the value of SHMLIMIT_DIR or ANIVAULT_DIR, or else the default.
    pub directory: *const c_char,
    /// The preset to create the limiter from; NULL = the one with the limiter's name.
    pub preset: *const c_char,
    /// The text of a configuration file (TOML), not its path; NULL = none.
    pub config: *const c_char,
    /// Settings that override those of the preset and the configuration.
    pub settings: *const shmlimit_setting,
    /// How many elements `settings` has. 0 only if `settings` is NULL.
    pub setting_count: usize,
    /// Processes of the same group take turns as one; NULL = the group of SHMLIMIT_GROUP, or else each process is its
    /// own group.
    pub group: *const c_char,
    /// Flags, joined with |: SHMLIMIT_OPEN_…; 0 = open the limiter, or create it if it does not exist.
    pub flags: u32,
    /// The number of a group of users, for SHMLIMIT_OPEN_SHARE.
    pub gid: u32,
    /// The group of users with which to share the directory, or on Windows also a user (a name, or S-1-…); NULL = none.
    pub shared_with: *const c_char,
    /// The clock of a test, see shmlimit_test_clock_new(). It needs a `directory`. NULL = the clock of the machine.
    pub test_clock: *const shmlimit_test_clock,
    /// The rate; NULL = none. A number and a time, such as "10/s", "40/10s" or "1000/day", with a unit
    /// "tokens=30k/min". Several are separated by commas: "100/min, tokens=30k/min". Without a burst, no period,
    /// wherever it begins, exceeds the rate (sliding_log). With a burst, it is a token bucket: a period may admit
    /// rate + burst.
    pub rate: *const c_char,
    /// The algorithm of the rate, such as "gcra"; NULL = sliding_log, or token_bucket with a burst or above 100,000 per period.
    pub algorithm: *const c_char,
    /// The most units that the rate allows at once; 0 = not set. One period may then admit rate + burst. Only with a
    /// single rate.
    pub burst: u64,
    /// The most calls in flight; 0 = not set.
    pub concurrency: u32,
    /// How to handle an existing limiter with other settings: SHMLIMIT_MISMATCH_….
    pub on_mismatch: u32,
}

// SAFETY: the struct is a `usize` followed by integers and pointers: zeros are a valid value.
unsafe impl Growing for shmlimit_options {
    const NAME: &'static str = "shmlimit_options";
    const FIRST: usize = 64;
}

const MOST_SETTINGS: usize = 1024;
const HOW: u32 = SHMLIMIT_OPEN_EXISTING | SHMLIMIT_OPEN_CREATE | SHMLIMIT_OPEN_REPLACE;
const FLAGS: u32 =
    HOW | SHMLIMIT_OPEN_ALLOW_NETWORK_FS | SHMLIMIT_OPEN_IGNORE_ENVIRONMENT | SHMLIMIT_OPEN_SHARE;

impl shmlimit_options {
    /// Only the fields that say where the limiter is.
    pub(crate) fn without_settings(&self) -> shmlimit_options {
        shmlimit_options {
            size: self.size,
            directory: self.directory,
            test_clock: self.test_clock,
            flags: self.flags & SHMLIMIT_OPEN_ALLOW_NETWORK_FS,
            preset: std::ptr::null(),
            config: std::ptr::null(),
            settings: std::ptr::null(),
            setting_count: 0,
            group: std::ptr::null(),
            gid: 0,
            shared_with: std::ptr::null(),
            rate: std::ptr::null(),
            algorithm: std::ptr::null(),
            burst: 0,
            concurrency: 0,
            on_mismatch: SHMLIMIT_MISMATCH_ERROR,
        }
    }

    pub(crate) fn apply(&self, mut builder: Builder) -> Result<Builder, Failure> {
        if self.flags & !FLAGS != 0 || (self.flags & HOW).count_ones() > 1 {
            let message = format!(
                "shmlimit_options.flags is {:#x}: it has unknown flags, or flags that contradict each other",
                self.flags
            );
            return Err(Failure::new(SHMLIMIT_BAD_VALUE, message));
        }
        if let Some(directory) = input::text_or_none("shmlimit_options.directory", self.directory)? {
            builder = builder.directory(directory);
        }
        if let Some(group) = input::text_or_none("shmlimit_options.group", self.group)? {
            builder = builder.group(group);
        }
        let mut source = ConfigSource::default();
        if let Some(preset) = input::text_or_none("shmlimit_options.preset", self.preset)? {
            source = source.preset(preset);
        }
        if let Some(config) = input::text_or_none("shmlimit_options.config", self.config)? {
            source = source.text(config);
        }
        let (what, count) = ("shmlimit_options.settings", "setting_count");
        for setting in input::list(what, count, self.settings, self.setting_count, MOST_SETTINGS)? {
            source = source.setting(
                input::text("shmlimit_options.settings[].key", setting.key)?,
                input::text("shmlimit_options.settings[].value", setting.value)?,
            );
        }
        if let Some(rate) = input::text_or_none("shmlimit_options.rate", self.rate)? {
            source = source.setting("rate", rate);
        }
        if self.burst > 0 {
            source = source.setting("burst", self.burst.to_string());
        }
        if self.concurrency > 0 {
            source = source.setting("concurrency", self.concurrency.to_string());
        }
        if let Some(algorithm) = input::text_or_none("shmlimit_options.algorithm", self.algorithm)? {
            source = source.setting("algorithm", algorithm);
        }
        builder = builder.config(source).on_mismatch(self.on_mismatch()?);
        if let Some(account) = self.account()? {
            builder = builder.shared_with(account);
        }
        if !self.test_clock.is_null() {
            builder = builder.test_clock(&*test_clock(self.test_clock)?);
        }
        if self.flags & SHMLIMIT_OPEN_ALLOW_NETWORK_FS != 0 {
            builder = builder.allow_network_fs();
        }
        if self.flags & SHMLIMIT_OPEN_IGNORE_ENVIRONMENT != 0 {
            builder = builder.ignore_environment();
        }
        Ok(builder)
    }

    fn on_mismatch(&self) -> Result<OnMismatch, Failure> {
        match self.on_mismatch {
            SHMLIMIT_MISMATCH_ERROR => Ok(OnMismatch::Error),
            SHMLIMIT_MISMATCH_ADOPT => Ok(OnMismatch::Adopt),
            SHMLIMIT_MISMATCH_UPDATE => Ok(OnMismatch::Update),
            other => {
                let message = format!("shmlimit_options.on_mismatch is {other}; use 0 to 2");
                Err(Failure::new(SHMLIMIT_BAD_VALUE, message))
            }
        }
    }

    /// The group or user to share the directory with.
    fn account(&self) -> Result<Option<Account>, Failure> {
        let bad = |message: String| Failure::new(SHMLIMIT_BAD_VALUE, message);
        let by_number = self.flags & SHMLIMIT_OPEN_SHARE != 0;
        match input::text_or_none("shmlimit_options.shared_with", self.shared_with)? {
            Some(_) if by_number => {
                Err(bad("shared_with and SHMLIMIT_OPEN_SHARE: use one of them".to_owned()))
            }
            Some(name) => match Account::group(name) {
                Ok(Some(account)) => Ok(Some(account)),
                Ok(None) => Err(bad(format!("there is no group {name:?} on this machine"))),
                Err(error) => Err(bad(format!("cannot look up the group {name:?}: {error}"))),
            },
            #[cfg(unix)]
            None if by_number => Ok(Some(Account::from(self.gid))),
            #[cfg(not(unix))]
            None if by_number => {
                Err(bad("groups have no numbers on this system: name it in shared_with".to_owned()))
            }
            None => Ok(None),
        }
    }
}

/// Opens a limiter, and creates it if it does not exist. Open it once per process. All threads may use the handle, and
/// forked children too. Close it with shmlimit_close().
///
/// All programs that open the same `name` in the same directory share the limiter. `options` may be NULL. `*limiter` is
/// NULL after a failure.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_open(
    name: *const c_char,
    options: *const shmlimit_options,
    limiter: *mut *mut shmlimit_limiter,
) -> i32 {
    call(|| {
        let out = OutValue::new("limiter", limiter, std::ptr::null_mut())?;
        let options = input::growing(options)?;
        let mut builder = Limiter::builder(input::text("name", name)?);
        let mut how = 0;
        if let Some(options) = options {
            how = options.flags & HOW;
            builder = options.apply(builder)?;
        }
        let opened = match how {
            SHMLIMIT_OPEN_EXISTING => builder.open_existing()?,
            SHMLIMIT_OPEN_CREATE => builder.create()?,
            SHMLIMIT_OPEN_REPLACE => builder.replace()?,
            _ => builder.open()?,
        };
        let too_many = |_| Failure::new(SHMLIMIT_TOO_MANY, "too many limiters are open in this process");
        let number = LIMITERS.insert(opened).map_err(too_many)?;
        out.write(std::ptr::without_provenance_mut(number as usize));
        Ok(())
    })
}

/// Closes a limiter. Its grants stay valid until they are released. NULL is allowed and does nothing. Closing a limiter
/// twice returns SHMLIMIT_CLOSED.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_close(limiter: *mut shmlimit_limiter) -> i32 {
    call(|| match limiter.is_null() || LIMITERS.close(limiter.addr() as u64) {
        true => Ok(()),
        false => Err(Failure::new(SHMLIMIT_CLOSED, "the limiter is already closed, or was never opened")),
    })
}
