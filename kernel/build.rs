//! Tells the linker where the kernel's parts stand.
#![forbid(unsafe_code)]

fn main() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("set by Cargo");
    println!("cargo::rustc-link-arg-bins=-T{folder}/link.ld");
    println!("cargo::rerun-if-changed=link.ld");
}
