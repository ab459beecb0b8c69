//! Gives the shared library the name under which programs look for it: that of the installed file without its minor
//! numbers (scripts/languages/install-c), not the one cargo gives it. Sets `cfg(cancellable)` where threads can be cancelled.

fn main() -> std::io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(cancellable)");
    let variable = |name| std::env::var(name).unwrap_or_default();
    // Systems with pthread_cancel: every Unix but Android.
    if variable("CARGO_CFG_TARGET_FAMILY") == "unix" && variable("CARGO_CFG_TARGET_OS") != "android" {
        println!("cargo::rustc-cfg=cancellable");
    }
    match (variable("CARGO_CFG_TARGET_OS").as_str(), variable("CARGO_CFG_TARGET_ENV").as_str()) {
        ("linux", _) => {
            let major = variable("CARGO_PKG_VERSION_MAJOR");
            println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libshmlimit.so.{major}");
        }
        // The import library made beside it names the same. Microsoft's linker takes only one such file, which is rustc's.
        ("windows", "gnu") => {
            let definition = std::path::Path::new(&variable("OUT_DIR")).join("name.def");
            std::fs::write(&definition, "LIBRARY shmlimit.dll\n")?;
            println!("cargo::rustc-cdylib-link-arg={}", definition.display());
        }
        _ => {}
    }
    Ok(())
}
