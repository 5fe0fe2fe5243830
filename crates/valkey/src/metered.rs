//! A connection that limits the bytes of one reply, however many replies are pipelined.
//!
//! Owns the detection of the end of a reply. The client parses and checks replies.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// LIMIT: bytes of one reply.
const REPLY_MAX: u64 = 32 << 20;

/// Whether a reply exceeded the limit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overrun(Arc<AtomicBool>);

impl Overrun {
    pub(crate) fn has_happened(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Any connection.
pub trait ValkeyStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ValkeyStream for S {}

/// What the next bytes belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// To the first byte of a value.
    Kind,
    /// To a line of this kind, which has this number so far.
    Line { kind: u8, number: u64, is_none: bool },
    /// To a string with so many bytes left, its line end included.
    Text(u64),
}

/// Why bytes are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MeterFault {
    /// The reply exceeds the limit.
    TooLarge,
    /// They are no reply of RESP2: the parser would take values whose end is unknown here.
    Foreign,
}

impl MeterFault {
    const fn text(self) -> &'static str {
        match self {
            Self::TooLarge => "the reply is too large",
            Self::Foreign => "the reply is not in RESP2",
        }
    }
}

/// Counts the bytes of the current reply in the framing of RESP2.
#[derive(Debug)]
struct ReplyMeter {
    part: Part,
    /// Values of the reply that are still missing.
    missing: u64,
    /// Bytes of it so far.
    bytes: u64,
}

impl ReplyMeter {
    const fn new() -> Self {
        Self { part: Part::Kind, missing: 1, bytes: 0 }
    }

    /// Counts these bytes.
    fn take(&mut self, mut bytes: &[u8]) -> Result<(), MeterFault> {
        while let Some((first, rest)) = bytes.split_first() {
            match self.part {
                Part::Kind if !b"+-:$*".contains(first) => return Err(MeterFault::Foreign),
                Part::Kind => {
                    self.part = Part::Line { kind: *first, number: 0, is_none: false };
                    (self.bytes, bytes) = (self.bytes + 1, rest);
                }
                Part::Line { kind, number, is_none } => {
                    (self.bytes, bytes) = (self.bytes + 1, rest);
                    match first {
                        b'\n' => self.end_line(kind, if is_none { None } else { Some(number) }),
                        b'-' => self.part = Part::Line { kind, number, is_none: true },
                        b'0'..=b'9' => {
                            let number = number.saturating_mul(10);
                            let number = number.saturating_add(u64::from(first - b'0'));
                            self.part = Part::Line { kind, number, is_none };
                        }
                        _ => {}
                    }
                }
                Part::Text(left) => {
                    let taken = left.min(bytes.len() as u64);
                    (self.bytes, bytes) = (self.bytes + taken, &bytes[taken as usize..]);
                    self.part = Part::Text(left - taken);
                    if taken == left {
                        self.end_value(0);
                    }
                }
            }
            if self.bytes > REPLY_MAX {
                return Err(MeterFault::TooLarge);
            }
        }
        Ok(())
    }

    fn end_line(&mut self, kind: u8, number: Option<u64>) {
        match (kind, number) {
            (b'$', Some(length)) => self.part = Part::Text(length.saturating_add(2)),
            (b'*', Some(count)) => self.end_value(count),
            _ => self.end_value(0),
        }
    }

    /// A value is complete except for `inner` values in it.
    const fn end_value(&mut self, inner: u64) {
        self.part = Part::Kind;
        self.missing = self.missing.saturating_sub(1).saturating_add(inner);
        if self.missing == 0 {
            *self = Self::new();
        }
    }
}

pub(crate) struct Metered {
    stream: Box<dyn ValkeyStream>,
    reply: ReplyMeter,
    overrun: Overrun,
}

impl Metered {
    pub(crate) fn new(stream: Box<dyn ValkeyStream>) -> (Self, Overrun) {
        let overrun = Overrun::default();
        (Self { stream, reply: ReplyMeter::new(), overrun: overrun.clone() }, overrun)
    }
}

impl AsyncRead for Metered {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if let Err(fault) = self.reply.take(&buffer.filled()[before..]) {
            self.overrun.0.store(fault == MeterFault::TooLarge, Ordering::Relaxed);
            return Poll::Ready(Err(io::Error::other(fault.text())));
        }
        polled
    }
}

impl AsyncWrite for Metered {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::{MeterFault, Part, REPLY_MAX, ReplyMeter};

    const REPLIES: &[u8] =
        b"+OK\r\n:-7\r\n$-1\r\n*-1\r\n$3\r\na\n1\r\n*0\r\n*2\r\n*2\r\n:1\r\n$0\r\n\r\n\
        $2\r\n*9\r\n-ERR 12 - 3\r\n$0\r\n\r\n";

    #[test]
    fn each_reply_is_counted_by_itself_however_it_is_cut() {
        for size in 1..REPLIES.len() {
            let mut meter = ReplyMeter::new();
            assert!(REPLIES.chunks(size).all(|bytes| meter.take(bytes).is_ok()));
            assert_eq!((meter.part, meter.missing, meter.bytes), (Part::Kind, 1, 0), "{size}");
        }
        // The reply within which the bytes end has what came of it so far.
        let mut meter = ReplyMeter::new();
        assert_eq!(meter.take(b"+OK\r\n*2\r\n:1\r\n"), Ok(()));
        assert_eq!((meter.missing, meter.bytes), (1, 8));
    }

    #[test]
    fn values_of_other_protocols_are_refused_wherever_they_begin() {
        for kind in (0..=u8::MAX).filter(|kind| !b"+-:$*".contains(kind)) {
            for before in [&b""[..], b"+OK\r\n", b"*3\r\n:1\r\n", b"$2\r\n~9\r\n"] {
                let mut meter = ReplyMeter::new();
                assert_eq!(meter.take(before), Ok(()));
                assert_eq!(meter.take(&[kind]), Err(MeterFault::Foreign), "{kind}");
            }
        }
    }

    #[test]
    fn many_replies_may_come_and_none_that_is_too_large() {
        let piece = vec![b'a'; 1 << 20];
        let mut meter = ReplyMeter::new();
        for _ in 0..100 {
            for bytes in [&b"$1048576\r\n"[..], &piece, b"\r\n"] {
                assert_eq!(meter.take(bytes), Ok(()));
            }
        }
        // As one string, as many in an array, and as a line that does not end.
        for (head, each) in
            [(&b"$99999999\r\n"[..], &b""[..]), (b"*99\r\n", b"$1048574\r\n"), (b"+", b"")]
        {
            let (mut meter, mut count) = (ReplyMeter::new(), 0);
            assert_eq!(meter.take(head), Ok(()));
            while meter.take(each).is_ok() && meter.take(&piece).is_ok() {
                count += 1;
                assert!(count <= REPLY_MAX >> 20, "it has an end");
            }
            assert!(count >= (REPLY_MAX >> 20) - 1, "{count}");
        }
    }
}
