//! The environment variables that are no settings of a limiter, for the manual and for the doctor.

/// Name and meaning. A test of the doctor looks through the source for others.
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
