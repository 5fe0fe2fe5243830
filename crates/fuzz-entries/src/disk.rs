//! The parsers of the disk cache with arbitrary bytes, and their invariants.

use bolide_cache::disk::format::{Record, head_size, unpack_tags};
use bolide_cache::disk::{DiskTree, DiskTreeSettings, journal};

/// Parses `data` as a file, as a journal, and as names in a directory.
///
/// # Panics
///
/// An invariant does not hold.
pub fn reader(data: &[u8]) {
    if let Some(record) = Record::decode(data) {
        assert_eq!(head_size(data), Some(record.size()));
        let mut again = Vec::new();
        assert!(record.encode(&mut again), "what was read can be written");
        assert_eq!(Record::decode(&again), Some(record));
        let _ = unpack_tags(record.tags);
        let _ = record.has_body(&data[record.size()..]);
    }
    let mut entries = 0;
    let read = journal::read(data, |_| entries += 1);
    assert!(read.used <= data.len() && (entries > 0 || read.used == 0));
    let _ = journal::seal(data);
    for levels in [&[][..], &[1, 2], &[2, 2, 2]] {
        let (root, levels) = (Box::from(&b"/c"[..]), levels.into());
        let settings = DiskTreeSettings { root, levels, max_size: 0, inactive: 0, min_free: 0 };
        let tree = DiskTree::new(&settings);
        let (inside, name) = data.split_at(data.len().min(5));
        let _ = (tree.classify(inside, name, false), tree.classify(inside, name, true));
    }
}
