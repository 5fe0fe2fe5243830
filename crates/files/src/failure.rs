//! Why a path could not be opened, and the status that a client gets for it.

use bolide_base::errno::{
    EACCES, EAGAIN, ELOOP, EMFILE, EMLINK, ENAMETOOLONG, ENFILE, ENOENT, ENOTDIR,
};

/// A failed file lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenFailure {
    /// The path does not exist (ENOENT).
    NotFound,
    /// A component of the path is not a directory (ENOTDIR).
    NotADirectory,
    /// The path or a part of it is too long (ENAMETOOLONG).
    NameTooLong,
    /// Access is denied (EACCES).
    PermissionDenied,
    /// A refused symbolic link, or a loop of links (ELOOP, EMLINK).
    Loop,
    /// Any other error number.
    Other(i32),
}

impl OpenFailure {
    /// The failure for Linux's `errno`.
    #[must_use]
    pub const fn from_errno(errno: i32) -> Self {
        match errno {
            ENOENT => Self::NotFound,
            ENOTDIR => Self::NotADirectory,
            ENAMETOOLONG => Self::NameTooLong,
            EACCES => Self::PermissionDenied,
            ELOOP | EMLINK => Self::Loop,
            other => Self::Other(other),
        }
    }

    /// Whether nothing can lie there, nor below.
    #[must_use]
    pub const fn is_absence(self) -> bool {
        matches!(self, Self::NotFound | Self::NotADirectory | Self::NameTooLong)
    }

    /// The error number, for log lines as `open() "/a" failed (2: No such file or directory)`.
    #[must_use]
    pub const fn errno(self) -> i32 {
        match self {
            Self::NotFound => ENOENT,
            Self::NotADirectory => ENOTDIR,
            Self::NameTooLong => ENAMETOOLONG,
            Self::PermissionDenied => EACCES,
            Self::Loop => ELOOP,
            Self::Other(errno) => errno,
        }
    }

    /// The text for [`Self::errno`].
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::NotFound => "No such file or directory",
            Self::NotADirectory => "Not a directory",
            Self::NameTooLong => "File name too long",
            Self::PermissionDenied => "Permission denied",
            Self::Loop => "Too many levels of symbolic links",
            Self::Other(ENFILE) => "Too many open files in system",
            Self::Other(EMFILE) => "Too many open files",
            Self::Other(5) => "Input/output error",
            Self::Other(6) => "No such device or address",
            Self::Other(EAGAIN) => "Resource temporarily unavailable",
            Self::Other(12) => "Cannot allocate memory",
            Self::Other(_) => "Error",
        }
    }

    /// The status for the client: 404, 403, 500, or 503 where too many wait.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::NotFound | Self::NotADirectory | Self::NameTooLong => 404,
            Self::PermissionDenied | Self::Loop => 403,
            Self::Other(EAGAIN) => 503,
            Self::Other(_) => 500,
        }
    }

    /// Whether descriptors have run out, so that closing some would help.
    #[must_use]
    pub const fn is_out_of_descriptors(self) -> bool {
        matches!(self, Self::Other(ENFILE | EMFILE))
    }
}

#[cfg(test)]
mod tests {
    use super::OpenFailure;

    #[test]
    fn error_numbers_keep_their_number_and_get_nginxs_status() {
        let cases =
            [(2, 404), (20, 404), (36, 404), (13, 403), (40, 403), (24, 500), (5, 500), (11, 503)];
        for (errno, status) in cases {
            let failure = OpenFailure::from_errno(errno);
            assert_eq!((failure.errno(), failure.status()), (errno, status));
            assert!(!failure.text().is_empty());
        }
        assert_eq!(OpenFailure::from_errno(31), OpenFailure::Loop);
        assert!(OpenFailure::from_errno(24).is_out_of_descriptors());
    }
}
