//! What goes into an import and what comes out of it.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The files that a configuration includes.
pub trait ApacheFiles {
    /// The bytes of a file.
    ///
    /// # Errors
    ///
    /// As of the file system.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// The names in a directory.
    ///
    /// # Errors
    ///
    /// As of the file system.
    fn list(&self, path: &Path) -> io::Result<Vec<OsString>>;
    /// Whether there is a directory.
    fn is_directory(&self, path: &Path) -> bool;
}

/// What an import begins with.
#[derive(Debug)]
pub struct ImportRequest<'a> {
    /// The configuration file.
    pub path: PathBuf,
    /// Environment variables, which `${NAME}` finds.
    pub environment: Vec<(String, String)>,
    /// The text of a `types` block for extensions that `AddType` does not name.
    pub types: &'a str,
}

/// A line of Apache's configuration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConfPlace {
    /// Its file.
    pub file: Rc<str>,
    /// Counted from one.
    pub line: u32,
}

impl fmt::Display for ConfPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// Why a configuration cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportFault {
    /// Where.
    pub place: ConfPlace,
    /// Why, in Apache's words where Apache has some.
    pub message: String,
}

impl fmt::Display for ImportFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.message, self.place)
    }
}

/// A configuration in nginx's language.
#[derive(Clone, Debug, Default)]
pub struct Imported {
    /// Its text.
    pub text: String,
    /// For each line of the text, the line of Apache's that it stands for.
    pub places: Vec<Option<ConfPlace>>,
    /// Each place that is closed, because what restricts it is not understood.
    pub closed: Vec<ConfPlace>,
    /// Each line that passes requests on to a backend whose certificate Apache checks more of: its
    /// name or its date, without its authority.
    pub unverified: Vec<ConfPlace>,
}
