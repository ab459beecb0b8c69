/*
 * shmlimit: one budget for every program on the machine that calls the same API.
 *
 * This file is generated from ffi/src by cbindgen. Do not edit it: run scripts/header.
 *
 * API conventions
 *
 * Names      Everything begins with shmlimit_ or SHMLIMIT_.
 * Results    A function that can fail returns int: 0 is OK, every other number is one error, and a number once
 *            given never changes its meaning. What cannot fail returns its value.
 * Strings    UTF-8, ending in NUL. A returned `const char *` belongs to the library: it is never NULL unless its
 *            comment says so, and you do not free it.
 * Handles    Opaque pointers, made and freed by functions of this library only.
 * Structs    A struct you fill in begins with its own size, so that a later library knows what you compiled.
 * Panics     No Rust panic crosses this border; a function that meets one returns its error value.
 * Threads    Every function may be called from any thread at the same time.
 * Fork       Everything may be used in a forked child; nothing granted to the parent belongs to the child.
 * Signals    Nothing here is async-signal-safe: do not call it from a signal handler.
 * Versions   Compare SHMLIMIT_LAYOUT_VERSION with shmlimit_layout_version() when you link dynamically: programs
 *            that share a limiter must agree on it.
 */

#ifndef SHMLIMIT_H
#define SHMLIMIT_H

#include <stdint.h>

/*
 Layout version of segments at the time a program was compiled; compare with `shmlimit_layout_version()`.
 */
#define SHMLIMIT_LAYOUT_VERSION 3

/*
 Bytes that every segment has, before its logs, at the time a program was compiled; compare with `shmlimit_segment_size()`.
 */
#define SHMLIMIT_SEGMENT_SIZE 294912

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 The version of the library, such as "0.1.0".

 Never NULL; static: do not free it.
 */
const char *shmlimit_version(void);

/*
 The layout version of the segments this library makes and opens. It refuses all others and leaves them alone.
 */
uint32_t shmlimit_layout_version(void);

/*
 How many bytes every segment of that layout has; one with sliding logs is longer.
 */
uint64_t shmlimit_segment_size(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SHMLIMIT_H */
