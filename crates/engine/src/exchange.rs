//! One request from its head to its log line: the table of its states.
//!
//! ```text
//!   Idle ── start ──▶ Received ── Start, Refused ──▶ (steps)
//!
//!   (steps) wait in                 until                       and go on with
//!     Probing(step)                 Probed                      the same step
//!     Compressing(step)             Compressed                  the same step
//!     RunningJob(step)              JobDone                     the same step
//!     Checking(step)                PasswordChecked             the same step
//!     Changing                      FilesChanged                the response
//!     Delaying                      Deadline                    access
//!     AwaitingAuth                  Fragment                    access, or 444
//!     Collecting(step)              Body, BodyEnd, Spooled      the next step
//!     Coalescing                    Filled, Recalled, Deadline  the lookup, or the response
//!     Fetching                      Origin                      the response
//!     Assembling                    Fragment, Filled, Origin    the response
//!     AwaitingBody                  Origin, Filled, Deadline,   the response, or 500
//!                                   Spooled
//!
//!   (steps) ── response ──▶ Delivering ── Sent ──▶ Done
//!                               │ Sent, but the upstream server is not done
//!                               ▼
//!                            Settling ── Origin ──▶ Done
//!
//!   any but Idle and Done ── ClientGone, SendTimeout, TimeUp, 444 ──▶ Done
//! ```
//!
//! From `Done` the exchange goes back to the pool; `post_action` leads from the end of a response
//! to the steps once more. Only `machine` assigns the state. Easiest to break: an exchange asks
//! for `Respond` at most once, and for `Finish` exactly once.

pub(crate) mod admit;
mod body_size;
pub(crate) mod child;
pub(crate) mod client;
pub(crate) mod end;
mod machine;
mod mirror;
pub(crate) mod pace;
pub(crate) mod parent;
pub(crate) mod post_action;
mod rate;
mod respond;
pub(crate) mod response_body;
mod searched;
mod spent_body;
mod step;
mod steps;

use crate::answer::Answer;
use crate::caching::CacheTransaction;
use crate::content::search::FileSearch;
use crate::explain::ExplainTrial;
use crate::phase::checks::AccessChecks;
use crate::request::Request;

pub(crate) use body_size::refuse_body;
pub use rate::Rate;
pub(crate) use spent_body::refuse_rest;
pub(crate) use step::{NextStep, RequestStep};

/// The state of an exchange between two wakes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ExchangeState {
    /// In the pool.
    #[default]
    Idle,
    /// A head was given; it is not processed yet.
    Received,
    /// A file lookup is in progress; then this step is repeated.
    Probing(RequestStep),
    /// A compressed form is being made; then this step is repeated.
    Compressing(RequestStep),
    /// A part of a video, or a large listing, is being made; then this step is repeated.
    RunningJob(RequestStep),
    /// A password is being checked; then this step is repeated.
    Checking(RequestStep),
    /// Files are being changed (WebDAV).
    Changing,
    /// The control thread executes an action of the console.
    Commanding,
    /// `limit_req` or `auth_delay` delays the request or its refusal.
    Delaying,
    /// The request body is being read; then this step follows.
    Collecting(RequestStep),
    /// A fetch is in progress; its head has not arrived.
    Fetching,
    /// The request waits for the fill of another exchange, for the disk, or for other nodes.
    Coalescing,
    /// The page's head waits for heads of its fragments.
    Assembling,
    /// The head waits for the first bytes of a body that `SUBSTITUTE` or `INFLATE` reads.
    AwaitingBody,
    /// An authorization subrequest is in progress.
    AwaitingAuth,
    /// The head was sent; the body is pulled.
    Delivering,
    /// The response was sent; the fetch has not ended.
    Settling,
    /// The log lines are written; nothing follows.
    Done,
}

impl ExchangeState {
    /// Whether it has begun and has no response yet.
    const fn waits_for_response(self) -> bool {
        matches!(
            self,
            Self::Probing(_)
                | Self::Compressing(_)
                | Self::RunningJob(_)
                | Self::Checking(_)
                | Self::Changing
                | Self::Commanding
                | Self::Delaying
                | Self::Collecting(_)
                | Self::Fetching
                | Self::Coalescing
                | Self::AwaitingAuth
                | Self::Assembling
                | Self::AwaitingBody
        )
    }
}

/// One request in progress, with its response. Exchanges are pooled: all buffers are reused.
#[derive(Debug, Default)]
pub struct Exchange {
    state: ExchangeState,
    probes_left: u8,
    pub(crate) request: Request,
    pub(crate) answer: Answer,
    /// The search for the file of the request.
    pub(crate) search: FileSearch,
    /// The results of access checks.
    pub(crate) access: AccessChecks,
    /// Its state in the cache.
    pub(crate) cache: CacheTransaction,
    /// A trial run that waits for a file lookup.
    pub(crate) trial: Option<Box<ExplainTrial>>,
}
