//! The environment variables of the tool that are no settings of a limiter.

/// The limiter, for the command of `run` and what it starts.
pub const LIMITER: &str = "SHMLIMIT_LIMITER";
/// Which attempt it is, from 1, if there may be several.
pub const ATTEMPT: &str = "SHMLIMIT_ATTEMPT";
/// Where `record` finds the `run` around it, as the platform names a pipe.
pub const RUN: &str = "SHMLIMIT_RUN";
/// The directory of the limiters.
pub const DIRECTORY: &str = "SHMLIMIT_DIR";
/// The name under which calls take turns as one.
pub const GROUP: &str = "SHMLIMIT_GROUP";

/// Name and meaning, for the manual and the doctor. A test of the doctor looks through the source for others.
pub const VARIABLES: [(&str, &str); 12] = [
    ("SHMLIMIT_DIR", "Directory of the limiters."),
    ("ANIVAULT_DIR", "The same, where SHMLIMIT_DIR is not set."),
    ("SHMLIMIT_GROUP", "Whoever waits under this name takes turns as one."),
    ("SHMLIMIT_LIMITER", "Set by run for its command: the limiter. record takes it where none is named."),
    ("SHMLIMIT_ATTEMPT", "Set by run for its command: which attempt it is, from 1."),
    ("SHMLIMIT_RUN", "Set by run for its command, so that record can tell it how the call ended."),
    ("SHMLIMIT_LOG", "File of the log, as with \\-\\-log."),
    ("SHMLIMIT_LOG_FORMAT", "logfmt or json."),
    ("SHMLIMIT_LOG_LEVEL", "error, warn, info or debug."),
    ("SHMLIMIT_LOG_SIZE", "When another file of the log is begun, such as 10MB."),
    ("SHMLIMIT_LOG_KEEP", "How many older files of the log are kept."),
    ("NO_COLOR", "No colours."),
];
