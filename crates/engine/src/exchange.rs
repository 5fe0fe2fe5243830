//! One request from its head to its log line: the table of its states.
//!
//! ```text
//!   Idle ── start ──▶ Received ── Start, Refused ──▶ (steps)
//!
//!   (steps) wait in                 until                       and go on with
//!     Probing(step)                 Probed                      the same step
//!     Compressing(step)             Compressed                  the same step
//!     Checking(step)                PasswordChecked             the same step
//!     Delaying                      Deadline                    access
//!     AwaitingAuth                  Fragment                    access, or 444
//!     Collecting(step)              Body, BodyEnd, Spooled      the next step
//!     Coalescing                    Filled, Recalled, Deadline  the look-up, or the response
//!     Fetching                      Origin                      the response
//!     Assembling                    Fragment, Filled, Origin    the response
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
pub(crate) mod client;
pub(crate) mod end;
mod machine;
pub(crate) mod pace;
pub(crate) mod post_action;
mod respond;
mod steps;

use crate::answer::Answer;
use crate::caching::CacheTransaction;
use crate::explain::{ExplainTrial, Trace};
use crate::phase::auth_request::AuthVerdict;
use crate::phase::rewrite::RewriteCursor;
use crate::request::Request;

pub(crate) use client::stays;
pub use pace::Rate;
pub(crate) use post_action::PostActionState;

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
    /// A password is being checked; then this step is made again.
    Checking(RequestStep),
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
    /// Another location was asked whether the request may come in.
    AwaitingAuth,
    /// The head was handed over; the body is pulled.
    Delivering,
    /// The answer was handed over; the origin has not said that it is done.
    Settling,
    /// The log lines are written.
    Done,
}

/// What is to be done next with a request, in nginx's order of phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestStep {
    /// The server block's own rewrite phase, if it has one.
    Server,
    /// The search for a location.
    Find,
    /// The location is known: `internal`, body size.
    Location,
    /// The rewrite phase of a server block or location, from an instruction on.
    Rewrite(RewriteCursor),
    /// `allow`, `deny`, `auth_basic`, `auth_request`
    Access,
    /// `try_files`, from this candidate on.
    TryFiles(usize),
    /// Files: what kind of path is it?
    Content,
    /// `index`, from this name on.
    Index(usize),
    /// Whether the directory is there whose index is not.
    IndexDirectory(usize),
    /// `autoindex`
    Listing,
    /// A file.
    File,
    /// An origin: what has to be known and had before it is asked.
    Origin,
    /// The origin is asked.
    Ask,
}

/// Where a step leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextStep {
    /// To another step.
    Step(RequestStep),
    /// Nowhere until a look at the disk is done; then this step again.
    Probe(RequestStep),
    /// Nowhere until a compressed form is made; then this step again.
    Compress(RequestStep),
    /// Nowhere until a password is checked; then this step again.
    CheckPassword(RequestStep),
    /// Nowhere until the deadline.
    Delay,
    /// Nowhere until the request body is here; then to this step.
    Collect(RequestStep),
    /// Nowhere until the origin says more.
    Fetch,
    /// Nowhere until the fill that is waited for moves.
    Coalesce,
    /// Nowhere until the heads of the page's fragments are there.
    Assemble,
    /// Nowhere until it is known whether the request may come in.
    AwaitAuth,
    /// To an error answer.
    Fail(u16),
    /// To a redirect to the address in `Exchange::location`; error pages may apply.
    Redirect(u16),
    /// To the server's own page for this status, whatever `error_page` says.
    Page(u16),
    /// The answer is complete.
    Respond,
    /// The connection is closed without an answer.
    /// It is logged with this status.
    CloseWithoutResponse(u16),
}

/// One request in work, and its answer. Exchanges are pooled: all buffers are kept.
#[derive(Debug, Default)]
pub struct Exchange {
    state: ExchangeState,
    probes_left: u8,
    pub(crate) request: Request,
    pub(crate) answer: Answer,
    /// A path on disk.
    pub(crate) path: Vec<u8>,
    /// The address of a redirect; empty if there is none.
    pub(crate) location: Vec<u8>,
    /// What came of checking a password, until it is looked at.
    pub(crate) password: Option<bool>,
    /// What came of asking another location, until it is looked at.
    pub(crate) verdict: Option<Box<AuthVerdict>>,
    /// `WWW-Authenticate`; empty if there is none.
    pub(crate) challenge: Vec<u8>,
    /// For whatever a step needs.
    pub(crate) scratch: Vec<u8>,
    /// For ranges.
    pub(crate) ranges: Vec<bolide_http::range::ByteRange>,
    /// Whether a compressed form was waited for already.
    pub(crate) waited_for_form: bool,
    /// Whether a listing was asked for already.
    pub(crate) waited_for_listing: bool,
    /// Bytes of the file of which impossible ranges were asked.
    pub(crate) unsatisfied: Option<u64>,
    /// What it knows of the store.
    pub(crate) cache: CacheTransaction,
    /// Where a trial run writes its way down; none for requests of clients.
    pub(crate) trace: Option<Box<Trace>>,
    /// A trial that waits for a look at the disk.
    pub(crate) trial: Option<Box<ExplainTrial>>,
}
