//! Unixes other than Linux: not supported, and said so when compiling.

compile_error!(
    "shmlimit: this Unix has no open-file-description locks that a mapping keeps alive, so the death of a process \
     could not be told reliably and a crashed holder would block every other process (docs/design.md, Pulse). \
     Supported: Linux."
);
