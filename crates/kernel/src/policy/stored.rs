//! The two forms of a policy's parts: the settings that users write, and the plain words that a segment stores
//! and decisions read.

use crate::time::Nanos;
use bytemuck::Pod;
use core::time::Duration;

/// A setting with a stored form.
pub trait Setting: Copy {
    /// The stored form.
    type Stored: Pod;

    /// Converts this value to its stored form. Validation has already refused durations that are too long.
    fn stored(self) -> Self::Stored;

    /// Converts a stored form back to a value.
    fn of(stored: Self::Stored) -> Self;
}

impl Setting for Duration {
    type Stored = Nanos;

    fn stored(self) -> Nanos {
        Nanos::of(self)
    }

    fn of(stored: Nanos) -> Duration {
        stored.duration()
    }
}

macro_rules! stored_as_they_are {
    ($($type:ty)*) => {$(
        impl $crate::policy::stored::Setting for $type {
            type Stored = $type;

            fn stored(self) -> $type {
                self
            }

            fn of(stored: $type) -> $type {
                stored
            }
        }
    )*};
}

stored_as_they_are! { u32 }

/// Declares a struct of settings, a second struct with the stored form, and the conversions between them.
macro_rules! stored {
    ($(#[$meta:meta])* pub struct $name:ident as $stored:ident {
        $($(#[$about:meta])* $vis:vis $field:ident: $type:ty),+ $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[$about])* $vis $field: $type),+
        }

        #[doc = concat!("[`", stringify!($name), "`] as it is stored.")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
        #[repr(C)]
        pub struct $stored {
            $($(#[$about])* $vis $field: <$type as super::stored::Setting>::Stored),+
        }

        impl From<$name> for $stored {
            fn from(settings: $name) -> $stored {
                $stored { $($field: super::stored::Setting::stored(settings.$field)),+ }
            }
        }

        #[doc(hidden)]
        impl From<$stored> for $name {
            fn from(stored: $stored) -> $name {
                $name { $($field: super::stored::Setting::of(stored.$field)),+ }
            }
        }
    };
}

pub(super) use {stored, stored_as_they_are};
