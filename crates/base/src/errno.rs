//! Error numbers of Linux, and errors in nginx's form: `111: Connection refused`.

use std::io::Error;

/// Operation not permitted.
pub const EPERM: i32 = 1;
/// No such file or directory.
pub const ENOENT: i32 = 2;
/// Input/output error.
pub const EIO: i32 = 5;
/// Bad file descriptor.
pub const EBADF: i32 = 9;
/// Resource temporarily unavailable.
pub const EAGAIN: i32 = 11;
/// Cannot allocate memory.
pub const ENOMEM: i32 = 12;
/// Permission denied.
pub const EACCES: i32 = 13;
/// Device or resource busy.
pub const EBUSY: i32 = 16;
/// File exists.
pub const EEXIST: i32 = 17;
/// Invalid cross-device link.
pub const EXDEV: i32 = 18;
/// Not a directory.
pub const ENOTDIR: i32 = 20;
/// Is a directory.
pub const EISDIR: i32 = 21;
/// Invalid argument.
pub const EINVAL: i32 = 22;
/// Too many open files in system.
pub const ENFILE: i32 = 23;
/// Too many open files.
pub const EMFILE: i32 = 24;
/// File too large.
pub const EFBIG: i32 = 27;
/// No space left on device.
pub const ENOSPC: i32 = 28;
/// Read-only file system.
pub const EROFS: i32 = 30;
/// Too many links.
pub const EMLINK: i32 = 31;
/// Broken pipe.
pub const EPIPE: i32 = 32;
/// File name too long.
pub const ENAMETOOLONG: i32 = 36;
/// Function not implemented.
pub const ENOSYS: i32 = 38;
/// Directory not empty.
pub const ENOTEMPTY: i32 = 39;
/// Too many levels of symbolic links.
pub const ELOOP: i32 = 40;
/// Protocol error.
pub const EPROTO: i32 = 71;
/// Cannot assign requested address.
pub const EADDRNOTAVAIL: i32 = 99;
/// Network is unreachable.
pub const ENETUNREACH: i32 = 101;
/// Connection reset by peer.
pub const ECONNRESET: i32 = 104;
/// No buffer space available.
pub const ENOBUFS: i32 = 105;
/// Connection timed out.
pub const ETIMEDOUT: i32 = 110;
/// Connection refused.
pub const ECONNREFUSED: i32 = 111;
/// No route to host.
pub const EHOSTUNREACH: i32 = 113;
/// Stale file handle.
pub const ESTALE: i32 = 116;
/// Disk quota exceeded.
pub const EDQUOT: i32 = 122;

/// The words of an error, without Rust's ` (os error 111)`.
#[must_use]
pub fn words(error: &Error) -> String {
    let mut text = error.to_string();
    if let Some(end) = text.find(" (os error") {
        text.truncate(end);
    }
    text
}

/// An error with its number, which is 0 where the kernel gave none.
#[must_use]
pub fn describe(error: &Error) -> String {
    format!("{}: {}", error.raw_os_error().unwrap_or(0), words(error))
}

/// A number with its words.
#[must_use]
pub fn reason(errno: i32) -> String {
    describe(&Error::from_raw_os_error(errno))
}

#[cfg(test)]
mod tests {
    use std::io::Error;

    use super::{describe, reason, words};

    #[test]
    fn errors_are_told_as_nginx_tells_them() {
        let refused = Error::from_raw_os_error(111);
        assert!(refused.to_string().ends_with(" (os error 111)"), "{refused}");
        assert_eq!(words(&refused), "Connection refused");
        assert_eq!(describe(&refused), "111: Connection refused");
        assert_eq!(reason(2), "2: No such file or directory");
        let own = Error::other("the file is too large");
        assert_eq!(words(&own), "the file is too large");
        assert_eq!(describe(&own), "0: the file is too large");
    }
}
