//! A disk in memory: the results of lookups.

use std::collections::BTreeMap;

use bolide_base::FileRef;
use bolide_files::{DirEntry, FileKind, Meta, OpenFailure, Probe, Probed, Want};
use bytes::Bytes;

/// When every file of a world was last changed: 14 November 2023, 22:13:20 UTC.
const MTIME_SECONDS: i64 = 1_700_000_000;

/// What a path of a world holds.
#[derive(Clone, Debug)]
enum Node {
    Content(Bytes),
    Open(FileRef, Bytes),
    Failure(OpenFailure),
    Closed(OpenFailure),
    Special,
}

/// A disk in memory; every prefix of a path is a directory.
#[derive(Clone, Debug, Default)]
pub struct FuzzIo {
    nodes: BTreeMap<Vec<u8>, Node>,
    /// Looks that were performed.
    pub probes: u64,
}

impl FuzzIo {
    /// Puts a file.
    pub fn put(&mut self, path: &str, content: &[u8]) {
        let node = Node::Content(Bytes::copy_from_slice(content));
        self.nodes.insert(path.as_bytes().to_vec(), node);
    }

    /// Puts a file that is too large to keep: `file` stands for it, `content` is what is in it.
    pub fn put_open(&mut self, path: &str, file: FileRef, content: &[u8]) {
        let node = Node::Open(file, Bytes::copy_from_slice(content));
        self.nodes.insert(path.as_bytes().to_vec(), node);
    }

    /// Makes looking at a path fail.
    pub fn fail(&mut self, path: &str, failure: OpenFailure) {
        self.nodes.insert(path.as_bytes().to_vec(), Node::Failure(failure));
    }

    /// Puts an empty file that cannot be opened.
    pub fn shut(&mut self, path: &str, failure: OpenFailure) {
        self.nodes.insert(path.as_bytes().to_vec(), Node::Closed(failure));
    }

    /// Puts a device.
    pub fn put_special(&mut self, path: &str) {
        self.nodes.insert(path.as_bytes().to_vec(), Node::Special);
    }

    /// Removes what is at a path.
    pub fn remove(&mut self, path: &str) {
        self.nodes.remove(path.as_bytes());
    }

    pub(crate) fn perform(&mut self, probe: &Probe) -> Probed {
        self.probes += 1;
        let asked_for_directory = probe.path.len() > 1 && probe.path.ends_with(b"/");
        let path = probe.path.strip_suffix(b"/").unwrap_or(&probe.path);
        if path.len() > 4096 {
            return Probed::Failed(OpenFailure::NameTooLong);
        }
        if let Some(node) = self.nodes.get(path) {
            return match node {
                Node::Failure(failure) => Probed::Failed(*failure),
                _ if asked_for_directory => Probed::Failed(OpenFailure::NotADirectory),
                Node::Closed(_) if probe.want == Want::Stat => {
                    Probed::Seen(meta(FileKind::File, 0))
                }
                Node::Closed(failure) => Probed::Closed(meta(FileKind::File, 0), *failure),
                Node::Special => Probed::Seen(meta(FileKind::Other, 0)),
                Node::Content(content) | Node::Open(_, content) if probe.want == Want::Stat => {
                    Probed::Seen(meta(FileKind::File, content.len()))
                }
                Node::Content(content) => {
                    Probed::Content(meta(FileKind::File, content.len()), content.clone())
                }
                Node::Open(file, content) => {
                    Probed::Open(meta(FileKind::File, content.len()), file.clone())
                }
            };
        }
        let parents = (1..path.len()).filter(|at| path[*at] == b'/').map(|at| &path[..at]);
        if parents.into_iter().any(|parent| self.nodes.contains_key(parent)) {
            return Probed::Failed(OpenFailure::NotADirectory);
        }
        let mut prefix = path.to_vec();
        prefix.push(b'/');
        let below = |(path, _): &(&Vec<u8>, &Node)| path.starts_with(&prefix);
        let children = self.nodes.range(prefix.clone()..).take_while(below);
        let entries = entries(children.map(|(path, node)| (&path[prefix.len()..], node)));
        match (entries.is_empty(), probe.want) {
            (true, _) => Probed::Failed(OpenFailure::NotFound),
            (false, Want::List) => Probed::Listing(meta(FileKind::Directory, 0), entries),
            (false, _) => Probed::Seen(meta(FileKind::Directory, 0)),
        }
    }

    pub(crate) fn content_of(&self, wanted: &FileRef) -> Option<&Bytes> {
        self.nodes.values().find_map(|node| match node {
            Node::Open(file, content) if file == wanted => Some(content),
            _ => None,
        })
    }
}

fn entries<'a>(children: impl Iterator<Item = (&'a [u8], &'a Node)>) -> Vec<DirEntry> {
    let mut entries: Vec<DirEntry> = Vec::new();
    for (rest, node) in children {
        let (name, kind) = match memchr::memchr(b'/', rest) {
            Some(slash) => (&rest[..slash], FileKind::Directory),
            None => (rest, FileKind::File),
        };
        let size = match node {
            Node::Content(content) | Node::Open(_, content) => content.len() as u64,
            _ => 0,
        };
        if entries.last().is_none_or(|last| *last.name != *name) {
            entries.push(DirEntry { name: name.into(), kind, size, mtime_secs: MTIME_SECONDS });
        }
    }
    bolide_files::listing::sort(&mut entries);
    entries
}

fn meta(kind: FileKind, size: usize) -> Meta {
    Meta {
        kind,
        size: size as u64,
        mtime_secs: MTIME_SECONDS,
        ctime_secs: MTIME_SECONDS,
        inode: 1,
        mode: 0o644,
        ..Meta::default()
    }
}
