//! Removing a limiter.

use crate::boundary::{Failure, call};
use crate::code::{SHMLIMIT_IN_USE, SHMLIMIT_UNKNOWN_LIMITER};
use crate::input;
use crate::limiter::shmlimit_options;
use shmlimit::{Error, Limiter, Removal};
use std::ffi::c_char;
use std::io::ErrorKind;

/// How many programs a message names at most.
const NAMED: usize = 5;

/// Removes a limiter: its file and all its counts. If programs have it open, this one included, it fails with
/// SHMLIMIT_IN_USE; shmlimit_last_error() names them. If it does not exist, it fails with SHMLIMIT_UNKNOWN_LIMITER.
///
/// If `force` is not 0, it is removed even if programs use it, or if its file is damaged or has another layout
/// version. Calls of programs that have it open then fail with SHMLIMIT_UNKNOWN_LIMITER until it is created again.
/// `options` may be NULL; only its directory, test clock and SHMLIMIT_OPEN_ALLOW_NETWORK_FS matter.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_remove(
    name: *const c_char,
    options: *const shmlimit_options,
    force: i32,
) -> i32 {
    call(|| {
        let name = input::text("name", name)?;
        let mut builder = Limiter::builder(name);
        if let Some(options) = input::growing(options)? {
            builder = options.without_settings().apply(builder)?;
        }
        // Environment variables must not change a limiter that is being removed.
        match builder.ignore_environment().remove(force != 0) {
            Ok(Removal::Removed) => Ok(()),
            Ok(Removal::InUse(users)) => Err(Failure::new(SHMLIMIT_IN_USE, in_use(name, &users))),
            Ok(_) => Err(unknown(name)),
            // Not even the directory exists.
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Err(unknown(name)),
            Err(error) => Err(error.into()),
        }
    })
}

fn unknown(name: &str) -> Failure {
    Failure::new(SHMLIMIT_UNKNOWN_LIMITER, format!("cannot remove limiter {name:?}: it does not exist"))
}

fn in_use(name: &str, users: &[(u32, String)]) -> String {
    let program = |(pid, program): &(u32, String)| match pid {
        0 => "a program that still has its deleted file open".to_owned(),
        pid => format!("{program} ({pid})"),
    };
    let mut programs: Vec<String> = users.iter().take(NAMED).map(program).collect();
    if users.len() > NAMED {
        programs.push(format!("{} more", users.len() - NAMED));
    }
    let programs = programs.join(", ");
    format!(
        "limiter {name:?} is in use by {programs}, and was not removed; end them first, or remove it with force"
    )
}
