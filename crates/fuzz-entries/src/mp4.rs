//! MP4 files of arbitrary bytes, and the invariants of every part cut from them.
//!
//! A fuzz target and a replay test call this; it panics if an invariant is violated.

use bolide_files::mp4::{Mp4Cut, Mp4Machine, Mp4Parts, Mp4Step};

/// The response for a file of these bytes; `None` if it is sent whole or not at all.
#[must_use]
pub fn cut(file: &[u8], cut: Mp4Cut) -> Option<Mp4Parts> {
    let size = file.len() as u64;
    let mut machine = Mp4Machine::new(cut, size);
    let mut reads = 0;
    loop {
        match machine.step() {
            Err(fault) => {
                let mut text = Vec::new();
                fault.write(b"/v.mp4", &mut text);
                assert!(text.len() < 200, "a message is short");
                return None;
            }
            Ok(Mp4Step::Whole) => return None,
            Ok(Mp4Step::Cut(parts)) => {
                assert!(parts.body.start <= parts.body.end && parts.body.end <= size);
                assert!(parts.head.len() <= 2 * file.len() + 1000, "memory is bounded");
                return Some(parts);
            }
            Ok(Mp4Step::Read(range)) => {
                assert!(range.start < range.end && range.end <= size, "what is there is read");
                let most = cut.buffer.max(cut.buffer_max).max(1040) as u64 + 16;
                assert!(range.end - range.start <= most, "memory is bounded");
                reads += 1;
                assert!(reads <= 2 * file.len() + 2, "it comes to an end");
                machine.give(range.start, file[range.start as usize..range.end as usize].to_vec());
            }
        }
    }
}

/// A file after two bytes that select the requested part.
pub fn video(bytes: &[u8]) {
    let Some((&[start, length], file)) = bytes.split_first_chunk::<2>() else { return };
    let wanted = Mp4Cut {
        start: u64::from(start) * 100,
        length: (length > 0).then(|| u64::from(length) * 100),
        buffer: 64,
        buffer_max: 64 << 10,
        start_key_frame: start & 1 == 1,
    };
    let parts = cut(file, wanted);
    assert_eq!(parts, cut(file, Mp4Cut { buffer: 4096, ..wanted }), "buffers change nothing");
    if let Some(parts) = parts {
        // The result can be cut again.
        let mut made = parts.head.clone();
        made.extend_from_slice(&file[parts.body.start as usize..parts.body.end as usize]);
        let _ = cut(&made, Mp4Cut { start: 0, length: Some(1), ..wanted });
    }
}
