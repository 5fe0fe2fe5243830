//! The body of an object: its pieces, its compressed variants, its program for assembly.

use bolide_http::negotiate::Coding;
use bytes::Bytes;

use super::{Object, ObjectVariant, Outside};

impl Object {
    /// Bytes of the stored body, in memory or on disk.
    #[must_use]
    pub fn body_len(&self) -> u64 {
        if let Some(outside) = self.outside() {
            return outside.len;
        }
        self.pieces().map(|piece| piece.len() as u64).sum()
    }

    /// The whole body, if it is one piece, as bodies up to 1 MiB are. It is shared, not copied.
    #[must_use]
    pub fn body(&self) -> Option<Bytes> {
        match self.extra.get().map(|extra| &extra.pieces[..]) {
            None | Some([]) => Some(self.packed.slice(self.body_start()..)),
            Some([one]) => Some(one.clone()),
            Some(_) => None,
        }
    }

    /// The pieces of the body.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let large = self.extra.get().map_or(&[][..], |extra| &extra.pieces[..]);
        let small = if large.is_empty() { &self.packed[self.body_start()..] } else { &[] };
        std::iter::once(small).chain(large.iter().map(|piece| &piece[..])).filter(|p| !p.is_empty())
    }

    /// The rest of the piece with byte `offset` of the body, shared; `None` past its end.
    #[must_use]
    pub fn piece_at(&self, offset: u64) -> Option<Bytes> {
        let large = self.extra.get().map_or(&[][..], |extra| &extra.pieces[..]);
        if large.is_empty() {
            let start = self.body_start().saturating_add(usize::try_from(offset).ok()?);
            return (start < self.packed.len()).then(|| self.packed.slice(start..));
        }
        let mut before = 0;
        for piece in large {
            let within = offset - before;
            if within < piece.len() as u64 {
                return Some(piece.slice(within as usize..));
            }
            before += piece.len() as u64;
        }
        None
    }

    /// The place of the body, if it is not in memory.
    #[must_use]
    pub fn outside(&self) -> Option<&Outside> {
        self.extra.get()?.outside.get()
    }

    pub(crate) fn set_outside(&self, outside: Outside) {
        debug_assert!(
            outside.sums.len() as u64 == outside.len.div_ceil(Outside::CHUNK) * 8,
            "each chunk of a body has a checksum"
        );
        let set = self.extra.get_or_init(Box::default).outside.set(outside);
        debug_assert!(set.is_ok(), "a body has one file");
    }

    /// The compressed variant, if it was made.
    #[must_use]
    pub fn variant(&self, coding: Coding) -> Option<&ObjectVariant> {
        self.extra.get()?.variants[coding.index()].get()
    }

    /// Claims the making of this compressed variant. True once, until [`Self::unclaim_variant`].
    #[must_use]
    pub fn claim_variant(&self, coding: Coding) -> bool {
        self.outside().is_none() && self.marks.claim(coding)
    }

    /// Returns the claim: the variant was not made.
    pub fn unclaim_variant(&self, coding: Coding) {
        self.marks.unclaim(coding);
    }

    /// Adds a compressed variant. Returns the bytes it adds, for the accounts of the store.
    pub(crate) fn add_variant(&self, coding: Coding, variant: ObjectVariant) -> u64 {
        let size = match &variant {
            ObjectVariant::Ready(bytes) => bytes.len() as u64,
            ObjectVariant::NotWorth => 0,
        };
        let extra = self.extra.get_or_init(Box::default);
        if extra.variants[coding.index()].set(variant).is_ok() { size } else { 0 }
    }

    /// Whether its body is ESI, which is assembled when it is sent.
    #[must_use]
    pub fn is_esi(&self) -> bool {
        self.marks.is_assembled()
    }

    /// The body as a program for ESI assembly; parsed on the first call.
    #[must_use]
    pub fn prepared(&self) -> &bolide_esi::Prepared {
        self.extra.get_or_init(Box::default).prepared.get_or_init(|| {
            let mut offset = 0;
            let pieces = std::iter::from_fn(|| {
                let piece = self.piece_at(offset)?;
                offset += piece.len() as u64;
                Some(piece)
            });
            Box::new(match self.is_esi() {
                true => bolide_esi::Prepared::page(pieces, bolide_esi::EsiLimits::default()),
                false => bolide_esi::Prepared::plain(pieces),
            })
        })
    }

    /// Compresses the literals of [`Self::prepared`], on the first call.
    pub fn make_parts(&self, coding: Coding, level: i8) {
        let prepared = self.prepared();
        if prepared.parts(coding).is_none() {
            prepared.make_parts(coding, level);
        }
    }
}
