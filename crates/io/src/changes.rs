//! What the kernel tells of changes below directories.

/// What is told of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirDepth {
    /// Which names it has, what they mean, and who may use them.
    Names,
    /// Changes of the files in it as well.
    Files,
}

/// A change below a directory that is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirChange {
    /// Something about this name changed.
    Entry {
        /// The watch of the directory.
        watch: u32,
        /// The name in it.
        name: Box<[u8]>,
    },
    /// The directory is gone, or has moved, or may be entered by others: nothing known of it holds.
    Gone {
        /// Its watch, which may have ended.
        watch: u32,
    },
    /// There were too many changes to tell them: nothing known holds.
    Unknown,
}
