//! Opening and closing limiters, and what an operator does to them.

use crate::boundary::{Failure, call};
use crate::code::{SHMLIMIT_BAD_VALUE, SHMLIMIT_CLOSED, SHMLIMIT_NO_SUCH_STATE, SHMLIMIT_TOO_MANY};
use crate::handle_table::{InUse, Table};
use crate::input::{self, Growing, Slot};
use crate::test_clock::{shmlimit_test_clock, test_clock};
use shmlimit::config::ConfigSource;
use shmlimit::{Account, BreakerCommand, Builder, Limiter, UnknownName};
use std::ffi::{CString, c_char};

/// A limiter that is open. Not a pointer to anything you can read.
pub struct shmlimit_limiter {
    _private: [u8; 0],
}

const _: () = assert!(usize::BITS == 64, "a handle is a number of 64 bits in a pointer's clothes");

static LIMITERS: Table<Limiter> = Table::new(1);

/// The limiter behind a handle.
pub(crate) fn limiter(handle: *const shmlimit_limiter) -> Result<InUse<'static, Limiter>, Failure> {
    let closed = || Failure::new(SHMLIMIT_CLOSED, "the limiter is closed, or never was open");
    LIMITERS.get(handle.addr() as u64).ok_or_else(closed)
}

/// One setting: a key of docs/configuration.md and its value, or "rate" ("35/s"), "burst", "algorithm" of the one rule.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct shmlimit_setting {
    /// Such as "concurrency" or "breaker.p_throttle".
    pub key: *const c_char,
    /// As in a configuration file; quotes may be left out.
    pub value: *const c_char,
}

/// A flag of shmlimit_options: open only if it is there; make neither the limiter nor its directory.
pub const SHMLIMIT_OPEN_EXISTING: u32 = 1;
/// A flag of shmlimit_options: make it; an error if it is there already.
pub const SHMLIMIT_OPEN_CREATE: u32 = 2;
/// A flag of shmlimit_options: make it afresh in place of the one there may be.
pub const SHMLIMIT_OPEN_REPLACE: u32 = 4;
/// A flag of shmlimit_options: trust a network file system, on your own risk.
pub const SHMLIMIT_OPEN_ALLOW_NETWORK_FS: u32 = 8;
/// A flag of shmlimit_options: leave environment variables such as SHMLIMIT_RATE_BASE alone.
pub const SHMLIMIT_OPEN_IGNORE_ENVIRONMENT: u32 = 16;
/// A flag of shmlimit_options: share the directory with the group of users whose number is in `gid`. Windows has no such
/// numbers: see `shared_with`.
pub const SHMLIMIT_OPEN_SHARE: u32 = 32;

/// How to open a limiter. All zero but `size`: as it is, or made from the preset of its name.
///
/// Whoever names a preset, a configuration or settings wants exactly that: if the limiter is there and differs, it is not
/// opened (SHMLIMIT_CONFIG_MISMATCH).
#[derive(Clone, Copy)]
#[repr(C)]
pub struct shmlimit_options {
    /// sizeof(shmlimit_options).
    pub size: usize,
    /// Where limiters live; NULL = SHMLIMIT_DIR, ANIVAULT_DIR, or the usual place.
    pub directory: *const c_char,
    /// The preset to make it from, whatever its name; NULL = the one of its name.
    pub preset: *const c_char,
    /// The text of a configuration file (TOML); NULL = none.
    pub config: *const c_char,
    /// Settings that go on top of preset and configuration.
    pub settings: *const shmlimit_setting,
    /// How many settings there are.
    pub setting_count: usize,
    /// Processes of one group have their turns together; NULL = SHMLIMIT_GROUP, or each its own.
    pub group: *const c_char,
    /// SHMLIMIT_OPEN_EXISTING, _CREATE, _REPLACE, _ALLOW_NETWORK_FS, _IGNORE_ENVIRONMENT, _SHARE, added up; 0 = open it, or
    /// make it if it is not there.
    pub flags: u32,
    /// See SHMLIMIT_OPEN_SHARE.
    pub gid: u32,
    /// Share the directory with the members of this group of users, or on Windows also with a user (a name, or S-1-…);
    /// NULL = with nobody.
    pub shared_with: *const c_char,
    /// Take the time from this clock, for tests; NULL = from the machine. `directory` must be named too.
    pub test_clock: *const shmlimit_test_clock,
}

// SAFETY: a `usize` first; numbers and pointers: zeros are a value.
unsafe impl Growing for shmlimit_options {
    const NAME: &'static str = "shmlimit_options";
    const FIRST: usize = 64;
}

const MOST_SETTINGS: usize = 1024;
const HOW: u32 = SHMLIMIT_OPEN_EXISTING | SHMLIMIT_OPEN_CREATE | SHMLIMIT_OPEN_REPLACE;
const FLAGS: u32 =
    HOW | SHMLIMIT_OPEN_ALLOW_NETWORK_FS | SHMLIMIT_OPEN_IGNORE_ENVIRONMENT | SHMLIMIT_OPEN_SHARE;

impl shmlimit_options {
    fn apply(&self, mut builder: Builder) -> Result<Builder, Failure> {
        if self.flags & !FLAGS != 0 || (self.flags & HOW).count_ones() > 1 {
            let message =
                format!("shmlimit_options.flags is {:#x}: unknown, or in each other's way", self.flags);
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
        let what = "shmlimit_options.settings";
        for setting in input::list(what, self.settings, self.setting_count, MOST_SETTINGS)? {
            source = source.setting(
                input::text("shmlimit_options.settings[].key", setting.key)?,
                input::text("shmlimit_options.settings[].value", setting.value)?,
            );
        }
        builder = builder.config(source);
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

    /// With whom the directory is to be shared.
    fn account(&self) -> Result<Option<Account>, Failure> {
        let bad = |message: String| Failure::new(SHMLIMIT_BAD_VALUE, message);
        let by_number = self.flags & SHMLIMIT_OPEN_SHARE != 0;
        match input::text_or_none("shmlimit_options.shared_with", self.shared_with)? {
            Some(_) if by_number => {
                Err(bad("shared_with and SHMLIMIT_OPEN_SHARE: use one of them".to_owned()))
            }
            Some(name) => match Account::group(name) {
                Ok(Some(account)) => Ok(Some(account)),
                Ok(None) => Err(bad(format!("this machine knows no group {name:?}"))),
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

/// Opens a limiter, and makes it if need be. Open it once per process, and close it with shmlimit_close(); a handle may be
/// used by all threads, and by forked children.
///
/// `name` is what all programs that share it call it; `options` may be NULL; `*limiter` is NULL after a failure.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_open(
    name: *const c_char,
    options: *const shmlimit_options,
    limiter: *mut *mut shmlimit_limiter,
) -> i32 {
    call(|| {
        let place = Slot::new("limiter", limiter, std::ptr::null_mut())?;
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
        place.write(std::ptr::without_provenance_mut(number as usize));
        Ok(())
    })
}

/// Closes a limiter. Grants that are out stay valid until they are given back. NULL is fine, and does nothing; a second
/// time is SHMLIMIT_CLOSED.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_close(limiter: *mut shmlimit_limiter) -> i32 {
    call(|| match limiter.is_null() || LIMITERS.close(limiter.addr() as u64) {
        true => Ok(()),
        false => Err(Failure::new(SHMLIMIT_CLOSED, "the limiter is closed already, or never was open")),
    })
}

/// Puts the breaker into a state ("normal", "throttle", "sleep", "half_open", "cache_only", "offline", "online", "closed",
/// "open"), or opens the gate and forgets the pace that headers taught ("clear_gate"), for all who share the limiter at
/// once. "offline" refuses every call, also those that wait; to keep them waiting, see shmlimit_pause().
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_force(
    limiter: *const shmlimit_limiter,
    state: *const c_char,
) -> i32 {
    call(|| {
        let limiter = self::limiter(limiter)?;
        let state = input::text("state", state)?;
        let force = state.parse().map_err(|_: UnknownName| {
            let known: Vec<&str> = BreakerCommand::ALL.into_iter().map(BreakerCommand::as_str).collect();
            let message = format!("there is no state {state:?}; there are: {}", known.join(", "));
            Failure::new(SHMLIMIT_NO_SUCH_STATE, message)
        })?;
        limiter.force(force)?;
        Ok(())
    })
}

/// Changes one setting while the limiter is in use, for all who share it at once: a key and a value as in
/// docs/configuration.md. Rules may be named ("rules.rpm.limit"); "rate" ("100/m") is limit and period of the one rule that
/// counts requests.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_set(
    limiter: *const shmlimit_limiter,
    key: *const c_char,
    value: *const c_char,
) -> i32 {
    call(|| {
        let limiter = self::limiter(limiter)?;
        limiter.set(input::text("key", key)?, input::text("value", value)?)?;
        Ok(())
    })
}

/// Counts an answer that was found in a cache (`hit` is not 0), or was not: for people and dashboards, nothing is decided
/// by it.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_count_cache(limiter: *const shmlimit_limiter, hit: i32) -> i32 {
    call(|| Ok(self::limiter(limiter)?.count_cache(hit != 0)?))
}

/// The effective configuration, as the text of a configuration file. Free it with shmlimit_text_free(); NULL after a failure.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_config(
    limiter: *const shmlimit_limiter,
    text: *mut *mut c_char,
) -> i32 {
    call(|| {
        let place = Slot::new("text", text, std::ptr::null_mut())?;
        let policy = self::limiter(limiter)?.policy()?;
        place.write(CString::new(shmlimit::config::to_toml(&policy)).unwrap_or_default().into_raw());
        Ok(())
    })
}

/// What variables of the environment, such as SHMLIMIT_RATE_BASE, changed in the limiter when this handle opened it, for
/// every program that uses it: a line each, and an empty text if nothing. Free it with shmlimit_text_free(); NULL after a
/// failure.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_environment_changes(
    limiter: *const shmlimit_limiter,
    text: *mut *mut c_char,
) -> i32 {
    call(|| {
        let place = Slot::new("text", text, std::ptr::null_mut())?;
        let limiter = self::limiter(limiter)?;
        let lines: Vec<String> = limiter.environment_changes().iter().map(ToString::to_string).collect();
        place.write(CString::new(lines.join("\n")).unwrap_or_default().into_raw());
        Ok(())
    })
}

/// Frees a text that this library made. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_text_free(text: *mut c_char) {
    crate::guard::guard((), || {
        if !text.is_null() {
            // SAFETY: the caller's word that it came from here, and is freed once.
            drop(unsafe { CString::from_raw(text) });
        }
    });
}
