//! Pulls bodies of exchanges for a connection that is about to write, and reads files for them.

use bolide_base::{Bound, FileRange, FileRef, Instant, SendChain, Slab, SlabKey};
use bolide_engine::{BodyPiece, FileOwner, ResponseBody, SendCtx};
use bolide_files::Meta;
use bolide_io::Io;
use bolide_wire::{BodySource, Pull, StreamOwner};

use crate::exchange_table::ActiveExchange;
use crate::shortened::read_short;
use crate::subrequest_tree::SubrequestTree;
use crate::throttle::Allowance;

/// Bytes read from a file in one call.
const READ_MAX: usize = 128 * 1024;

/// The exchanges of one worker, and the `Io` that reads their files.
pub(crate) struct Bodies<'a, I> {
    pub(crate) exchanges: &'a mut Slab<ActiveExchange>,
    pub(crate) io: &'a mut I,
    /// Output: streams that a rate limit delays, and until when.
    pub(crate) paced: &'a mut Vec<(StreamOwner, Instant)>,
    /// Output: exchanges whose upstreams may be read again.
    pub(crate) roomy: &'a mut Vec<SlabKey<ActiveExchange>>,
    /// Output: exchanges whose bodies are to be pulled in the next turn.
    pub(crate) resting: &'a mut Vec<SlabKey<ActiveExchange>>,
    /// Output: log messages about truncated files.
    pub(crate) truncated: &'a mut Vec<(SlabKey<ActiveExchange>, String)>,
    /// Bytes that filters may still process in this turn.
    pub(crate) work: &'a mut u64,
    /// Pending work for pages and their fragments.
    pub(crate) family: &'a mut SubrequestTree,
    /// The context of variables in trailers.
    pub(crate) send_ctx: SendCtx<'a>,
}

impl<I: Io> BodySource for Bodies<'_, I> {
    fn pull(&mut self, user: StreamOwner, max: usize, out: &mut SendChain) -> Pull {
        let Some(live) = self.exchanges.get_mut(SlabKey::from_bits(user)) else {
            return Pull::Broken;
        };
        if live.paused {
            let before = out.len();
            let pull = self.pull_paced(user, max, out);
            self.resume_upstream(user, out.len() > before);
            return pull;
        }
        self.pull_paced(user, max, out)
    }

    fn admit(&mut self, user: StreamOwner, want: usize) -> usize {
        let admitted = self.allowed(user).min(want);
        let live = self.exchanges.get_mut(SlabKey::from_bits(user));
        if let Some(pace) = live.and_then(|live| live.pace.as_mut()) {
            pace.advance_bare(admitted as u64);
        }
        if admitted < want {
            // It is woken for the rest.
            let _ = self.allowed(user);
        }
        admitted
    }

    fn trailers(&mut self, user: StreamOwner, fields: &mut bolide_http::FieldMap) {
        if let Some(live) = self.exchanges.get_mut(SlabKey::from_bits(user)) {
            live.exchange.response_body().trailers(&self.send_ctx, fields);
        }
    }
}

impl<I: Io> Bodies<'_, I> {
    /// Lets the upstream be read again if a pull made room for more of its response.
    fn resume_upstream(&mut self, user: StreamOwner, has_moved: bool) {
        let key = SlabKey::from_bits(user);
        let now = self.send_ctx.now.mono;
        let mut live = self.exchanges.get_mut(key);
        if let Some(live) = live.as_deref_mut().filter(|_| has_moved) {
            live.moved = now;
        }
        if live.is_some_and(|live| live.paused && live.exchange.response_body().wants_origin()) {
            self.roomy.push(key);
        }
    }

    fn pull_paced(&mut self, user: StreamOwner, max: usize, out: &mut SendChain) -> Pull {
        let Some(live) = self.exchanges.get_mut(SlabKey::from_bits(user)) else {
            return Pull::Broken;
        };
        if live.pace.is_none() {
            return self.pull_some(user, max, out);
        }
        let allowed = self.allowed(user);
        if allowed == 0 {
            return Pull::Pending;
        }
        let before = out.len();
        let pull = self.pull_some(user, max.min(allowed), out);
        if let Some(live) = self.exchanges.get_mut(SlabKey::from_bits(user))
            && let Some(pace) = &mut live.pace
        {
            pace.advance(out.len() - before);
        }
        pull
    }

    /// The bytes that a rate limit permits now; if none, the stream is woken later.
    fn allowed(&mut self, user: StreamOwner) -> usize {
        let live = self.exchanges.get_mut(SlabKey::from_bits(user));
        let Some(pace) = live.and_then(|live| live.pace.as_mut()) else { return usize::MAX };
        match pace.allowed(self.send_ctx.now.mono) {
            Allowance::Bytes(bytes) => bytes,
            Allowance::From(at) => {
                if pace.is_to_be_woken(at) {
                    self.paced.push((user, at));
                }
                0
            }
        }
    }

    fn pull_some(&mut self, user: StreamOwner, max: usize, out: &mut SendChain) -> Pull {
        let key = SlabKey::from_bits(user);
        if self.exchanges.get(key).is_some_and(|live| live.exchange.is_assembled()) {
            return self.pull_page(key, max, out);
        }
        let piece = self.pull_through(key, max, out);
        self.give(key, piece, max, out)
    }

    /// Pulls from a body; one with filters reads until it has output, or has reached the limit of
    /// the turn.
    pub(crate) fn pull_through(
        &mut self,
        key: SlabKey<ActiveExchange>,
        max: usize,
        out: &mut SendChain,
    ) -> BodyPiece {
        let Some(live) = self.exchanges.get_mut(key) else { return BodyPiece::Broken };
        let mut body = live.exchange.response_body();
        let mut files = BodyFiles { key, io: self.io, truncated: self.truncated };
        if !body.is_changed() {
            return files.pull_plain(body, max, out);
        }
        let before = out.len();
        while *self.work > 0 {
            let piece = body.pull(max, out);
            let has_read = files.read_for(&mut body, &piece);
            *self.work = self.work.saturating_sub(body.take_work());
            if !has_read {
                return piece;
            }
            debug_assert_eq!(out.len(), before, "what is there leaves before more is read");
        }
        BodyPiece::Later
    }

    /// Executes the result of a pull.
    pub(crate) fn give(
        &mut self,
        key: SlabKey<ActiveExchange>,
        piece: BodyPiece,
        max: usize,
        out: &mut SendChain,
    ) -> Pull {
        let Some(live) = self.exchanges.get_mut(key) else { return Pull::Broken };
        match piece {
            BodyPiece::More => Pull::More,
            BodyPiece::Pending => Pull::Pending,
            BodyPiece::Later => {
                self.resting.push(key);
                Pull::Pending
            }
            BodyPiece::End => Pull::End,
            BodyPiece::Broken | BodyPiece::Read { .. } | BodyPiece::Fragment(_) => Pull::Broken,
            BodyPiece::File { file, offset, len, whose } => {
                let len = len.min(max as u64);
                let taken = if whose == FileOwner::Site && out.keeps_files() {
                    out.push_file(FileRange { file, offset, len });
                    len
                } else {
                    let want = (len as usize).min(READ_MAX);
                    let mut files = BodyFiles { key, io: self.io, truncated: self.truncated };
                    files.read_into(&file, offset, whose, want, out)
                };
                if taken == 0 {
                    return Pull::Broken;
                }
                live.exchange.response_body().advance(taken);
                Pull::More
            }
        }
    }
}

/// The files that the body of one exchange is read from.
struct BodyFiles<'a, I> {
    key: SlabKey<ActiveExchange>,
    io: &'a mut I,
    /// As in [`Bodies`].
    truncated: &'a mut Vec<(SlabKey<ActiveExchange>, String)>,
}

impl<I: Io> BodyFiles<'_, I> {
    /// Pulls from a body without filters.
    fn pull_plain(
        &mut self,
        mut body: ResponseBody<'_>,
        max: usize,
        out: &mut SendChain,
    ) -> BodyPiece {
        let mut bound = Bound::new();
        while bound.goes_on() {
            let piece = body.pull(max, out);
            if !self.read_for(&mut body, &piece) {
                return piece;
            }
        }
        BodyPiece::Broken
    }

    /// Reads the file part that a pull described; returns whether it described one.
    fn read_for(&mut self, body: &mut ResponseBody<'_>, piece: &BodyPiece) -> bool {
        let BodyPiece::Read { file, offset, len, whose } = piece else { return false };
        let mut buffer = vec![0; *len as usize];
        let n = self.read(file, *offset, *whose, &mut buffer);
        // An empty slice breaks the body.
        body.feed(&buffer[..n]);
        true
    }

    /// Reads up to `want` bytes to the end of `out`; returns how many.
    fn read_into(
        &mut self,
        file: &FileRef,
        offset: u64,
        whose: FileOwner,
        want: usize,
        out: &mut SendChain,
    ) -> u64 {
        if !out.shares(want) {
            return out.push_with(want, |buffer| self.read(file, offset, whose, buffer)) as u64;
        }
        // PERF: QUIC keeps what it sends until it is acknowledged; a buffer of its own is handed
        // over, but bytes of the chain would have to be copied.
        let mut piece = vec![0; want];
        let n = self.read(file, offset, whose, &mut piece);
        piece.truncate(n);
        out.push_owned(bytes::Bytes::from(piece));
        n as u64
    }

    /// Reads a file; 0 if that fails. Notes a file of the site that is too short. Of a file
    /// of the cache that has changed it reads nothing: the check comes after the read, so that no
    /// mixture is sent.
    fn read(&mut self, file: &FileRef, offset: u64, whose: FileOwner, into: &mut [u8]) -> usize {
        let n = self.io.read(file, offset, into).unwrap_or(0);
        match whose {
            FileOwner::Cache(then) if !is_same(self.io, file, &then) => return 0,
            FileOwner::Site if n == 0 && !into.is_empty() => {
                self.truncated.push((self.key, read_short(self.io, file, into.len())));
            }
            FileOwner::Cache(_) | FileOwner::Site | FileOwner::Transit => {}
        }
        n
    }
}

/// Whether the content of a file is unchanged: other attributes may differ, and its name may be
/// gone.
fn is_same(io: &mut impl Io, file: &FileRef, then: &Meta) -> bool {
    io.stat(file).is_ok_and(|now| {
        now.size == then.size
            && now.mtime_seconds == then.mtime_secs
            && now.mtime_nanos == then.mtime_nanos
    })
}
