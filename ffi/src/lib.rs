//! The C ABI of shmlimit.
