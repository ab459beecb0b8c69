//! Sets the name under which programs look for the shared library: the name of the installed file without its minor
//! version numbers (scripts/languages/install-c), not the name that cargo gives it. Sets `cfg(cancellable)` where
//! threads can be cancelled.

fn main() -> std::io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(cancellable)");
    let variable = |name| std::env::var(name).unwrap_or_default();
    // Systems with pthread_cancel: every Unix except Android.
    if variable("CARGO_CFG_TARGET_FAMILY") == "unix" && variable("CARGO_CFG_TARGET_OS") != "android" {
        println!("cargo::rustc-cfg=cancellable");
    }
    match (variable("CARGO_CFG_TARGET_OS").as_str(), variable("CARGO_CFG_TARGET_ENV").as_str()) {
        ("linux", _) => {
            let major = variable("CARGO_PKG_VERSION_MAJOR");
            println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libshmlimit.so.{major}");
        }
        // The import library built with the DLL uses the same name. Microsoft's linker accepts only one
        // module-definition file, and rustc already passes one.
        ("windows", "gnu") => {
            let definition = std::path::Path::new(&variable("OUT_DIR")).join("name.def");
            std::fs::write(&definition, "LIBRARY shmlimit.dll\n")?;
            println!("cargo::rustc-cdylib-link-arg={}", definition.display());
        }
        _ => {}
    }
    Ok(())
}
