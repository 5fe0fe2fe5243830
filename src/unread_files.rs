//! Warns of `.htaccess` files in trees that a configuration serves without reading them.
//!
//! Checks only the top of each tree, and names the first file: a site that uses such files has one
//! there.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use bolide_conf::model::{Config, Handler};

/// One message for all trees.
pub(crate) fn warning(config: &Config) -> Option<String> {
    let http = config.http.as_ref()?;
    let mut roots = BTreeSet::new();
    for location in &http.locations {
        let settings = &location.settings;
        if settings.obeys_apache() || !matches!(location.handler, Handler::Static) {
            continue;
        }
        if let Some(root) = settings.root.path.as_text() {
            roots.insert(PathBuf::from(OsStr::from_bytes(root)));
        }
    }
    let mut unread = roots.into_iter().map(|root| root.join(".htaccess"));
    let first = unread.find(|file| file.is_absolute() && file.is_file())?;
    let others = match unread.filter(|file| file.is_file()).count() {
        0 => String::new(),
        others => format!(" (and those of {others} other trees)"),
    };
    Some(format!(
        "\"{}\"{others} is not read: \"apache_htaccess on\" has .htaccess files obeyed",
        first.display()
    ))
}
