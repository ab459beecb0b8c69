//! Short names without heap allocation.

use std::fmt;

/// Number of words of a [`Name`].
pub const NAME_WORDS: usize = 4;
/// Maximum length of a name, in bytes.
pub const NAME_LEN: usize = NAME_WORDS * 8;

/// A name of 1 to 32 bytes from `A-Z a-z 0-9 . _ : -`, stored in place and padded with zeros.
///
/// ```
/// # use shmlimit_kernel as shmlimit;
/// use shmlimit::policy::Name;
///
/// assert_eq!(Name::new("tmdb").unwrap().to_string(), "tmdb");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Name([u8; NAME_LEN]);

impl Name {
    /// Creates a name. `None` if `text` is empty, too long or has other characters.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::policy::Name;
    ///
    /// assert!(Name::new("per-minute").is_some());
    /// assert!(Name::new("per minute").is_none());
    /// ```
    pub const fn new(text: &str) -> Option<Name> {
        let text = text.as_bytes();
        if text.is_empty() || text.len() > NAME_LEN {
            return None;
        }
        let mut bytes = [0; NAME_LEN];
        let mut i = 0;
        while i < text.len() {
            if !allowed(text[i]) {
                return None;
            }
            bytes[i] = text[i];
            i += 1;
        }
        Some(Name(bytes))
    }

    /// The name as text.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// assert_eq!(shmlimit::policy::Name::new("tmdb").unwrap().as_str(), "tmdb");
    /// ```
    pub fn as_str(&self) -> &str {
        let len = self.0.iter().position(|byte| *byte == 0).unwrap_or(NAME_LEN);
        std::str::from_utf8(&self.0[..len]).unwrap_or_default()
    }

    /// Whether this is the name `text`.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// assert!(shmlimit::policy::Name::new("tmdb").unwrap().is("tmdb"));
    /// ```
    #[inline]
    pub fn is(&self, text: &str) -> bool {
        let text = text.as_bytes();
        // A name is followed by a zero, and does not contain one. So a name of another length differs in one byte, and
        // the whole is not compared.
        self.0.get(text.len()).is_none_or(|byte| *byte == 0)
            && text.last().is_some_and(|byte| *byte != 0)
            && self.0.get(..text.len()).is_some_and(|name| name == text)
    }

    /// The words to store: the bytes in order, on machines of either byte order.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// assert_eq!(shmlimit::policy::Name::new("a").unwrap().to_words(), [0x61, 0, 0, 0]);
    /// ```
    pub fn to_words(self) -> [u64; NAME_WORDS] {
        std::array::from_fn(|word| {
            (0..8).fold(0, |sum, byte| sum | u64::from(self.0[word * 8 + byte]) << (8 * byte))
        })
    }

    /// Decodes a name. `None` if the words do not hold one.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::policy::Name;
    ///
    /// let name = Name::new("tmdb").unwrap();
    /// assert_eq!(Name::from_words(name.to_words()), Some(name));
    /// assert_eq!(Name::from_words([0; 4]), None);
    /// ```
    pub fn from_words(words: [u64; NAME_WORDS]) -> Option<Name> {
        let bytes: [u8; NAME_LEN] = std::array::from_fn(|i| (words[i / 8] >> (8 * (i % 8))) as u8);
        let name = Name::new(std::str::from_utf8(&bytes).ok()?.trim_end_matches('\0'))?;
        (name.0 == bytes).then_some(name)
    }
}

const fn allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b':' | b'-')
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_only_its_own_text() {
        let longest = "a".repeat(NAME_LEN);
        for name in ["a", "tokens", &longest] {
            let stored = Name::new(name).unwrap();
            assert!(stored.is(name));
            for other in ["", "b", "token", "tokens\0", "tokens2", "tOkens", &"a".repeat(NAME_LEN + 1)] {
                assert!(!stored.is(other), "{name} is {other:?}");
            }
        }
    }
}
