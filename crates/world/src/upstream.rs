//! A simulated origin, and a client with a body: the work of a worker between the two.
//!
//! It sends the responses that a test sets, checks that there is one fetch at a time, and records
//! the requests.

use std::collections::VecDeque;
use std::os::fd::AsFd as _;
use std::sync::Arc;

use bolide_base::{CopyPolicy, FileRef, Retain, SendChain, Spool, SpoolLimits, SpoolPiece};
use bolide_conf::model::LogLevel;
use bolide_http::OriginHead;
use bolide_upstream::request::PassTarget;
use bolide_upstream::{Attempt, Cause, ConnectRefused, OriginLogLine, OriginNews, OriginRequest};
use bytes::Bytes;

/// Bytes that one write to a file takes.
const WRITE_MAX: usize = 1000;

/// One thing that a simulated origin does.
#[derive(Clone, Debug)]
pub enum Say {
    /// A head: the status (0 is none) and the fields.
    Head(u16, Vec<(String, String)>),
    /// A head that another one follows.
    Early(Vec<(String, String)>),
    /// Part of the body.
    Body(Bytes),
    /// That was all.
    End,
    /// There is no answer: the status, and seconds for `Retry-After`.
    Fail(u16, Option<u32>),
    /// A line for the error log about this peer.
    Log(String, Option<String>),
    /// An attempt at this peer that is over, with the status that came.
    Tried(String, u16),
    /// Nothing before the whole request body is here.
    AwaitBody,
    /// The client leaves.
    ClientLeaves,
}

impl Say {
    /// A head from `Name: value` lines.
    #[must_use]
    pub fn head(status: u16, lines: &[&str]) -> Self {
        Self::Head(status, fields(lines))
    }

    /// A 103 from `Name: value` lines.
    #[must_use]
    pub fn early(lines: &[&str]) -> Self {
        Self::Early(fields(lines))
    }

    /// A piece of the body.
    #[must_use]
    pub fn body(text: &str) -> Self {
        Self::Body(Bytes::copy_from_slice(text.as_bytes()))
    }
}

fn fields(lines: &[&str]) -> Vec<(String, String)> {
    let split = |line: &&str| line.split_once(": ").map(|(n, v)| (n.to_owned(), v.to_owned()));
    lines.iter().filter_map(split).collect()
}

/// A request that a simulated origin got.
#[derive(Debug)]
pub struct FuzzGot {
    /// Names and values in order.
    pub params: Vec<(String, String)>,
    /// The request body.
    pub body: Vec<u8>,
    /// Its length, as far as it was told.
    pub body_len: Option<u64>,
    /// The index of the group, if it was one.
    pub group: Option<u32>,
    /// Whether it may be made twice.
    pub is_idempotent: bool,
    /// Whether the end of its answer was not waited for.
    pub dropped: bool,
    /// What `hash` goes by.
    pub affinity: Vec<u8>,
}

impl FuzzGot {
    /// The last value of a parameter.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&str> {
        self.params.iter().rev().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// What an origin does next, as an exchange is told.
#[derive(Debug)]
pub(super) enum FuzzNext {
    News(OriginNews),
    ClientLeaves,
    Nothing,
}

/// A simulated origin: each request gets the next of its answers, the last one again and again.
#[derive(Debug, Default)]
pub struct FuzzUpstream {
    /// What it says to each request.
    pub answers: Vec<Vec<Say>>,
    /// What it was asked.
    pub got: Vec<FuzzGot>,
    /// Temporary files.
    files: Vec<(FileRef, Vec<u8>)>,
    /// Whether writing to a file fails.
    pub disk_is_full: bool,
    saying: VecDeque<Say>,
    spool: Option<Spool>,
    is_allowed: bool,
}

impl FuzzUpstream {
    /// Whether a request is under way.
    #[must_use]
    pub const fn is_asked(&self) -> bool {
        self.spool.is_some()
    }

    pub(super) fn ask(&mut self, request: OriginRequest) {
        assert!(self.spool.is_none(), "one origin is asked at a time");
        let OriginRequest { message, body, body_len, target, is_idempotent, affinity, .. } =
            request;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let answer = self.answers.get(self.got.len()).or(self.answers.last());
        self.saying = answer.cloned().unwrap_or_default().into();
        self.got.push(FuzzGot {
            params: message.pairs().map(|(name, value)| (text(name), text(value))).collect(),
            body: Vec::new(),
            body_len,
            group: match target {
                PassTarget::Group(id) => Some(id.0),
                PassTarget::Address(_) | PassTarget::Name(_) => None,
            },
            is_idempotent,
            dropped: false,
            affinity,
        });
        self.spool = Some(body);
        self.is_allowed = true;
        self.read_body();
    }

    /// Takes what there is of the request body; how many bytes came.
    fn read_body(&mut self) -> usize {
        let (Some(spool), Some(got)) = (&mut self.spool, self.got.last_mut()) else { return 0 };
        let before = got.body.len();
        loop {
            let mut out = SendChain::new(CopyPolicy::Contiguous);
            let piece = spool.pull(777, &mut out);
            got.body.extend_from_slice(out.contiguous().unwrap_or_default());
            match piece {
                SpoolPiece::More => {}
                SpoolPiece::File { file, offset, len } => {
                    let known = self.files.iter().find(|known| known.0 == file);
                    let content = &known.expect("the file was written").1;
                    let (start, end) = (offset as usize, (offset + len) as usize);
                    got.body.extend_from_slice(&content[start..end]);
                    spool.advance(len);
                }
                SpoolPiece::Pending | SpoolPiece::End | SpoolPiece::Broken => break,
            }
        }
        got.body.len() - before
    }

    /// Takes a streamed piece of the request body; how many bytes of room it gives back.
    pub(super) fn push_body(&mut self, bytes: Bytes) -> usize {
        if let Some(spool) = &mut self.spool {
            spool.push(bytes);
        }
        self.read_body()
    }

    /// The client's bytes of a tunnel replace the request body.
    pub(super) fn begin_tunnel(&mut self, memory: usize) {
        self.spool = Some(Spool::new(SpoolLimits { memory, file: 0 }, Retain::No));
    }

    pub(super) fn end_body(&mut self) {
        let spool = self.spool.as_mut().expect("a body ends while its request is under way");
        spool.finish();
    }

    /// Whether a request is under way whose answer may be told.
    pub(super) const fn is_allowed(&self) -> bool {
        self.is_allowed && self.spool.is_some()
    }

    pub(super) const fn allow(&mut self, more: bool) {
        self.is_allowed = more;
    }

    pub(super) fn drop_request(&mut self) {
        assert!(self.spool.take().is_some(), "what is dropped was under way");
        self.saying.clear();
        if let Some(got) = self.got.last_mut() {
            got.dropped = true;
        }
    }

    /// What it does next; nothing while it may not, or has nothing more to say.
    pub(super) fn next(&mut self) -> FuzzNext {
        let Some(spool) = &self.spool else { return FuzzNext::Nothing };
        if !self.is_allowed {
            return FuzzNext::Nothing;
        }
        if matches!(self.saying.front(), Some(Say::AwaitBody)) {
            if !spool.is_complete() {
                return FuzzNext::Nothing;
            }
            self.saying.pop_front();
        }
        let Some(say) = self.saying.pop_front() else { return FuzzNext::Nothing };
        if matches!(say, Say::End | Say::Fail(..)) {
            self.spool = None;
        }
        match say {
            Say::Head(status, fields) => FuzzNext::News(OriginNews::Head(head(status, &fields))),
            Say::Early(fields) => FuzzNext::News(OriginNews::Early(head(103, &fields))),
            Say::Body(bytes) => FuzzNext::News(OriginNews::Body(bytes)),
            Say::End => FuzzNext::News(OriginNews::End),
            Say::Fail(status, retry_after) => FuzzNext::News(OriginNews::Failed(ConnectRefused {
                status,
                retry_after,
                cause: Cause::Error,
            })),
            Say::Log(text, peer) => FuzzNext::News(OriginNews::Log(Box::new(OriginLogLine {
                level: LogLevel::Error,
                text: text.into_bytes(),
                doing: "while reading response header from upstream",
                peer: peer.map(Arc::from),
            }))),
            Say::Tried(peer, status) => {
                FuzzNext::News(OriginNews::Attempt(Box::new(attempt(&peer, status))))
            }
            Say::ClientLeaves => FuzzNext::ClientLeaves,
            Say::AwaitBody => self.next(),
        }
    }

    /// Writes what a body has for its file; in pieces, as a disk may.
    pub(super) fn write(&mut self, spool: &mut Spool) {
        while let Some(write) = spool.next_write() {
            if self.disk_is_full {
                return spool.fail();
            }
            let file = write.file.unwrap_or_else(|| {
                let fd = std::io::stdin().as_fd().try_clone_to_owned().expect("stdin is open");
                let file = FileRef::new(fd);
                self.files.push((file.clone(), Vec::new()));
                file
            });
            let known = self.files.iter_mut().find(|known| known.0 == file);
            let content = &mut known.expect("the file was made here").1;
            let at = write.offset as usize;
            let len = write.bytes.len().min(WRITE_MAX);
            content.truncate(at);
            content.extend_from_slice(&write.bytes[..len]);
            spool.written(file, len);
        }
    }

    /// A part of a temporary file.
    pub(super) fn read(&self, file: &FileRef, offset: u64, len: u64) -> Option<&[u8]> {
        let known = self.files.iter().find(|known| known.0 == *file)?;
        known.1.get(offset as usize..(offset + len) as usize)
    }
}

fn head(status: u16, lines: &[(String, String)]) -> Box<OriginHead> {
    let mut head = Box::new(OriginHead { status, ..OriginHead::default() });
    for (name, value) in lines {
        head.fields.push_text(name.as_bytes(), value.as_bytes());
    }
    head
}

fn attempt(peer: &str, status: u16) -> Attempt {
    Attempt {
        peer: peer.into(),
        bond: None,
        status,
        connect_ms: (status != 502).then_some(1),
        header_ms: (status < 500).then_some(20),
        response_ms: 1300,
        response_len: 5,
        bytes_received: 60,
        bytes_sent: 700,
        is_over: true,
    }
}
