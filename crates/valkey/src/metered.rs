//! A connection that bounds what the other side sends before it is asked again.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// LIMIT: bytes of the replies to what was sent last.
const REPLY_MAX: usize = 32 << 20;

/// Whether more came than may.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overrun(Arc<AtomicBool>);

impl Overrun {
    pub(crate) fn has_happened(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Any connection.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

pub(crate) struct Metered {
    stream: Box<dyn Stream>,
    received: usize,
    overrun: Overrun,
}

impl Metered {
    pub(crate) fn new(stream: Box<dyn Stream>) -> (Self, Overrun) {
        let overrun = Overrun::default();
        (Self { stream, received: 0, overrun: overrun.clone() }, overrun)
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
        self.received += buffer.filled().len() - before;
        if self.received > REPLY_MAX {
            self.overrun.0.store(true, Ordering::Relaxed);
            return Poll::Ready(Err(io::Error::other("the reply is too large")));
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
        self.received = 0;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
