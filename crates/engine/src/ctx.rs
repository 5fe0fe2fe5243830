//! What an exchange is lent for one step, why it is stepped, and what it wants done.
//!
//! The vocabulary between worker and exchange: values only, nothing here acts.

use std::sync::Arc;

use bolide_base::prng::Prng;
use bolide_base::{Now, TcpInfo};
use bytes::Bytes;

use crate::answer::Answer;
use crate::caching::Recalled;
use crate::caching::fill::Fill;
use crate::console::{ConsoleAction, ConsoleOutcome};
use crate::content::store::StoreOrder;
use crate::counters::RequestTallies;
use crate::file_change::{FileChange, FileOutcome};
use crate::htaccess::memory::HtaccessMemory;
use crate::request::Request;
use crate::site::Site;
use crate::subrequest::Mirrored;
use crate::vars::VariableScope;
use bolide_log::Logs;
use bolide_password::PasswordCheck;

pub use crate::connection::{
    ClientAddress, ConnInfo, ProxyFacts, RequestRefusal, SendCtx, TlsFacts,
};
pub use crate::site::SiteRef;

/// Why an exchange is stepped.
#[derive(Debug)]
pub enum Wake {
    /// The request given to `start` is complete.
    Start,
    /// The request given to `start` must be refused.
    Refused(RequestRefusal),
    /// The file that was asked for is in the table now, or its failure is.
    Probed,
    /// Part of the request body.
    Body(Bytes),
    /// The request body is complete.
    BodyEnd,
    /// The request body broke the rules.
    BodyRefused(RequestRefusal),
    /// The compressed form that was asked for is in the table now, or will not be.
    Compressed,
    /// What came of the last `Effect::CutVideo` or `Effect::List`.
    JobDone(JobResult),
    /// The password that was to be checked is right, or is not.
    PasswordChecked(bool),
    /// The moment of the last `Effect::Deadline` has come.
    Deadline,
    /// What the origin did that was asked by `Effect::Fetch`.
    Origin(bolide_upstream::OriginNews),
    /// Bytes that a spool gave away were written to its file, or could not be.
    Spooled,
    /// A fill that it waits for has moved.
    Filled,
    /// Something has become of a fragment that it waits for.
    Fragment,
    /// What the disk had for `Effect::Recall`, or other nodes for `Effect::AskNodes`.
    Recalled(Box<Recalled>),
    /// What came of `Effect::ChangeFiles`.
    FilesChanged(Box<FileOutcome>),
    /// What came of `Effect::Command`.
    Commanded(Box<ConsoleOutcome>),
    /// Nothing can be sent any more.
    ClientGone,
    /// The same, for the client has reset its connection.
    ClientReset,
    /// The client took nothing for too long and is sent away; that is logged already.
    SendTimeout,
    /// A file has nothing where it had something when the head was sent, in words for the log: the
    /// answer is cut.
    FileTruncated(String),
    /// The server waits no longer.
    TimeUp,
    /// The last byte of the answer was handed over.
    Sent {
        /// Bytes of the body that left.
        body_bytes: u64,
        /// Bytes of the head and of framing that left.
        head_bytes: u64,
    },
}

/// What was made beside the worker for an answer.
#[derive(Debug)]
pub enum JobResult {
    /// A part of a video.
    Video(Box<bolide_files::Mp4Made>),
    /// The listing of a directory.
    Listing(Bytes),
}

impl Wake {
    /// Whether it comes from the client's side.
    pub(crate) const fn is_of_client(&self) -> bool {
        matches!(
            self,
            Self::Body(_)
                | Self::BodyEnd
                | Self::BodyRefused(_)
                | Self::ClientGone
                | Self::ClientReset
                | Self::SendTimeout
                | Self::Sent { .. }
        )
    }
}

/// Whether something may be begun behind an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackgroundCapacity {
    /// It may.
    Available,
    /// The connection has too much of it under way.
    ConnectionFull,
    /// The worker has.
    WorkerFull,
}

/// What an exchange is lent for one step.
#[derive(Debug)]
pub struct StepCtx<'a> {
    /// The turn's time.
    pub now: Now,
    /// The turn's time as text.
    pub clock: &'a bolide_http::date::DateClock,
    /// The connection.
    pub conn: &'a ConnInfo,
    /// This worker's open files.
    pub files: &'a mut bolide_files::FileTable,
    /// This worker's rulings of `.htaccess` files that hold for other requests.
    pub rulings: &'a mut HtaccessMemory,
    /// Chance.
    pub prng: &'a mut Prng,
    /// Where log lines go.
    pub logs: &'a mut Logs,
    /// Where wishes go, in order.
    pub effects: &'a mut Vec<StepEffect>,
    /// Requests on this connection so far, this one included.
    pub requests_on_conn: u64,
    /// Whether `post_action` may begin.
    pub background: BackgroundCapacity,
    /// Connections and requests of the process.
    pub counters: &'a RequestTallies,
    /// This worker's table of kept answers, if any are kept.
    pub cache: Option<&'a mut bolide_cache::Front>,
    /// Names this exchange to those who wake it with `Filled`.
    pub me: u64,
    /// What the kernel says of the connection; asked only where a variable names it.
    pub tcp: Option<TcpInfo>,
}

impl<'a> VariableScope<'a> {
    /// The scope of a request within a step.
    pub(crate) fn new(
        request: &'a Request,
        answer: &'a Answer,
        site: &'a Site,
        ctx: &StepCtx<'a>,
    ) -> Self {
        Self {
            request,
            answer,
            sent: None,
            site,
            conn: ctx.conn,
            now: ctx.now,
            clock: ctx.clock,
            counters: ctx.counters,
            pid: ctx.logs.pid(),
            tcp: ctx.tcp,
        }
    }
}

/// What an exchange wants done. The worker does it; the exchange never does.
#[derive(Debug)]
pub enum StepEffect {
    /// Look at a file through the door, put what is found into the table, wake with `Probed`.
    Probe(Box<bolide_files::Probe>),
    /// Find out where this path leads, put that into the table, wake with `Probed`.
    Resolve(Box<[u8]>),
    /// Check a password, wake with `PasswordChecked`.
    CheckPassword(Box<PasswordCheck>),
    /// Compress a file, put the result into the table, wake with `Compressed`.
    Compress(Box<bolide_files::CompressJob>),
    /// Make a part of a video, wake with `Made`.
    CutVideo(Box<bolide_files::Mp4Job>),
    /// Write the listing of a large directory, wake with `Made`.
    List(Box<bolide_files::listing::ListingJob>),
    /// The head is ready; the body is pulled.
    Respond,
    /// Ask for the fragments that `Exchange::next_fragment` names.
    Fragments,
    /// Ask what `Exchange::pose` says; wake with `Fragment` when it is answered.
    AuthSubrequest,
    /// Begin this mirror subrequest; it goes on when the exchange ends.
    Mirror(Box<Mirrored>),
    /// A body that was pending may have bytes.
    BodyReady,
    /// What comes of the request body is thrown away without waking.
    DiscardBody,
    /// The request body is read from now on: so many bytes of it may come ahead of that.
    WantBody(u32),
    /// So many bytes of request body were taken; give their room back.
    BodyConsumed(usize),
    /// Change files, wake with `FilesChanged`.
    ChangeFiles(Box<FileChange>),
    /// Have the control thread do something, wake with `Commanded`.
    Command(Box<ConsoleAction>),
    /// Write what `Exchange::spool` holds too much of to a file there; wake with `Spooled` when
    /// nothing is left to write.
    Spool(SpoolPlace),
    /// What listens for the store to the fetch that follows.
    Fill(Box<Fill>),
    /// Ask an origin for the store alone.
    Refresh(Box<bolide_upstream::OriginRequest>, Box<Fill>),
    /// Look on disk for what this permit is about; wake with `Recalled`.
    Recall(Box<bolide_cache::FillPermit>),
    /// Ask other nodes for what this permit is about; wake with `Recalled`, later or at once.
    AskNodes(Box<bolide_cache::FillPermit>),
    /// Wake these with `Filled`, on whichever worker they are.
    WakeExchanges(bolide_cache::Wakes),
    /// Compress a kept answer for later: coding and level.
    CompressObject(Arc<bolide_cache::Object>, bolide_http::negotiate::Coding, i8),
    /// The response to the fetch that follows becomes a file.
    StoreFile(Box<StoreOrder>),
    /// Ask an origin; what it does comes as `Wake::Origin`.
    Fetch(Box<bolide_upstream::OriginRequest>),
    /// What comes as `Wake::Origin` though no origin is asked.
    DeliverNews(Vec<bolide_upstream::OriginNews>),
    /// More of the request body that goes to the origin. Its room is given back when it left.
    FetchBody(Bytes),
    /// The request body that goes to the origin is complete.
    FetchBodyEnd,
    /// Whether more of the origin's answer may be read; it is allowed at first.
    FetchMayRead(bool),
    /// Nothing more of the origin's answer is wanted.
    FetchDrop,
    /// Send `100 Continue` (RFC 9110 §15.2.1).
    Continue,
    /// Send a head that another one follows (103), if the protocol has such.
    Interim(Box<bolide_http::ResponseHead>),
    /// Wake with `Deadline` then.
    Deadline(bolide_base::Instant),
    /// Close the connection without an answer.
    CloseSilently,
    /// The client's part is over and the exchange goes on; its connection is rid of it.
    Detach,
    /// The log lines are written; free the exchange.
    Finish,
}

/// Where a body goes that is written to a file.
#[derive(Clone, Debug)]
pub enum SpoolPlace {
    /// Below this directory, without a name.
    Unnamed(Arc<std::path::PathBuf>),
    /// Below this one with a name, of which `Exchange::note_body_file` is told; even if there is
    /// nothing to write.
    Named(Arc<bolide_conf::model::TempPath>),
}
