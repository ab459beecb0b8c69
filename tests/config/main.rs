//! Limiter files, single settings, environment variables, presets and response headers.

mod changing;
mod environment;
mod headers;
mod hostile_headers;
mod hostile_limiter_files;
mod limiter_files;
mod opening;
mod presets;
mod retry_after;
mod settings;
mod written_files;
