//! The demonstration site, embedded in the binary and unpacked for serving.

use std::io::Result;
use std::path::{Path, PathBuf};

/// Every file of the site: its name and content.
const FILES: &[(&str, &[u8])] = &[
    ("index.html", include_bytes!("../demo/index.html")),
    ("404.html", include_bytes!("../demo/404.html")),
    ("style.css", include_bytes!("../demo/style.css")),
    ("demo.js", include_bytes!("../demo/demo.js")),
    ("bolide.svg", include_bytes!("../demo/bolide.svg")),
    ("files/data.json", include_bytes!("../demo/files/data.json")),
    ("files/hello.txt", include_bytes!("../demo/files/hello.txt")),
    ("files/picture.jpg", include_bytes!("../demo/files/picture.jpg")),
];

/// Writes the site below `state` and returns its directory.
///
/// # Errors
///
/// The file system refuses.
pub(crate) fn unpack(state: &Path) -> Result<PathBuf> {
    let root = state.join("demo");
    for (name, content) in FILES {
        let path = root.join(name);
        std::fs::create_dir_all(crate::source::parent(&path))?;
        std::fs::write(path, content)?;
    }
    Ok(root)
}

#[cfg(test)]
mod tests {
    use super::FILES;

    #[test]
    fn every_file_of_the_demo_is_inside_the_binary() {
        let mut names = Vec::new();
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("demo");
        for directory in [root.clone(), root.join("files")] {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_file() {
                    names.push(path.strip_prefix(&root).unwrap().display().to_string());
                }
            }
        }
        names.sort();
        let mut inside: Vec<_> = FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
        inside.sort();
        assert_eq!(names, inside);
    }
}
