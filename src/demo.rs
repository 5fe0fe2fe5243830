//! The demonstration site, carried inside the binary and unpacked where it can be served from.

use std::io::Result;
use std::path::{Path, PathBuf};

/// Every file of the site: its name and content.
const FILES: &[(&str, &[u8])] = &[("index.html", include_bytes!("../demo/index.html"))];

/// Writes the site below `state` and gives its directory.
///
/// # Errors
///
/// The file system refuses.
pub(crate) fn unpack(state: &Path) -> Result<PathBuf> {
    let root = state.join("demo");
    for (name, content) in FILES {
        let path = root.join(name);
        std::fs::create_dir_all(crate::control::parent(&path))?;
        std::fs::write(path, content)?;
    }
    Ok(root)
}
