//! Enums whose variants have names outside Rust: one table for the variants, their codes and their names.

use std::fmt;

/// The error for a text that is not the name of any variant.
///
/// ```
/// # use shmlimit_kernel as shmlimit;
/// use shmlimit::Priority;
///
/// let error = "urgent".parse::<Priority>().unwrap_err();
/// println!("{error}"); // lists the names
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    what: &'static str,
    text: String,
    allowed: &'static [&'static str],
}

impl UnknownName {
    /// `text` is none of the `allowed` names of a `what`.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::UnknownName;
    ///
    /// let error = UnknownName::new("Signal", "blue", &["red", "green"]);
    /// assert_eq!(error.to_string(), "unknown Signal \"blue\": must be red or green");
    /// ```
    pub fn new(what: &'static str, text: &str, allowed: &'static [&'static str]) -> UnknownName {
        UnknownName { what, text: text.to_owned(), allowed }
    }

    /// The text that was given.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// assert_eq!("urgent".parse::<shmlimit::Priority>().unwrap_err().text(), "urgent");
    /// ```
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The names that are allowed.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// assert!("urgent".parse::<shmlimit::Priority>().unwrap_err().allowed().contains(&"user"));
    /// ```
    pub fn allowed(&self) -> &'static [&'static str] {
        self.allowed
    }
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnknownName { what, text, allowed } = self;
        write!(f, "unknown {what} {text:?}: must be ")?;
        match allowed.split_last() {
            Some((last, others)) if !others.is_empty() => write!(f, "{} or {last}", others.join(", ")),
            _ => f.write_str(&allowed.join("")),
        }
    }
}

impl std::error::Error for UnknownName {}

/// Declares an enum with a name for each variant, which `Display` writes, and the members that are listed after
/// it:
///
/// | member | gives |
/// | --- | --- |
/// | `const ALL;` | all variants, in order |
/// | `const NAMES;` | their names, in the same order |
/// | `const fn as_str;` | the name of a variant |
/// | `impl FromStr;` | reads the name of a variant; the error ([`UnknownName`]) lists the names |
/// | `fn named;` | the variant of a name, or `None`; any function name can be used |
/// | `const fn from_code(TYPE);` | the variant of a code, or `None` |
/// | `const fn from_code(TYPE) or VARIANT;` | the variant of a code; every other code is `VARIANT` |
///
/// ```
/// shmlimit_kernel::named_enum! {
///     /// A signal at a crossing.
///     #[derive(Clone, Copy, Debug, PartialEq, Eq)]
///     #[repr(u8)]
///     pub enum Signal {
///         /// Stop.
///         Red = 1 => "red",
///         /// Go.
///         Green = 2 => "green",
///     }
///     /// All signals.
///     pub const ALL;
///     /// The name on paper.
///     pub const fn as_str;
///     impl FromStr;
///     /// The signal stored as `code`.
///     pub const fn from_code(u8);
/// }
///
/// assert_eq!(Signal::ALL.map(Signal::as_str), ["red", "green"]);
/// assert_eq!((Signal::Green.to_string(), "green".parse()), ("green".to_owned(), Ok(Signal::Green)));
/// let error = "blue".parse::<Signal>().unwrap_err();
/// assert_eq!(error.to_string(), "unknown Signal \"blue\": must be red or green");
/// assert_eq!(Signal::from_code(3), None);
/// ```
#[macro_export]
macro_rules! named_enum {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident {
            $($(#[$about:meta])* $variant:ident $(= $code:literal)? => $text:literal),+ $(,)?
        }
        $($members:tt)*
    ) => {
        $(#[$meta])*
        $vis enum $name {
            $($(#[$about])* $variant $(= $code)?),+
        }
        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(match self {
                    $($name::$variant => $text),+
                })
            }
        }
        $crate::named_enum!(@members $name [$($variant ($($code)?) $text),+] $($members)*);
    };

    (@members $name:ident $table:tt) => {};

    (@members $name:ident [$($variant:ident ($($code:literal)?) $text:literal),+] impl FromStr; $($rest:tt)*) => {
        impl ::std::str::FromStr for $name {
            type Err = $crate::UnknownName;

            fn from_str(text: &str) -> Result<$name, $crate::UnknownName> {
                match text {
                    $($text => Ok($name::$variant),)+
                    _ => Err($crate::UnknownName::new(stringify!($name), text, &[$($text),+])),
                }
            }
        }
        $crate::named_enum!(@members $name [$($variant ($($code)?) $text),+] $($rest)*);
    };

    (@members $name:ident [$($variant:ident ($($code:literal)?) $text:literal),+]
        $(#[$meta:meta])* $vis:vis const ALL; $($rest:tt)*
    ) => {
        impl $name {
            $(#[$meta])*
            $vis const ALL: [$name; [$($text),+].len()] = [$($name::$variant),+];
        }
        $crate::named_enum!(@members $name [$($variant ($($code)?) $text),+] $($rest)*);
    };

    (@members $name:ident [$($variant:ident ($($code:literal)?) $text:literal),+]
        $(#[$meta:meta])* $vis:vis const NAMES; $($rest:tt)*
    ) => {
        impl $name {
            $(#[$meta])*
            $vis const NAMES: [&'static str; [$($text),+].len()] = [$($text),+];
        }
        $crate::named_enum!(@members $name [$($variant ($($code)?) $text),+] $($rest)*);
    };

    (@members $name:ident [$($variant:ident ($($code:literal)?) $text:literal),+]
        $(#[$meta:meta])* $vis:vis const fn from_code($number:ty); $($rest:tt)*
    ) => {
        impl $name {
            $(#[$meta])*
            $vis const fn from_code(code: $number) -> Option<$name> {
                match code {
                    $($($code)? => Some($name::$variant),)+
                    _ => None,
                }
            }
        }
        $crate::named_enum!(@members $name [$($variant ($($code)?) $text),+] $($rest)*);
    };

    (@members $name:ident [$($variant:ident ($($code:literal)?) $text:literal),+]
        $(#[$meta:meta])* $vis:vis const fn from_code($number:ty) or $other:ident; $($rest:tt)*
    ) => {
        impl $name {
            $(#[$meta])*
            $vis const fn from_code(code: $number) -> $name {
                match code {
                    $($($code)? => $name::$variant,)+
                    _ => $name::$other,
                }
            }
        }
        $crate::named_enum!(@members $name [$($variant ($($code)?) $text),+] $($rest)*);
    };

    (@members $name:ident [$($variant:ident ($($code:literal)?) $text:literal),+]
        $(#[$meta:meta])* $vis:vis const fn $as_str:ident; $($rest:tt)*
    ) => {
        impl $name {
            $(#[$meta])*
            $vis const fn $as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $text),+
                }
            }
        }
        $crate::named_enum!(@members $name [$($variant ($($code)?) $text),+] $($rest)*);
    };

    (@members $name:ident [$($variant:ident ($($code:literal)?) $text:literal),+]
        $(#[$meta:meta])* $vis:vis fn $parse:ident; $($rest:tt)*
    ) => {
        impl $name {
            $(#[$meta])*
            $vis fn $parse(text: &str) -> Option<$name> {
                match text {
                    $($text => Some($name::$variant),)+
                    _ => None,
                }
            }
        }
        $crate::named_enum!(@members $name [$($variant ($($code)?) $text),+] $($rest)*);
    };
}
