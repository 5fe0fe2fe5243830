//! What a connection tells, and how it ended.

use std::fmt;

use quinn_proto::ConnectionError;

/// An event of a connection.
#[derive(Debug, PartialEq, Eq)]
pub enum QuicEvent {
    /// Streams can be used. `early` means that the handshake is incomplete: received data may be a
    /// replay (RFC 8470), and [`QuicEvent::Confirmed`] follows.
    Connected {
        /// Whether the handshake is incomplete.
        early: bool,
    },
    /// The handshake of an early connection is complete.
    Confirmed,
    /// The stream is new, or has bytes, an end or a reset to read.
    StreamReadable(u64),
    /// The stream accepts bytes again after a partial write.
    StreamWritable(u64),
    /// The peer sent `STOP_SENDING` for this stream, with this code.
    Stopped(u64, u64),
    /// `open_uni` may succeed again.
    UniAvailable,
    /// The connection is lost; its streams are unusable. After our own `close` only
    /// [`QuicEvent::Gone`] comes.
    Lost(Lost),
    /// The connection is removed and its id is stale.
    Gone,
}

/// How a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The idle timeout expired.
    TimedOut,
    /// The peer sent a stateless reset.
    Reset,
    /// The peer's application closed it with this code.
    Closed(u64),
    /// The peer's transport closed it with this code.
    Aborted(u64),
    /// We closed it because of a transport or TLS error: code and reason.
    Failed(u64, String),
    /// We closed it.
    Local,
}

impl Lost {
    /// Whether an alert of TLS ended it that speaks of what was offered (RFC 9001 §4.8), and not
    /// one for messages that make no sense: `unexpected_message`, `bad_record_mac`, `decode_error`.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        const ALERTS: std::ops::RangeInclusive<u64> = 0x100..=0x1ff;
        const GARBAGE: [u64; 3] = [0x10a, 0x114, 0x132];
        match self {
            Self::Aborted(code) | Self::Failed(code, _) => {
                ALERTS.contains(code) && !GARBAGE.contains(code)
            }
            Self::TimedOut | Self::Reset | Self::Closed(_) | Self::Local => false,
        }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut => f.write_str("timed out"),
            Self::Reset => f.write_str("reset by the client"),
            Self::Closed(code) => write!(f, "closed by the client with code 0x{code:x}"),
            Self::Aborted(code) => write!(f, "aborted by the client with code 0x{code:x}"),
            Self::Failed(code, reason) => write!(f, "failed with code 0x{code:x}: {reason}"),
            Self::Local => f.write_str("closed"),
        }
    }
}

impl From<ConnectionError> for Lost {
    fn from(error: ConnectionError) -> Self {
        match error {
            ConnectionError::TimedOut => Self::TimedOut,
            ConnectionError::Reset => Self::Reset,
            ConnectionError::ApplicationClosed(close) => Self::Closed(close.error_code.into()),
            ConnectionError::ConnectionClosed(close) => Self::Aborted(close.error_code.into()),
            ConnectionError::TransportError(error) => Self::Failed(error.code.into(), error.reason),
            ConnectionError::LocallyClosed => Self::Local,
            other @ (ConnectionError::VersionMismatch | ConnectionError::CidsExhausted) => {
                Self::Failed(0, other.to_string())
            }
        }
    }
}
