//! Error log messages about upstreams, in nginx's words.

use bolide_base::Instant;
use bolide_base::errno::reason;
use bolide_conf::model::{LogLevel, PeerAddress, Protocol};

use crate::ctx::CallHindrance;

pub(crate) const CONNECTING: &str = "while connecting to upstream";
pub(crate) const HANDSHAKING: &str = "while SSL handshaking to upstream";
pub(crate) const WAITING: &str = "while waiting for upstream";
pub(crate) const SENDING: &str = "while sending request to upstream";
pub(crate) const READING_HEAD: &str = "while reading response header from upstream";
pub(crate) const READING: &str = "while reading upstream";

pub(crate) const TIMED_OUT: &[u8] = b"upstream timed out (110: Connection timed out)";
pub(crate) const NO_LIVE: &[u8] = b"no live upstreams";
pub(crate) const UNSENDABLE: &[u8] = b"the request cannot be sent";
pub(crate) const QUEUE_FULL: &[u8] = b"upstream queue is full";
pub(crate) const DISABLED: &[u8] = b"upstream server temporarily disabled";
pub(crate) const CLOSED_IDLE: &[u8] = b"upstream closed kept connection, trying a new one";

pub(crate) const EXCESS: &[u8] =
    b"upstream sent more data than specified in \"Content-Length\" header";
pub(crate) const EXCESS_CHUNK: &[u8] = b"upstream sent data after final chunk";

pub(crate) const BAD_TRAILER: &[u8] = b"memcached sent invalid trailer";

/// Bytes of the error stream in one line of the log.
const STDERR_MAX: usize = 2048;

/// Milliseconds between two moments.
pub(crate) const fn millis(from: Instant, to: Instant) -> u64 {
    (to.as_nanos().saturating_sub(from.as_nanos())) / 1_000_000
}

/// The connect failed.
pub(crate) fn connect_failed(address: &PeerAddress, errno: i32) -> (LogLevel, Vec<u8>) {
    // A refusal by the kernel at once is logged with the address, a later report without it.
    let at_once = match address {
        PeerAddress::Unix(_) => true,
        PeerAddress::Inet(_) => matches!(errno, 1 | 13 | 22 | 97 | 99 | 101),
    };
    let target = if at_once { format!(" to {address}") } else { String::new() };
    let level = match errno {
        11 | 100 | 101 | 104 | 110..=113 => LogLevel::Error,
        _ => LogLevel::Crit,
    };
    (level, format!("connect(){target} failed ({})", reason(errno)).into_bytes())
}

/// No server could be called; `from` is the local address.
pub(crate) fn not_called(from: &str, hindrance: CallHindrance) -> (LogLevel, Vec<u8>) {
    match hindrance {
        CallHindrance::Socket(errno) => (LogLevel::Alert, call_failed("socket", errno)),
        CallHindrance::Bind(errno) => {
            (LogLevel::Crit, format!("bind({from}) failed ({})", reason(errno)).into_bytes())
        }
        CallHindrance::Watch => (LogLevel::Alert, b"epoll_ctl() failed".to_vec()),
        CallHindrance::Full => (LogLevel::Alert, b"worker_connections are not enough".to_vec()),
    }
}

/// A system call on the connection failed.
pub(crate) fn call_failed(call: &str, errno: i32) -> Vec<u8> {
    format!("{call}() failed ({})", reason(errno)).into_bytes()
}

/// Memcached has no value for this key.
pub(crate) fn missing(key: &[u8]) -> Vec<u8> {
    [b"key: \"", key, b"\" was not found by memcached"].concat()
}

/// The text that the application wrote to its error stream; `None` if it is empty.
pub(crate) fn stderr(protocol: Protocol, text: &[u8]) -> Option<Vec<u8>> {
    let is_idle = |byte: &u8| matches!(byte, b'\n' | b'\r' | b'.' | b' ');
    let end = text.iter().rposition(|byte| !is_idle(byte))? + 1;
    let whose = match protocol {
        Protocol::FastCgi => "FastCGI",
        Protocol::Lsapi => "LSAPI",
        Protocol::Http => "HTTP",
        Protocol::Uwsgi => "uwsgi",
        Protocol::Scgi => "SCGI",
        Protocol::Memcached => "memcached",
        Protocol::Http2 => "HTTP/2",
    };
    let mut line = format!("{whose} sent in stderr: \"").into_bytes();
    line.extend_from_slice(&text[..end.min(STDERR_MAX)]);
    line.push(b'"');
    Some(line)
}
