//! Models of the shared-memory protocol; the tests are in `tests/`, built with `--cfg loom`.
