//! The requirements about outcomes, breaker, gate, backoff and pace, by number (R1 to R8, R40 to R93, R106 to R110, R128
//! to R130, R133, R139 to R145), through the kernel's doors.

mod health;
