//! Modules of somebody else.

use std::path::Path;
use std::process::Command;

/// Compiles `NAME.c` beside this file; returns where the module lies.
pub fn compile(name: &str, folder: &Path) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/server/support/{name}.c"));
    let module = folder.join(format!("{name}.so"));
    let output = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&module).arg(source).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    module.to_str().unwrap().to_owned()
}
