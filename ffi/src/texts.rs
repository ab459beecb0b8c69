//! Texts for C that live as long as what they belong to.

use std::ffi::{CString, c_char};

#[derive(Default)]
pub(crate) struct Texts(Vec<CString>);

impl Texts {
    /// Keeps a text. Its address stays until all of them go.
    pub(crate) fn add(&mut self, text: &str) -> *const c_char {
        let text = CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default();
        let at = text.as_ptr();
        self.0.push(text);
        at
    }
}
