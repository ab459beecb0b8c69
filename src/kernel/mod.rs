//! Pure rules: (state, operation, now) gives (state, answer).
