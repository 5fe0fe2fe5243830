//! Lends the exchanges to a connection that is about to write, and reads files for them.

use base::{FileRange, Key, SendChain, Slab};
use engine::Piece;
use files::Meta;
use io::{Io, Stat};
use wire::{BodySource, Pull, User};

use crate::exchanges::Live;

/// Bytes read from a file in one call.
const READ_MAX: usize = 128 * 1024;

/// The exchanges of one worker, and the door through which their files are read.
pub(crate) struct Bodies<'a, I> {
    pub(crate) exchanges: &'a mut Slab<Live>,
    pub(crate) io: &'a mut I,
}

impl<I: Io> BodySource for Bodies<'_, I> {
    fn pull(&mut self, user: User, max: usize, out: &mut SendChain) -> Pull {
        let Some(live) = self.exchanges.get_mut(Key::from_bits(user)) else { return Pull::Broken };
        let mut piece = live.exchange.pull(max, out);
        // A body that is compressed on its way reads until it has something to give.
        while let Piece::Read { file, offset, len, expect } = piece {
            let mut buffer = Vec::new();
            if self.io.stat(&file).ok().is_some_and(|now| is_same(&now, &expect)) {
                buffer.resize(len as usize, 0);
                let n = self.io.read(&file, offset, &mut buffer).unwrap_or(0);
                buffer.truncate(n);
            }
            // Nothing at all breaks the body.
            live.exchange.feed(&buffer);
            piece = live.exchange.pull(max, out);
        }
        match piece {
            Piece::More => Pull::More,
            Piece::Pending => Pull::Pending,
            Piece::End => Pull::End,
            Piece::Broken | Piece::Read { .. } => Pull::Broken,
            Piece::File { file, offset, len, expect } => {
                let len = len.min(max as u64);
                // A file rewritten in place since its head was sent must not be mixed with it.
                if self.io.stat(&file).ok().is_none_or(|now| !is_same(&now, &expect)) {
                    return Pull::Broken;
                }
                let taken = if out.keeps_files() {
                    out.push_file(FileRange { file, offset, len });
                    len
                } else {
                    let want = (len as usize).min(READ_MAX);
                    let io = &mut *self.io;
                    let n =
                        out.push_with(want, |buffer| io.read(&file, offset, buffer).unwrap_or(0));
                    n as u64
                };
                if taken == 0 {
                    return Pull::Broken;
                }
                live.exchange.advanced(taken);
                Pull::More
            }
        }
    }
}

/// Attributes may change, and the name may go; the content must not.
const fn is_same(now: &Stat, then: &Meta) -> bool {
    now.size == then.size
        && now.mtime_seconds == then.mtime_secs
        && now.mtime_nanos == then.mtime_nanos
}
