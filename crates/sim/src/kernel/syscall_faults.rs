//! The system calls that may fail for lack of a resource or by an error of the machine, and their
//! error numbers. Faults of the UDP network are in [`crate::net_conditions`].

use std::collections::BTreeSet;

use bolide_base::errno::{
    EACCES, EADDRNOTAVAIL, EAGAIN, ECONNREFUSED, ECONNRESET, EDQUOT, EFBIG, EHOSTUNREACH, EIO,
    ELOOP, EMFILE, ENAMETOOLONG, ENETUNREACH, ENFILE, ENOBUFS, ENOENT, ENOMEM, ENOSPC, EPIPE,
    EROFS, ESTALE, ETIMEDOUT,
};

use crate::chance::Chance;

/// A call of `Io`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "they have the names of the door's functions")]
pub enum IoCall {
    Watch,
    Accept,
    Connect,
    ConnectResult,
    TcpInfo,
    RealPath,
    Receive,
    Send,
    Open,
    List,
    Read,
    CreateTemp,
    WriteAt,
    Create,
    MakeDirectory,
    Unlink,
    Stat,
    OpenLog,
    OpenDatagrams,
    Append,
}

/// All calls with their error numbers.
pub const IO_CALLS: [(IoCall, &[i32]); 20] = [
    (IoCall::Watch, &[ENOMEM, ENOSPC]),
    (IoCall::Accept, &[EMFILE, ENFILE, ENOBUFS, ENOMEM]),
    (
        IoCall::Connect,
        &[
            EMFILE,
            ENFILE,
            ENOBUFS,
            ENOMEM,
            EAGAIN,
            ECONNREFUSED,
            ENETUNREACH,
            EADDRNOTAVAIL,
            EACCES,
            ENOENT,
        ],
    ),
    (IoCall::ConnectResult, &[ETIMEDOUT, ECONNREFUSED, EHOSTUNREACH]),
    (IoCall::TcpInfo, &[EIO]),
    (IoCall::RealPath, &[ENOENT, EACCES, ELOOP, EIO]),
    (IoCall::Receive, &[EAGAIN, EAGAIN, EAGAIN, ECONNRESET]),
    (IoCall::Send, &[EAGAIN, EAGAIN, EAGAIN, EPIPE]),
    (IoCall::Open, &[EACCES, EMFILE, ENFILE, ENOMEM, EIO, ENOENT, ELOOP, ENAMETOOLONG]),
    (IoCall::List, &[EMFILE, EACCES, EIO]),
    (IoCall::Read, &[EIO, ESTALE]),
    (IoCall::CreateTemp, &[EMFILE, ENOSPC, EACCES, EROFS, EDQUOT]),
    (IoCall::WriteAt, &[ENOSPC, EIO, EDQUOT, EFBIG]),
    (IoCall::Create, &[EMFILE, ENOSPC, EACCES, EROFS]),
    (IoCall::MakeDirectory, &[ENOSPC, EACCES, EROFS]),
    (IoCall::Unlink, &[EACCES, EIO]),
    (IoCall::Stat, &[EIO]),
    (IoCall::OpenLog, &[EMFILE, EACCES, ENOSPC]),
    (IoCall::OpenDatagrams, &[EMFILE, ENOBUFS, ECONNREFUSED]),
    (IoCall::Append, &[ENOSPC, EIO, EPIPE]),
];

/// The failed calls of a run.
#[derive(Debug, Default)]
pub struct SyscallFaults {
    /// The rate: a call fails once in so many times; 0 for never.
    pub once_in: u64,
    /// Calls that have failed.
    pub failed: BTreeSet<IoCall>,
}

impl SyscallFaults {
    /// Draws whether this call fails, and its error number.
    pub fn draw(&mut self, call: IoCall, chance: &mut Chance) -> Option<i32> {
        if !chance.one_in(self.once_in) {
            return None;
        }
        self.failed.insert(call);
        let (_, errors) = IO_CALLS.iter().find(|(known, _)| *known == call)?;
        Some(errors[chance.index(errors.len())])
    }

    /// Whether any call has failed.
    #[must_use]
    pub fn any_failed(&self) -> bool {
        !self.failed.is_empty()
    }
}
