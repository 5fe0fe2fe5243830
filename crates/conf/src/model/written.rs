//! Files that requests make: `dav_*`, `proxy_store*`.

use crate::vars::Template;

/// Who may read and write what the server makes (`dav_access`, `proxy_store_access`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileAccess(u32);

impl FileAccess {
    /// The owner alone.
    pub const OWNER: Self = Self(0o600);

    /// These permission bits; those to execute are dropped.
    #[must_use]
    pub const fn new(bits: u32) -> Self {
        Self(bits & 0o666)
    }

    /// The permission bits of a file.
    #[must_use]
    pub const fn file(self) -> u32 {
        self.0
    }

    /// The permission bits of a directory: those who may read it may search it.
    #[must_use]
    pub const fn directory(self) -> u32 {
        self.0 | (self.0 & 0o444) >> 2
    }
}

/// A method of WebDAV (RFC 4918 §9) that the server itself can answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DavMethod {
    /// `PUT`
    Put,
    /// `DELETE`
    Delete,
    /// `MKCOL`
    Mkcol,
    /// `COPY`
    Copy,
    /// `MOVE`
    Move,
}

impl DavMethod {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Put, Self::Delete, Self::Mkcol, Self::Copy, Self::Move];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Put => "PUT",
            Self::Delete => "DELETE",
            Self::Mkcol => "MKCOL",
            Self::Copy => "COPY",
            Self::Move => "MOVE",
        }
    }
}

/// A set of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DavMethods(u8);

impl DavMethods {
    /// Adds one.
    pub const fn add(&mut self, method: DavMethod) {
        self.0 |= 1 << method as u8;
    }

    /// Whether it has one.
    #[must_use]
    pub const fn has(self, method: DavMethod) -> bool {
        self.0 & 1 << method as u8 != 0
    }

    /// Whether it has none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// `dav_*` and their kin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DavSettings {
    /// `dav_methods`
    pub methods: DavMethods,
    /// `create_full_put_path`
    pub creates_directories: bool,
    /// `min_delete_depth`: elements of the path; 0 is no bound.
    pub delete_depth_min: u32,
    /// `dav_access`
    pub access: FileAccess,
}

impl Default for DavSettings {
    fn default() -> Self {
        Self {
            methods: DavMethods::default(),
            creates_directories: false,
            delete_depth_min: 0,
            access: FileAccess::OWNER,
        }
    }
}

/// Where responses of an upstream are stored as files (`proxy_store`).
#[derive(Clone, Debug, PartialEq)]
pub enum StorePlace {
    /// `on`: where the request's own path leads.
    Mapped,
    /// At this path.
    Path(Template),
}
