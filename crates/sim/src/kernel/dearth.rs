//! Every call of the door that can fail for want of something, or by an error of the machine, and
//! the error numbers that it may get. What the network does to datagrams is the weather's.

use std::collections::BTreeSet;

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

const ENOENT: i32 = 2;
const EIO: i32 = 5;
/// What asks for another try later.
pub const EAGAIN: i32 = 11;
const ENOMEM: i32 = 12;
const EACCES: i32 = 13;
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;
const EFBIG: i32 = 27;
const ENOSPC: i32 = 28;
const EROFS: i32 = 30;
const EPIPE: i32 = 32;
const ENAMETOOLONG: i32 = 36;
const ELOOP: i32 = 40;
const EADDRNOTAVAIL: i32 = 99;
const ENETUNREACH: i32 = 101;
const ECONNRESET: i32 = 104;
const ENOBUFS: i32 = 105;
const ETIMEDOUT: i32 = 110;
const ECONNREFUSED: i32 = 111;
const EHOSTUNREACH: i32 = 113;
const ESTALE: i32 = 116;
const EDQUOT: i32 = 122;

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
