//! One request from its head to its log line: servers, locations, phases, contents, filters.
//!
//! An [`Exchange`] is a state machine without I/O: the worker steps it with a [`Wake`], and it
//! returns [`StepEffect`]s for the worker to perform. It knows neither frames nor sockets; its only
//! view of the configuration is a compiled [`Site`].

mod answer;
mod body;
mod caching;
mod challenges;
mod connection;
pub mod console;
mod content;
mod counters;
mod credentials;
mod ctx;
mod debug_lines;
mod delivery;
mod derived;
mod exchange;
pub mod explain;
mod file_change;
mod filter;
mod forwarded;
pub mod handshake;
mod hash;
mod htaccess;
mod keys;
mod log_lines;
mod media_types;
pub mod metrics;
mod names;
mod pages;
mod persistence;
mod phase;
mod request;
mod route;
mod site;
mod subrequest;
pub mod tracing;
mod vars;

pub use answer::{BodyPiece, FileOwner, Pulled};
pub use body::RequestUpload;
pub use bolide_limit::{LimitHold, ReportRoom, Zone as LimitZone, Zones};
pub use bolide_log::{Batch, Due, LogId, LogTarget, Logs, VariableFile, datagrams};
pub use bolide_password::PasswordCheck;
pub use caching::Recalled;
pub use caching::fill::Fill;
pub use caching::shortcut::{OpenShortcut, Shortcut};
pub use challenges::{CertifiedNames, HttpChallenges};
pub use content::parts::PartHead;
pub use content::store::{StoreOrder, stored_time};
pub use counters::{ConnProtocol, RequestTallies, Tally, TallyCount, WorkerCount};
pub use ctx::{
    BackgroundCapacity, ClientAddress, ConnInfo, ConnRelay, JobResult, ProxyFacts, RequestRefusal,
    SendCtx, SiteRef, SpoolPlace, StepCtx, StepEffect, TlsFacts, Wake,
};
pub use exchange::child::SubrequestChild;
pub use exchange::parent::SubrequestParent;
pub use exchange::response_body::ResponseBody;
pub use exchange::{Exchange, Rate};
pub use file_change::{
    DavDepth, FileChange, FileChangeKind, FileOutcome, FilePlacement, FileTransfer,
};
pub use htaccess::memory::HtaccessMemory;
pub use site::Site;
pub use subrequest::{
    AuthSubrequest, AuthVerdict, CombinedHead, Inclusion, Lineage, Mirrored, SliceRequest,
    Subrequest,
};
