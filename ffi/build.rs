//! Gives the shared library the name under which programs look for it: that of the installed file without its minor
//! numbers (scripts/install-c), not the one cargo gives it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name| std::env::var(name).unwrap_or_default();
    if variable("CARGO_CFG_TARGET_OS") == "linux" {
        let major = variable("CARGO_PKG_VERSION_MAJOR");
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libshmlimit.so.{major}");
    }
}
