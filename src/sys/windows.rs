//! Windows: not supported yet, and said so when compiling.

compile_error!(
    "shmlimit: on Windows no wake-up that reaches other processes through a shared word and no LockFileEx pulse \
     have been written and proved, so waiting and recovery after a crash could not be promised (docs/design.md, \
     Lock and Pulse). Supported: Linux."
);
