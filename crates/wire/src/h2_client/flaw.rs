//! Errors with a text for the error log, in nginx's words.

use crate::OriginError;
use crate::h2::frame::FrameKind;

/// The framing is invalid.
pub(super) fn invalid(text: impl Into<Vec<u8>>) -> OriginError {
    OriginError::Invalid(text.into().into())
}

pub(super) fn unexpected(kind: FrameKind) -> OriginError {
    invalid(format!("upstream sent unexpected http2 frame: {}", kind.byte()))
}

pub(super) fn unknown_stream(stream: u32) -> OriginError {
    invalid(format!("upstream sent frame for unknown stream {stream}"))
}

pub(super) fn too_much_padding() -> OriginError {
    invalid("upstream sent http2 frame with too long padding")
}

pub(super) fn too_large_update() -> OriginError {
    invalid("upstream sent too large window update")
}

/// More of these frames than may be.
pub(super) fn too_many(kind: FrameKind) -> OriginError {
    invalid(format!("upstream sent too many {} frames", name(kind)))
}

/// The kind of a frame in nginx's messages.
pub(super) const fn name(kind: FrameKind) -> &'static str {
    match kind {
        FrameKind::Settings => "settings",
        FrameKind::Ping => "ping",
        FrameKind::GoAway => "goaway",
        FrameKind::RstStream => "rst stream",
        FrameKind::WindowUpdate => "window update",
        _ => "http2",
    }
}
