//! The changes below directories that inotify reports.

/// The kinds of changes that a watch reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirDepth {
    /// Changes of the directory's names, of what they refer to, and of the right to enter it.
    Names,
    /// Changes of its files as well.
    Files,
    /// Which names it loses.
    Losses,
}

/// A change below a watched directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirChange {
    /// The file of this name changed, or the name itself.
    Entry {
        /// The watch of the directory.
        watch: u32,
        /// The name in it.
        name: Box<[u8]>,
    },
    /// The directory was removed or moved, or its permissions changed: nothing cached about it is
    /// valid.
    Gone {
        /// Its watch, which may have ended.
        watch: u32,
    },
    /// The queue overflowed: nothing cached is valid.
    Unknown,
}
