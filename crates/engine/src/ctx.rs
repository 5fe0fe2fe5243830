//! The interface between worker and exchange: the wakes that step an exchange, the context of one
//! step, and the effects that the exchange requests.
//!
//! Plain values only; nothing here performs anything.

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
    ClientAddress, ConnInfo, ConnRelay, ProxyFacts, RequestRefusal, SendCtx, TlsFacts,
};
pub use crate::site::SiteRef;

/// Why an exchange is stepped.
#[derive(Debug)]
pub enum Wake {
    /// The request given to `start` is complete.
    Start,
    /// The request given to `start` must be refused.
    Refused(RequestRefusal),
    /// The table of open files now has the requested file, or its error.
    Probed,
    /// Part of the request body.
    Body(Bytes),
    /// The request body is complete.
    BodyEnd,
    /// The request body broke the rules.
    BodyRefused(RequestRefusal),
    /// The table now has the requested compressed form, or knows that there will be none.
    Compressed,
    /// The result of the last [`StepEffect::CutVideo`] or [`StepEffect::List`].
    JobDone(JobResult),
    /// The result of [`StepEffect::CheckPassword`]: whether the password is right.
    PasswordChecked(bool),
    /// Too many passwords wait to be checked.
    PasswordUnchecked,
    /// The time of the last [`StepEffect::Deadline`] has come.
    Deadline,
    /// An event of the fetch that [`StepEffect::Fetch`] started.
    Origin(bolide_upstream::OriginNews),
    /// The bytes that a spool handed out were written to its file, or the write failed: what the
    /// error log gets.
    Spooled(Option<Box<str>>),
    /// The fill that this exchange waits for has made progress or ended.
    Filled,
    /// A subrequest that this exchange waits for has a head, has ended or has failed.
    Fragment,
    /// The result of [`StepEffect::Recall`] or [`StepEffect::AskNodes`].
    Recalled(Box<Recalled>),
    /// The result of [`StepEffect::ChangeFiles`].
    FilesChanged(Box<FileOutcome>),
    /// The result of [`StepEffect::Command`].
    Commanded(Box<ConsoleOutcome>),
    /// The client has closed its side: nothing can be sent any more.
    ClientGone,
    /// As [`Self::ClientGone`], but the client reset its connection or stream.
    ClientReset,
    /// `send_timeout`: the client took nothing for too long and is disconnected; logged already.
    SendTimeout,
    /// A file became shorter after the head stated its length; the text is for the log. The
    /// response is cut off.
    FileTruncated(String),
    /// `worker_shutdown_timeout` is over.
    TimeUp,
    /// The last byte of the response was handed to the connection.
    Sent {
        /// Bytes of the response body that were sent.
        body_bytes: u64,
        /// Bytes of the head and of framing that were sent.
        head_bytes: u64,
    },
}

/// A result that was computed outside of the exchange for its response.
#[derive(Debug)]
pub enum JobResult {
    /// A part of a video.
    Video(Box<bolide_files::Mp4Made>),
    /// The listing of a directory.
    Listing(Bytes),
}

impl Wake {
    /// Whether the client causes this wake.
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

/// Whether a request without a client (`post_action`, `mirror`) may begin now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackgroundCapacity {
    /// It may begin.
    Available,
    /// The connection has its maximum of them in progress.
    ConnectionFull,
    /// The worker has its maximum of them in progress (`worker_connections`).
    WorkerFull,
}

/// The context of one step of an exchange.
#[derive(Debug)]
pub struct StepCtx<'a> {
    /// The time of the current turn.
    pub now: Now,
    /// The time of the current turn, formatted.
    pub clock: &'a bolide_http::date::DateClock,
    /// The client's connection.
    pub conn: &'a ConnInfo,
    /// This worker's table of open files.
    pub files: &'a mut bolide_files::FileTable,
    /// This worker's reusable rulings of `.htaccess` files.
    pub rulings: &'a mut HtaccessMemory,
    /// The source of random numbers.
    pub prng: &'a mut Prng,
    /// The sink of log lines.
    pub logs: &'a mut Logs,
    /// The effects that the step requests, in order.
    pub effects: &'a mut Vec<StepEffect>,
    /// Requests on this connection so far, this one included.
    pub requests_on_conn: u64,
    /// Whether `post_action` and `mirror` may begin requests.
    pub background: BackgroundCapacity,
    /// Connections and requests of the process.
    pub counters: &'a RequestTallies,
    /// This worker's front of the cache, if anything is cached.
    pub cache: Option<&'a mut bolide_cache::Front>,
    /// The key of this exchange, which others use to wake it with [`Wake::Filled`].
    pub me: u64,
    /// The kernel's `TCP_INFO` for the connection; read only if a variable needs it.
    pub tcp: Option<&'a TcpInfo>,
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

/// What an exchange requests of the worker, which performs it.
#[derive(Debug)]
pub enum StepEffect {
    /// Look up a file on disk, store the result in the table, wake with `Probed`.
    Probe(Box<bolide_files::Probe>),
    /// Resolve the links of this path, store the result in the table, wake with `Probed`.
    Resolve(Box<[u8]>),
    /// Check a password, wake with `PasswordChecked`.
    CheckPassword(Box<PasswordCheck>),
    /// Compress a file, store the result in the table, wake with `Compressed`.
    Compress(Box<bolide_files::CompressJob>),
    /// Cut a part of a video, wake with `JobDone`.
    CutVideo(Box<bolide_files::Mp4Job>),
    /// Write the listing of a large directory, wake with `JobDone`.
    List(Box<bolide_files::listing::ListingJob>),
    /// The response head is ready: send it, then pull the body.
    Respond,
    /// Start the subrequests that `SubrequestParent::next` returns.
    Fragments,
    /// Start the subrequest that `SubrequestParent::next_auth` returns; wake with `Fragment` when
    /// it has a result.
    AuthSubrequest,
    /// Start this mirror subrequest; it may outlive the exchange.
    Mirror(Box<Mirrored>),
    /// A body whose pull returned `Pending` may have bytes now.
    BodyReady,
    /// Discard the rest of the request body; do not wake for it.
    DiscardBody,
    /// Start to read the request body, with a window of this many bytes ahead of the reader.
    WantBody(u32),
    /// This many bytes of the request body were consumed; reopen the client's window by them.
    BodyConsumed(usize),
    /// Change files, wake with `FilesChanged`.
    ChangeFiles(Box<FileChange>),
    /// Have the control thread execute an action of the console, wake with `Commanded`.
    Command(Box<ConsoleAction>),
    /// Write the excess of the request's spool to a file at this place; wake with `Spooled` when
    /// nothing is left to write.
    Spool(SpoolPlace),
    /// The next fetch feeds this fill.
    Fill(Box<Fill>),
    /// Start a fetch for the cache alone (background update).
    Refresh(Box<bolide_upstream::OriginRequest>, Box<Fill>),
    /// Look up the object of this permit on disk; wake with `Recalled`.
    Recall(Box<bolide_cache::FillPermit>),
    /// Ask the cluster for the object of this permit; wake with `Recalled`.
    AskNodes(Box<bolide_cache::FillPermit>),
    /// Wake these exchanges with `Filled`, whichever worker they are on.
    WakeExchanges(bolide_cache::Wakes),
    /// Compress a cached object for later requests: coding and level.
    CompressObject(Arc<bolide_cache::Object>, bolide_http::negotiate::Coding, i8),
    /// Store the response to the next fetch as a file (`proxy_store`).
    StoreFile(Box<StoreOrder>),
    /// Start a fetch; its events arrive as [`Wake::Origin`].
    Fetch(Box<bolide_upstream::OriginRequest>),
    /// Deliver these events as [`Wake::Origin`] without a fetch.
    DeliverNews(Vec<bolide_upstream::OriginNews>),
    /// A piece of the request body for the fetch. The worker reopens the client's window when it
    /// was sent.
    FetchBody(Bytes),
    /// The request body for the fetch is complete.
    FetchBodyEnd,
    /// The fetch's connection is a tunnel now: its request body is replaced by what the client
    /// sends from here on, of which at most this many bytes are buffered.
    FetchTunnel(usize),
    /// Whether the fetch may read more of the response; it may at first.
    FetchMayRead(bool),
    /// Abort the fetch.
    FetchDrop,
    /// Send `100 Continue` (RFC 9110 §15.2.1).
    Continue,
    /// Send an interim response (103, RFC 8297), if the protocol supports it.
    Interim(Box<bolide_http::ResponseHead>),
    /// Wake with `Deadline` at this time.
    Deadline(bolide_base::Instant),
    /// Close the connection without a response.
    CloseSilently,
    /// The client has its response and the exchange goes on: detach it from its connection.
    Detach,
    /// The log lines are written; free the exchange.
    Finish,
}

/// Where a spool writes its file.
#[derive(Clone, Debug)]
pub enum SpoolPlace {
    /// In this directory, without a name.
    Unnamed(Arc<std::path::PathBuf>),
    /// In this directory with a name, even if nothing has to be written; the worker reports the
    /// name to `RequestUpload::set_file_name`.
    Named(Arc<bolide_conf::model::TempPath>),
}
