//! `mp4` and its kin: parts of videos.

/// How parts of MP4 files are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mp4Settings {
    /// `mp4_buffer_size`: bytes that are read at once.
    pub buffer_size: usize,
    /// `mp4_max_buffer_size`: the most bytes of the `moov` atom.
    pub max_buffer_size: usize,
    /// `mp4_start_key_frame`
    pub start_key_frame: bool,
}

impl Default for Mp4Settings {
    fn default() -> Self {
        Self { buffer_size: 512 << 10, max_buffer_size: 10 << 20, start_key_frame: false }
    }
}
