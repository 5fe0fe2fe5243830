//! The files that one URL has on disk, for purges of it and for what they report.

use std::sync::Arc;

use super::{DiskTree, file_hash};
use crate::object::Object;

/// The files of the variants of a URL.
#[derive(Debug)]
pub(crate) struct Filed {
    pub(super) tree: Arc<DiskTree>,
    pub(super) name: Box<[u8]>,
    /// The file of the key without vary part.
    pub(super) base: u128,
    pub(super) all: Vec<u128>,
}

impl Filed {
    /// Removes the files.
    pub(crate) fn doom(&self) {
        self.all.iter().for_each(|hash| self.tree.condemn(*hash));
    }

    /// The number of responses that are not among `objects`. With variants the file `base` is the
    /// `Vary` entry, which is no response.
    pub(crate) fn beside(&self, objects: &[Arc<Object>]) -> u64 {
        let file = |object: &Arc<Object>| {
            let session = object.session().map_or(&b""[..], |session| session.text());
            file_hash(&self.name, object.url(), object.vary(), session)
        };
        let known: Vec<_> = objects.iter().map(file).collect();
        let is_marker = |hash: u128| hash == self.base && self.all.len() > 1;
        self.all.iter().filter(|hash| !known.contains(hash) && !is_marker(**hash)).count() as u64
    }
}
