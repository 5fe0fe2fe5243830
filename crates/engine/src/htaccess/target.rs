//! Where a request leads on disk.

/// Where a request leads on disk.
#[derive(Clone, Debug, Default)]
pub(super) struct HtaccessTarget {
    /// The location's directory, without a slash at its end.
    pub(super) root: Vec<u8>,
    /// The part of the URL's path that leads there.
    pub(super) prefix: Vec<u8>,
    /// The server's directory.
    pub(super) document_root: Vec<u8>,
    /// The path on disk, to its first element that is not there.
    pub(super) file: Vec<u8>,
    /// The rest of it.
    pub(super) path_info: Vec<u8>,
    pub(super) kind: TargetKind,
}

impl HtaccessTarget {
    /// Whether it is a directory that was asked for without the slash.
    pub(super) fn lacks_slash(&self) -> bool {
        self.kind == TargetKind::Directory && self.file.last() != Some(&b'/')
    }
}

/// A path inside the server that rules lead to.
#[derive(Debug)]
pub(super) struct InsideTarget {
    pub(super) path: Vec<u8>,
    pub(super) args: Option<Vec<u8>>,
}

impl InsideTarget {
    /// About how many bytes of memory it takes.
    pub(super) fn bytes(&self) -> usize {
        let args = self.args.as_ref().map_or(0, Vec::capacity);
        self.path.capacity() + args + size_of_val(self)
    }
}

/// What is at the end of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TargetKind {
    File,
    Directory,
    #[default]
    Missing,
}
