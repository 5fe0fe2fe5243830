//! An ESI page that is sent as it was a moment ago: known texts of known total length.
//!
//! Owns the texts of the page; the store knows whether they are still valid. Easiest to break: it
//! has exactly the bytes that [`super::PageAssembly`] would send.

use std::sync::Arc;

use bolide_base::SendChain;
use bolide_cache::{Object, Whole};
use bolide_esi::splice::Joint;
use bolide_http::negotiate::Coding;
use bytes::Bytes;

use super::BodyPiece;
use super::assembly::PARTS_MAX;
use super::span::push_part;

/// A page that is being sent.
#[derive(Debug)]
pub(crate) struct Strand {
    whole: Arc<Whole>,
    /// The current piece, and how many bytes of it were sent.
    piece: usize,
    within: usize,
}

impl Strand {
    pub(crate) const fn new(whole: Arc<Whole>) -> Self {
        Self { whole, piece: 0, within: 0 }
    }

    /// `End` also when this call appended the last bytes.
    pub(super) fn pull(&mut self, max: usize, out: &mut SendChain) -> BodyPiece {
        let mut left = max;
        while let Some(bytes) = self.whole.pieces().get(self.piece) {
            debug_assert!(self.within <= bytes.len(), "no more of a piece leaves than it has");
            let end = bytes.len().min(self.within + left);
            push_part(bytes, self.within, end, out);
            left -= end - self.within;
            if end < bytes.len() {
                self.within = end;
                return BodyPiece::More;
            }
            self.piece += 1;
            self.within = 0;
        }
        BodyPiece::End
    }
}

/// Assembles `page` from the fragments that `find` knows by number, with the time until which each
/// is valid. None if one is missing or is not a plain text.
pub(crate) fn put_together(
    page: &Arc<Object>,
    coding: Option<(Coding, i8)>,
    mut find: impl FnMut(u32) -> Option<(Arc<Object>, u64)>,
) -> Option<Whole> {
    debug_assert!(page.session().is_none(), "what one session has is put together for it alone");
    let mut text = StrandText { pieces: Vec::new(), coder: None };
    if let Some((coding, level)) = coding {
        let joint = Joint::new(coding);
        text.push(Bytes::from_static(joint.head()));
        text.coder = Some((joint, level));
    }
    let (mut parts, mut until_ms, mut number) = (Vec::new(), u64::MAX, 0);
    for (at, piece) in page.prepared().program().pieces.iter().enumerate() {
        match piece {
            bolide_esi::EsiNode::Literal(bytes) => text.push_literal(page, at, bytes)?,
            bolide_esi::EsiNode::Include(include) if include.as_var => return None,
            bolide_esi::EsiNode::Include(_) => {
                let (object, until) = find(number)?;
                debug_assert!(
                    object.session().is_none(),
                    "a shortcut leads to what every client may have"
                );
                text.push_object(&object)?;
                number += 1;
                until_ms = until_ms.min(until);
                parts.push(object);
            }
        }
    }
    if let Some((joint, _)) = &text.coder {
        let tail = Bytes::copy_from_slice(joint.tail().as_bytes());
        text.push(tail);
    }
    Whole::new(text.pieces, parts, until_ms)
}

struct StrandText {
    pieces: Vec<Bytes>,
    coder: Option<(Joint, i8)>,
}

impl StrandText {
    fn push(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.pieces.push(bytes);
        }
    }

    fn push_literal(&mut self, page: &Object, at: usize, bytes: &Bytes) -> Option<()> {
        let Some((joint, _)) = &mut self.coder else {
            self.push(bytes.clone());
            return Some(());
        };
        let part = page.prepared().parts(joint.coding())?.get(at)?;
        joint.add(part);
        self.push(part.bytes().clone());
        Some(())
    }

    fn push_object(&mut self, object: &Object) -> Option<()> {
        if object.outside().is_some() {
            return None;
        }
        let Some((joint, level)) = &mut self.coder else {
            let mut at = 0;
            while let Some(piece) = object.piece_at(at) {
                at += piece.len() as u64;
                self.push(piece);
            }
            return Some(());
        };
        if object.body_len() > PARTS_MAX {
            return None;
        }
        let (coding, level) = (joint.coding(), *level);
        object.make_parts(coding, level);
        for part in object.prepared().parts(coding)? {
            joint.add(part);
            if !part.bytes().is_empty() {
                self.pieces.push(part.bytes().clone());
            }
        }
        Some(())
    }
}
