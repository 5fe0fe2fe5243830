//! WebDAV requests: random methods, paths and fields.

use crate::chance::Chance;

/// The mount point of the other file system.
pub const MOUNT: &str = "/dav/f";

/// The locations of applications.
pub const APPS: &[&str] = &["/stored", "/stored", "/metered", "/mirrored"];

/// Names that may be files or directories.
pub const NAMES: [&str; 9] = [
    "/dav/a.txt",
    "/dav/b.txt",
    "/dav/d",
    "/dav/d/a.txt",
    "/dav/d/e",
    "/dav/d/e/a.txt",
    MOUNT,
    "/dav/f/a.txt",
    "/dav/f/e",
];

/// Sizes of bodies. All bodies are prefixes of the longest one, so a body's size tells whether it
/// is complete.
pub(super) const SIZES: [usize; 5] = [1, 20, 700, 5000, 60_000];

/// A method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimDavMethod {
    /// `GET`
    Get,
    /// `PUT`
    Put,
    /// `DELETE`
    Delete,
    /// `MKCOL`
    MakeCollection,
    /// `COPY`
    Copy,
    /// `MOVE`
    Move,
}

/// A WebDAV request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimDavRequest {
    /// The method.
    pub method: SimDavMethod,
    /// One of [`NAMES`].
    pub path: &'static str,
    /// The destination, for `COPY` and `MOVE`.
    pub to: &'static str,
    /// Whether paths end with a slash.
    pub has_slash: bool,
    /// The Depth field, if there is one.
    pub depth: Option<&'static str>,
    /// The Overwrite field.
    pub overwrites: bool,
}

impl SimDavRequest {
    /// A random request and the size of its body.
    pub fn any(chance: &mut Chance) -> (Self, usize) {
        let method = match chance.below(9) {
            0 | 1 => SimDavMethod::Get,
            2 | 3 => SimDavMethod::Put,
            4 => SimDavMethod::Delete,
            5 => SimDavMethod::MakeCollection,
            6 | 7 => SimDavMethod::Copy,
            _ => SimDavMethod::Move,
        };
        let path = chance.index(NAMES.len());
        let to = (path + 1 + chance.index(NAMES.len() - 1)) % NAMES.len();
        let is_rather_directory = !NAMES[path].ends_with("txt");
        let has_slash = match method {
            SimDavMethod::Put | SimDavMethod::Get => false,
            SimDavMethod::MakeCollection => !chance.one_in(8),
            _ => is_rather_directory != chance.one_in(6),
        };
        let depth = [None, None, None, Some("infinity"), Some("0"), Some("1")][chance.index(6)];
        let overwrites = !chance.one_in(4);
        let act = Self { method, path: NAMES[path], to: NAMES[to], has_slash, depth, overwrites };
        (act, SIZES[chance.index(SIZES.len())])
    }

    /// The method.
    #[must_use]
    pub const fn method(self) -> &'static str {
        match self.method {
            SimDavMethod::Get => "GET",
            SimDavMethod::Put => "PUT",
            SimDavMethod::Delete => "DELETE",
            SimDavMethod::MakeCollection => "MKCOL",
            SimDavMethod::Copy => "COPY",
            SimDavMethod::Move => "MOVE",
        }
    }

    /// The path of the request.
    #[must_use]
    pub fn target(self) -> String {
        self.with_slash(self.path)
    }

    /// The fields of the method.
    #[must_use]
    pub fn fields(self) -> Vec<(&'static str, String)> {
        let mut fields = Vec::new();
        fields.extend(self.depth.map(|depth| ("depth", depth.to_owned())));
        if matches!(self.method, SimDavMethod::Copy | SimDavMethod::Move) {
            let overwrite = if self.overwrites { "T" } else { "F" };
            fields.push(("destination", self.with_slash(self.to)));
            fields.push(("overwrite", overwrite.to_owned()));
        }
        fields
    }

    /// Whether the Depth field is wrong for the method (RFC 4918 §9.6.1, §9.8.3, §9.9.2).
    pub(super) fn is_too_shallow(self) -> bool {
        match self.method {
            SimDavMethod::Copy => self.depth == Some("1"),
            SimDavMethod::Move => matches!(self.depth, Some("0" | "1")),
            SimDavMethod::Delete => match self.has_slash {
                true => matches!(self.depth, Some("0" | "1")),
                false => self.depth == Some("1"),
            },
            _ => false,
        }
    }

    fn with_slash(self, path: &str) -> String {
        format!("{path}{}", if self.has_slash { "/" } else { "" })
    }
}
