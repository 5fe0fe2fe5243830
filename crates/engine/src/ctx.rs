//! What an exchange is lent for one step, why it is stepped, and what it wants done.
//!
//! The vocabulary between worker and exchange: values only, nothing here acts.

use std::net::SocketAddr;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

use bolide_base::prng::Prng;
use bolide_base::{ClientCert, Now, TcpInfo};
use bolide_http::Scheme;
use bolide_upstream::UpstreamGroups;
use bytes::Bytes;

use crate::caching::fill::Fill;
use crate::counters::RequestTallies;
use crate::log::Logs;
use crate::password::PasswordCheck;
use crate::site::Site;

/// A site as one worker holds it: cloning it for a request touches no counter of another core.
#[derive(Clone, Debug)]
#[allow(
    clippy::redundant_allocation,
    reason = "the inner counts are shared by cores, the outer is not"
)]
pub struct SiteRef(Rc<(Arc<Site>, Arc<UpstreamGroups>)>);

impl SiteRef {
    /// Wraps a site and its origins for this worker; do it once per worker and configuration.
    #[must_use]
    pub fn new(site: Arc<Site>, groups: Arc<UpstreamGroups>) -> Self {
        Self(Rc::new((site, groups)))
    }

    /// The groups of origins that the site names.
    #[must_use]
    pub fn groups(&self) -> &Arc<UpstreamGroups> {
        &self.0.1
    }

    /// The shared site.
    #[must_use]
    pub fn shared(&self) -> &Arc<Site> {
        &self.0.0
    }
}

impl Deref for SiteRef {
    type Target = Site;

    #[inline]
    fn deref(&self) -> &Site {
        &self.0.0
    }
}

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAddress {
    /// IP address and port.
    Inet(SocketAddr),
    /// A unix socket.
    Unix,
}

impl ClientAddress {
    /// The port; 0 for unix sockets.
    #[must_use]
    pub const fn port(self) -> u16 {
        match self {
            Self::Inet(addr) => addr.port(),
            Self::Unix => 0,
        }
    }

    /// The address; none for unix sockets.
    #[must_use]
    pub const fn ip(self) -> Option<std::net::IpAddr> {
        match self {
            Self::Inet(addr) => Some(addr.ip()),
            Self::Unix => None,
        }
    }
}

/// What the handshake settled.
#[derive(Clone, Debug, Default)]
pub struct TlsFacts {
    /// `TLSv1.3`
    pub protocol: &'static str,
    /// OpenSSL's or the RFC's name of the cipher.
    pub cipher: &'static str,
    /// The key exchange group.
    pub curve: &'static str,
    /// The protocol that ALPN chose; empty if none.
    pub alpn: &'static str,
    /// The name that the client asked for.
    pub server_name: Option<Box<str>>,
    /// Whether a session was resumed.
    pub reused: bool,
    /// Ciphers and groups that the client offered, where a variable or a log names them.
    pub offers: Option<Box<(Box<str>, Box<str>)>>,
    /// What the session is called, where a variable or a log names them.
    pub session_id: Option<Box<[u8]>>,
    /// How our side signed.
    pub signature: &'static str,
    /// How the client signed.
    pub client_signature: &'static str,
    /// What the client's certificate says and is worth, where one is asked for.
    pub client: Option<Arc<ClientCert>>,
}

/// What is known of a connection, the same for all its requests.
#[derive(Clone, Debug)]
pub struct ConnInfo {
    /// `$connection`
    pub serial: u64,
    /// The client.
    pub remote: ClientAddress,
    /// The address that the client reached.
    pub local: ClientAddress,
    /// Index into the configuration's listens.
    pub listen: usize,
    /// Whether TLS or QUIC is spoken.
    pub scheme: Scheme,
    /// The handshake's outcome, if there was one.
    pub tls: Option<TlsFacts>,
    /// What the PROXY protocol said of the client, if it did.
    pub proxy: Option<Box<ProxyFacts>>,
    /// When the connection was accepted.
    pub started: Now,
}

/// What a balancer says of a connection that it hands on (PROXY protocol).
#[derive(Clone, Debug, Default)]
pub struct ProxyFacts {
    /// The client's address as text, maybe not a good one.
    pub source: Box<str>,
    /// The client's port.
    pub source_port: u16,
    /// The address that the client reached.
    pub target: Box<str>,
    /// The port that the client reached.
    pub target_port: u16,
    /// Further fields of version 2: type, two bytes of length, value, and again.
    pub fields: Box<[u8]>,
}

/// Why framing refused a request or its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRefusal {
    /// The status, nginx's internal codes 494 to 497 included.
    pub status: u16,
    /// For the error log, in nginx's words: `client sent invalid method`.
    pub reason: &'static str,
}

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
    /// What the disk had for `Effect::Recall`.
    Recalled(Box<crate::caching::Recalled>),
    /// Nothing can be sent any more.
    ClientGone,
    /// The client took nothing for too long and is sent away; that is logged already.
    SendTimeout,
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

impl Wake {
    /// Whether it comes from the client's side.
    pub(crate) const fn is_of_client(&self) -> bool {
        matches!(
            self,
            Self::Body(_)
                | Self::BodyEnd
                | Self::BodyRefused(_)
                | Self::ClientGone
                | Self::SendTimeout
                | Self::Sent { .. }
        )
    }
}

/// Whether something may be begun behind an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    /// It may.
    Room,
    /// The connection has too much of it under way.
    Crowded,
    /// The worker has.
    Full,
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
    /// Chance.
    pub prng: &'a mut Prng,
    /// Where log lines go.
    pub logs: &'a mut Logs,
    /// Where wishes go, in order.
    pub effects: &'a mut Vec<StepEffect>,
    /// Requests on this connection so far, this one included.
    pub requests_on_conn: u64,
    /// Whether `post_action` may begin.
    pub behind: Behind,
    /// Connections and requests of the process.
    pub counters: &'a RequestTallies,
    /// This worker's table of kept answers, if any are kept.
    pub cache: Option<&'a mut bolide_cache::Front>,
    /// Names this exchange to those who wake it with `Filled`.
    pub me: u64,
    /// What the kernel says of the connection; asked only where a variable names it.
    pub tcp: Option<TcpInfo>,
}

/// What there is to know beside an exchange whose answer leaves.
#[derive(Clone, Copy, Debug)]
pub struct Around<'a> {
    /// The turn's time.
    pub now: &'a Now,
    /// The turn's time as text.
    pub clock: &'a bolide_http::date::DateClock,
    /// The connection.
    pub conn: &'a ConnInfo,
    /// Connections and requests of the process.
    pub counters: &'a RequestTallies,
    /// `$pid`
    pub pid: u32,
}

/// What an exchange wants done. The worker does it; the exchange never does.
#[derive(Debug)]
pub enum StepEffect {
    /// Look at a file through the door, put what is found into the table, wake with `Probed`.
    Probe(bolide_files::Probe),
    /// Find out where this path leads, put that into the table, wake with `Probed`.
    Resolve(Box<[u8]>),
    /// Check a password, wake with `PasswordChecked`.
    CheckPassword(PasswordCheck),
    /// Compress a file, put the result into the table, wake with `Compressed`.
    Compress(bolide_files::CompressJob),
    /// The head is ready; the body is pulled.
    Respond,
    /// Ask for the fragments that `Exchange::next_fragment` names.
    Fragments,
    /// Ask what `Exchange::pose` says; wake with `Fragment` when it is answered.
    AuthSubrequest,
    /// A body that was pending may have bytes.
    Ready,
    /// What comes of the request body is thrown away without waking.
    DiscardBody,
    /// The request body is read from now on: so many bytes of it may come ahead of that.
    WantBody(u32),
    /// So many bytes of request body were taken; give their room back.
    BodyConsumed(usize),
    /// Write what `Exchange::spool` holds too much of to a file there; wake with `Spooled` when
    /// nothing is left to write.
    Spool(SpoolPlace),
    /// What listens for the store to the fetch that follows.
    Fill(Box<Fill>),
    /// Ask an origin for the store alone.
    Refresh(Box<bolide_upstream::OriginRequest>, Box<Fill>),
    /// Look on disk for what this permit is about; wake with `Recalled`.
    Recall(Box<bolide_cache::FillPermit>),
    /// Wake these with `Filled`, on whichever worker they are.
    News(bolide_cache::Wakes),
    /// Compress a kept answer for later: coding and level.
    CompressObject(Arc<bolide_cache::Object>, bolide_http::negotiate::Coding, i8),
    /// Ask an origin; what it does comes as `Wake::Origin`.
    Fetch(Box<bolide_upstream::OriginRequest>),
    /// More of the request body that goes to the origin. Its room is given back when it left.
    FetchBody(Bytes),
    /// The request body that goes to the origin is complete.
    FetchBodyEnd,
    /// Whether more of the origin's answer may be read; it is allowed at first.
    FetchMore(bool),
    /// Nothing more of the origin's answer is wanted.
    FetchDrop,
    /// Send a head that another one follows (103), if the protocol has such.
    Interim(Box<bolide_http::ResponseHead>),
    /// Wake with `Deadline` then.
    Deadline(bolide_base::Instant),
    /// Close the connection without an answer.
    CloseSilently,
    /// The client's part is over and the exchange goes on; its connection is rid of it.
    Outlive,
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
