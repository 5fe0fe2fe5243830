//! Pulls from a page in assembly: literals and fragments in order.

use bolide_base::SendChain;
use bolide_esi::splice::SplicePart;
use bytes::Bytes;

use super::super::BodyPiece;
use super::super::fragment::FragmentStanding;
use super::super::script::ScriptNext;
use super::{AT_ONCE, PARTS_MAX, PageAssembly, VAR_MAX};

/// Bytes of a fragment below which separate compression does not pay.
const COMPRESS_MIN: usize = 256;

impl PageAssembly {
    /// The bytes of a fragment, framed for the page's coding.
    pub(super) fn framed(&mut self, bytes: &[u8]) -> Bytes {
        let Some((joint, level)) = &mut self.joint else { return Bytes::copy_from_slice(bytes) };
        if bytes.is_empty() {
            return Bytes::new();
        }
        let coding = joint.coding();
        let part = if bytes.len() < COMPRESS_MIN {
            SplicePart::stored(coding, bytes)
        } else {
            SplicePart::compress(coding, *level, bytes)
                .unwrap_or_else(|_| SplicePart::stored(coding, bytes))
        };
        joint.add(&part);
        part.bytes().clone()
    }

    /// Records that `len` bytes of the described part of a file were sent.
    pub(crate) fn advance(&mut self, len: u64) {
        self.script.advance(len);
    }

    pub(crate) fn pull(&mut self, max: usize, out: &mut SendChain) -> BodyPiece {
        self.is_waiting = false;
        let before = out.len();
        let mut left = max;
        let piece = loop {
            let piece = self.pull_some(left, out);
            let taken = usize::try_from(out.len() - before).unwrap_or(max);
            left = max.saturating_sub(taken);
            // PERF: a frame for each part of a page would cost more than the parts.
            match piece {
                BodyPiece::More if left > 0 => {}
                BodyPiece::More | BodyPiece::End => break piece,
                // Send what was appended first.
                _ if taken > 0 => break BodyPiece::More,
                _ => break piece,
            }
        };
        self.is_waiting = matches!(piece, BodyPiece::Pending);
        debug_assert!(
            self.fragments.iter().filter(|one| one.is_asked()).count() <= AT_ONCE + 1,
            "no more fragments are under way than may be at once"
        );
        piece
    }

    fn pull_some(&mut self, max: usize, out: &mut SendChain) -> BodyPiece {
        self.read_on();
        if !std::mem::replace(&mut self.is_headed, true)
            && let Some((joint, _)) = &self.joint
        {
            self.ready = Bytes::from_static(joint.head());
        }
        loop {
            if !self.ready.is_empty() {
                out.push_owned(self.ready.split_to(self.ready.len().min(max)));
                return BodyPiece::More;
            }
            if self.is_over {
                return BodyPiece::End;
            }
            if self.is_broken {
                return BodyPiece::Broken;
            }
            if self.in_fragment {
                match self.pull_fragment(max, out) {
                    Some(piece) => return piece,
                    None => continue,
                }
            }
            let joint = self.joint.as_mut().map(|(joint, _)| joint);
            match self.script.pull(max, joint, out) {
                ScriptNext::Piece(piece) => return piece,
                ScriptNext::Include => self.in_fragment = true,
                ScriptNext::End => {
                    self.is_over = true;
                    if let Some((joint, _)) = &self.joint {
                        self.ready = Bytes::copy_from_slice(joint.tail().as_bytes());
                    }
                }
            }
        }
    }

    /// Pulls the current fragment; none if it is complete.
    fn pull_fragment(&mut self, max: usize, out: &mut SendChain) -> Option<BodyPiece> {
        let Some(fragment) = self.fragments.front() else {
            self.look_ahead();
            debug_assert!(!self.fragments.is_empty(), "an include comes up before its turn");
            self.in_fragment = !self.fragments.is_empty();
            return None;
        };
        match fragment.standing {
            FragmentStanding::New
            | FragmentStanding::Alternative
            | FragmentStanding::Asked(_)
            | FragmentStanding::Held
            | FragmentStanding::Missing => Some(BodyPiece::Pending),
            FragmentStanding::Answering(child) => Some(BodyPiece::Fragment(child)),
            FragmentStanding::Here => self.pull_object(max, out),
            FragmentStanding::Nothing => {
                self.drop_first();
                None
            }
            FragmentStanding::Same(first) => {
                let var = self.vars.iter().find(|var| var.0 == first).map(|var| var.1.clone());
                self.ready = self.framed(&var.unwrap_or_default());
                self.drop_first();
                None
            }
        }
    }

    /// Appends from the cached object of the fragment; none if it is complete, or its bytes are in
    /// `ready`.
    fn pull_object(&mut self, max: usize, out: &mut SendChain) -> Option<BodyPiece> {
        let fragment = self.fragments.front_mut()?;
        let object = fragment.object.as_ref()?;
        if fragment.include.as_var {
            if object.body_len() <= VAR_MAX as u64 {
                object.pieces().for_each(|piece| self.var.extend_from_slice(piece));
                self.end_fragment();
            } else {
                self.drop_first();
            }
            return None;
        }
        let coder = self.joint.as_mut().filter(|_| object.body_len() <= PARTS_MAX);
        if let Some((joint, level)) = coder {
            let coding = joint.coding();
            object.make_parts(coding, *level);
            let parts = object.prepared().parts(coding).unwrap_or_default();
            if let Some(part) = parts.get(fragment.at as usize) {
                fragment.at += 1;
                joint.add(part);
                self.ready = part.bytes().clone();
                return None;
            }
        } else if let Some(mut bytes) = object.piece_at(fragment.at) {
            bytes.truncate(max);
            fragment.at += bytes.len() as u64;
            if self.joint.is_none() {
                out.push_owned(bytes);
                return Some(BodyPiece::More);
            }
            self.ready = self.framed(&bytes);
            return None;
        }
        self.drop_first();
        None
    }

    pub(super) fn drop_first(&mut self) {
        self.fragments.pop_front();
        self.in_fragment = false;
        self.look_ahead();
    }
}
