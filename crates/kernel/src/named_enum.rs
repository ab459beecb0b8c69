//! Enums whose variants have names outside of Rust: one table for the variants, their codes and their names.

/// Declares an enum with a name for each variant, and the members that are asked for after it:
///
/// | member | gives |
/// | --- | --- |
/// | `const ALL;` | all variants, in order |
/// | `const NAMES;` | their names, in the same order |
/// | `const fn as_str;` | the name of a variant |
/// | `fn parse;` | the variant of a name, or `None`; any function name will do |
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
///     /// All of them.
///     pub const ALL;
///     /// The name on paper.
///     pub const fn as_str;
///     /// The signal of that name.
///     pub fn parse;
///     /// The signal stored as `code`.
///     pub const fn from_code(u8);
/// }
///
/// assert_eq!(Signal::ALL.map(Signal::as_str), ["red", "green"]);
/// assert_eq!(Signal::parse("green"), Some(Signal::Green));
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
        $crate::named_enum!(@members $name [$($variant ($($code)?) $text),+] $($members)*);
    };

    (@members $name:ident $table:tt) => {};

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
