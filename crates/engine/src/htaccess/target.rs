//! The path of a request on disk.

/// The path of a request on disk.
#[derive(Clone, Debug, Default)]
pub(super) struct HtaccessTarget {
    /// The location's directory, without a final slash.
    pub(super) root: Vec<u8>,
    /// The part of the URL path that maps to it.
    pub(super) prefix: Vec<u8>,
    /// The server's document root.
    pub(super) document_root: Vec<u8>,
    /// The path on disk, up to its first component that does not exist.
    pub(super) file: Vec<u8>,
    /// The rest of the path (`PATH_INFO`).
    pub(super) path_info: Vec<u8>,
    pub(super) kind: TargetKind,
}

impl HtaccessTarget {
    /// Whether it is a directory that was requested without its final slash.
    pub(super) fn lacks_slash(&self) -> bool {
        self.kind == TargetKind::Directory && self.file.last() != Some(&b'/')
    }
}

/// An internal path that rules lead to.
#[derive(Debug)]
pub(super) struct InsideTarget {
    pub(super) path: Vec<u8>,
    pub(super) args: Option<Vec<u8>>,
}

impl InsideTarget {
    /// Its approximate memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        let args = self.args.as_ref().map_or(0, Vec::capacity);
        self.path.capacity() + args + size_of_val(self)
    }
}

/// The kind of file at the end of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TargetKind {
    File,
    Directory,
    #[default]
    Missing,
}
