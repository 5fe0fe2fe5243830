//! The layout of a tree, and the accounts of its queue.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bolide_http::negotiate::Coding;
use bytes::Bytes;

use super::{DiskLookup, DiskTree, DiskTreeSettings, DiskWrite, Replay};
use crate::disk::journal::{self, Echo, JournalEntry};
use crate::disk::{DiskPurge, DiskPurgeTarget};
use crate::key::{KeyBuilder, NamespaceId};
use crate::object::{Object, ObjectParts, ObjectVariant, Times};
use crate::tags::{TagPurge, lock};

fn tree(levels: &[u8]) -> DiskTree {
    DiskTree::new(&DiskTreeSettings {
        root: (*b"/cache").into(),
        levels: levels.into(),
        max_size: 0,
        inactive: 600,
        min_free: 0,
    })
}

#[test]
fn the_queue_counts_what_its_objects_had_when_they_came() {
    let tree = tree(&[1, 2]);
    tree.is_open.store(true, Ordering::Relaxed);
    let mut keys = KeyBuilder::default();
    let body = vec![Bytes::from_static(b"body")];
    let [one, two] = [b"/1", b"/2"].map(|url| {
        keys.start(NamespaceId(0));
        keys.push_url(url);
        Arc::new(Object::new(ObjectParts {
            key: keys.public(),
            status: 200,
            head: &[0; 8],
            etag: &[],
            times: Times::default(),
            tags: &[],
            known: 0,
            body: body.clone(),
            held: None,
        }))
    });
    for object in [&one, &two] {
        let (object, namespace) = (Arc::clone(object), Box::default());
        assert!(tree.spill(DiskWrite { object, sequence: 0, tags: Box::default(), namespace }));
    }
    let variant = ObjectVariant::Ready(Bytes::from_static(&[b'x'; 100]));
    assert_eq!(one.add_variant(Coding::Gzip, variant), 100);
    assert!(tree.next_spill().is_some_and(|next| Arc::ptr_eq(next.object(), &one)));
    assert_eq!(lock(&tree.queue).bytes, two.charge());
    assert!(tree.next_spill().is_some() && tree.next_spill().is_none());
    assert_eq!(lock(&tree.queue).bytes, 0);
}

/// Purges of different kinds, and where each ends.
fn purges() -> (Vec<u8>, Vec<usize>) {
    let (mut bytes, mut ends) = (Vec::new(), vec![0]);
    let targets = [
        DiskPurgeTarget::Tag(b"post-1"),
        DiskPurgeTarget::UrlsFrom(b"/shop/"),
        DiskPurgeTarget::All,
        DiskPurgeTarget::Url(b"/a"),
    ];
    for (sequence, target) in (1..).zip(targets) {
        let (namespace, session) = (&b"page:a"[..], &b"s"[..]);
        let order = DiskPurge { namespace, session, target, how: TagPurge::Dead, sequence };
        journal::push(&mut bytes, &JournalEntry::Purge(order, Echo::First), sequence);
        ends.push(bytes.len());
    }
    (bytes, ends)
}

fn replay(bytes: &[u8], pieces: usize) -> Replay {
    let mut replay = Replay::default();
    bytes.chunks(pieces).for_each(|piece| replay.feed(piece));
    replay
}

/// The last purge is no exception: it was acknowledged, and may not pass for an unfinished one.
#[test]
fn a_flipped_bit_anywhere_in_a_journal_is_damage() {
    let (whole, _) = purges();
    for pieces in [7, 64, whole.len()] {
        let read = replay(&whole, pieces);
        assert_eq!((read.is_damaged(), read.purges.len(), read.last()), (false, 4, 4));
        for bit in 0..whole.len() * 8 {
            let mut bent = whole.clone();
            bent[bit / 8] ^= 1 << (bit % 8);
            assert!(replay(&bent, pieces).is_damaged(), "bit {bit} in pieces of {pieces}");
        }
    }
}

/// Nothing tells a journal that ends behind a purge from one that had more of them: only a loss of
/// power, before they were flushed, may end it there.
#[test]
fn a_journal_that_ends_within_a_purge_is_damaged() {
    let (whole, ends) = purges();
    for len in 0..=whole.len() {
        let read = replay(&whole[..len], 64);
        let known = ends.iter().position(|end| *end == len);
        assert_eq!(read.is_damaged(), known.is_none(), "{len} bytes");
        assert!(known.is_none_or(|known| read.purges.len() == known));
    }
}

#[test]
fn files_lie_where_nginx_would_put_them() {
    let hash = 0xb7f5_4b2d_f777_3722_d382_f480_9d65_029c;
    let name = "b7f54b2df7773722d382f4809d65029c";
    for (levels, inside) in [
        (&[][..], String::new()),
        (&[1, 2], "c/29".to_owned()),
        (&[2, 2], "9c/02".to_owned()),
        (&[1, 1, 2], "c/9/02".to_owned()),
    ] {
        let tree = tree(levels);
        let wanted = if inside.is_empty() {
            format!("/cache/{name}")
        } else {
            format!("/cache/{inside}/{name}")
        };
        assert_eq!(String::from_utf8(tree.path(hash)).unwrap(), wanted);
        let is = |name: &[u8]| tree.classify(inside.as_bytes(), name, false);
        assert_eq!(is(name.as_bytes()), DiskLookup::File(hash));
        assert_eq!(is(format!("{name}.0123456789abcdef").as_bytes()), DiskLookup::Temporary);
        assert_eq!(is(format!("{name}.0123456789abcde").as_bytes()), DiskLookup::Foreign);
        assert_eq!(is(format!("{name}x").as_bytes()), DiskLookup::Foreign);
        assert_eq!(is(b"bolide.journal"), DiskLookup::Foreign);
        assert_eq!(tree.classify(b"d", name.as_bytes(), false), DiskLookup::Foreign);
        assert_eq!(tree.directories(hash).len(), levels.len());
    }
    let tree = tree(&[1, 2]);
    assert_eq!(tree.classify(b"", b"c", true), DiskLookup::Directory);
    assert_eq!(tree.classify(b"c", b"29", true), DiskLookup::Directory);
    for (inside, name) in [("", "cc"), ("", "g"), ("c", "2"), ("c/29", "c"), ("c", "2G")] {
        assert_eq!(tree.classify(inside.as_bytes(), name.as_bytes(), true), DiskLookup::Foreign);
    }
}
