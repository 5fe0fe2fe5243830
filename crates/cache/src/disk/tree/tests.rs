//! The layout of a tree, and the accounts of its queue.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bolide_http::negotiate::Coding;
use bytes::Bytes;

use super::{DiskLookup, DiskTree, DiskTreeSettings, DiskWrite};
use crate::key::{KeyBuilder, NamespaceId};
use crate::object::{Object, ObjectParts, ObjectVariant, Times};
use crate::tags::lock;

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
