//! Every system call that can fail for lack of a resource or by an error of the machine, and its
//! possible error numbers. Faults of the network for datagrams are in `weather`.

use std::collections::BTreeSet;

use bolide_base::errno::{
    EACCES, EADDRNOTAVAIL, EAGAIN, ECONNREFUSED, ECONNRESET, EDQUOT, EFBIG, EHOSTUNREACH, EIO,
    ELOOP, EMFILE, ENAMETOOLONG, ENETUNREACH, ENFILE, ENOBUFS, ENOENT, ENOMEM, ENOSPC, EPIPE,
    EROFS, ESTALE, ETIMEDOUT,
};

use crate::chance::Chance;

/// A call of the door.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "they have the names of the door's functions")]
pub enum DoorCall {
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

/// All of them.
pub const DOOR: [(DoorCall, &[i32]); 20] = [
    (DoorCall::Watch, &[ENOMEM, ENOSPC]),
    (DoorCall::Accept, &[EMFILE, ENFILE, ENOBUFS, ENOMEM]),
    (
        DoorCall::Connect,
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
    (DoorCall::ConnectResult, &[ETIMEDOUT, ECONNREFUSED, EHOSTUNREACH]),
    (DoorCall::TcpInfo, &[EIO]),
    (DoorCall::RealPath, &[ENOENT, EACCES, ELOOP, EIO]),
    (DoorCall::Receive, &[EAGAIN, EAGAIN, EAGAIN, ECONNRESET]),
    (DoorCall::Send, &[EAGAIN, EAGAIN, EAGAIN, EPIPE]),
    (DoorCall::Open, &[EACCES, EMFILE, ENFILE, ENOMEM, EIO, ENOENT, ELOOP, ENAMETOOLONG]),
    (DoorCall::List, &[EMFILE, EACCES, EIO]),
    (DoorCall::Read, &[EIO, ESTALE]),
    (DoorCall::CreateTemp, &[EMFILE, ENOSPC, EACCES, EROFS, EDQUOT]),
    (DoorCall::WriteAt, &[ENOSPC, EIO, EDQUOT, EFBIG]),
    (DoorCall::Create, &[EMFILE, ENOSPC, EACCES, EROFS]),
    (DoorCall::MakeDirectory, &[ENOSPC, EACCES, EROFS]),
    (DoorCall::Unlink, &[EACCES, EIO]),
    (DoorCall::Stat, &[EIO]),
    (DoorCall::OpenLog, &[EMFILE, EACCES, ENOSPC]),
    (DoorCall::OpenDatagrams, &[EMFILE, ENOBUFS, ECONNREFUSED]),
    (DoorCall::Append, &[ENOSPC, EIO, EPIPE]),
];

/// What has failed in a run.
#[derive(Debug, Default)]
pub struct Dearth {
    /// A call fails, once in so many times; 0 for never.
    pub once_in: u64,
    /// Calls that have failed.
    pub seen: BTreeSet<DoorCall>,
}

impl Dearth {
    /// Whether this call fails, and with which error number.
    pub fn strike(&mut self, call: DoorCall, chance: &mut Chance) -> Option<i32> {
        if !chance.one_in(self.once_in) {
            return None;
        }
        self.seen.insert(call);
        let (_, errors) = DOOR.iter().find(|(known, _)| *known == call)?;
        Some(errors[chance.index(errors.len())])
    }

    /// Whether anything has failed.
    #[must_use]
    pub fn is_felt(&self) -> bool {
        !self.seen.is_empty()
    }
}
