//! One request from its head to its log line: the table of its states.
//!
//! ```text
//!   Idle ── start ──▶ Received ── Start, Refused ──▶ (steps)
//!
//!   (steps) wait in                 until                       and go on with
//!     Probing(step)                 Probed                      the same step
//!     Compressing(step)             Compressed                  the same step
//!     Making(step)                  Made                        the same step
//!     Checking(step)                PasswordChecked             the same step
//!     Changing                      FilesChanged                the response
//!     Delaying                      Deadline                    access
//!     AwaitingAuth                  Fragment                    access, or 444
//!     Collecting(step)              Body, BodyEnd, Spooled      the next step
//!     Coalescing                    Filled, Recalled, Deadline  the look-up, or the response
//!     Fetching                      Origin                      the response
//!     Assembling                    Fragment, Filled, Origin    the response
//!     Beginning                     Origin, Filled, Deadline,   the response, or 500
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

/// Where an exchange stands between two wakes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ExchangeState {
    /// In the pool.
    #[default]
    Idle,
    /// A head was given; nothing was done with it.
    Received,
    /// A look at the disk is under way; then this step is made again.
    Probing(RequestStep),
    /// A compressed form is being made; then this step is made again.
    Compressing(RequestStep),
    /// A part of a video, or a large listing, is being made; then this step is made again.
    RunningJob(RequestStep),
    /// A password is being checked; then this step is made again.
    Checking(RequestStep),
    /// Files are being changed.
    Changing,
    /// The control thread does something.
    Commanding,
    /// The request or its refusal is held back.
    Delaying,
    /// The request body is on its way; then this step is made.
    Collecting(RequestStep),
    /// An origin was asked; its head is on its way.
    Fetching,
    /// Another exchange asked for the same; the head is on its way.
    Coalescing,
    /// Heads of fragments are on their way, which the page's own waits for.
    Assembling,
    /// The head waits for the first of a body that is searched.
    AwaitingBody,
    /// Another location was asked whether the request may come in.
    AwaitingAuth,
    /// The head was handed over; the body is pulled.
    Delivering,
    /// The answer was handed over; the origin has not said that it is done.
    Settling,
    /// The log lines are written.
    Done,
}

impl ExchangeState {
    /// Whether it is begun and there is no response yet.
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

/// One request in work, and its answer. Exchanges are pooled: all buffers are kept.
#[derive(Debug, Default)]
pub struct Exchange {
    state: ExchangeState,
    probes_left: u8,
    pub(crate) request: Request,
    pub(crate) answer: Answer,
    /// Where its file is looked for.
    pub(crate) search: FileSearch,
    /// What came of checks of access.
    pub(crate) access: AccessChecks,
    /// What it knows of the store.
    pub(crate) cache: CacheTransaction,
    /// A trial that waits for a look at the disk.
    pub(crate) trial: Option<Box<ExplainTrial>>,
}
