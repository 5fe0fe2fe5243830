//! TLS of upstream connections: the settings of a site, and the session of one link.

use std::sync::{Arc, Weak};

use bolide_base::Segment;
use bolide_conf::model::PeerAddress;
use bolide_engine::Site;
use bolide_tls::{OriginSession, OriginTls};
use bolide_upstream::{OriginRequest, Secure};
use bytes::Bytes;

use crate::generation::Generation;

/// The TLS settings for upstreams, by site.
#[derive(Debug, Default)]
pub(crate) struct UpstreamTlsSettings(Vec<(Weak<Site>, Arc<[OriginTls]>)>);

impl UpstreamTlsSettings {
    /// Adds the settings of a configuration; drops those that no request can use any more.
    pub(crate) fn learn(&mut self, generation: &Generation) {
        self.0.retain(|(site, _)| site.strong_count() > 0);
        self.0.push((Arc::downgrade(&generation.site), Arc::clone(&generation.origin_tls)));
    }

    /// The TLS settings for a request of `site`; none for plain text.
    pub(crate) fn find(
        &self,
        site: &Arc<Site>,
        request: &OriginRequest,
    ) -> Option<Arc<[OriginTls]>> {
        request.secure.as_ref()?;
        let known = self.0.iter().find(|(known, _)| known.as_ptr() == Arc::as_ptr(site));
        known.map(|(_, all)| Arc::clone(all))
    }
}

/// The TLS state of a link.
#[derive(Debug)]
pub(crate) struct LinkTls {
    pub(crate) session: OriginSession,
    /// The settings of its handshake: only requests with the same ones may use it.
    pub(crate) wanted: Arc<Secure>,
    /// Plain text that arrived before the request.
    pub(crate) early: Vec<u8>,
    /// Plain bytes that were encrypted and do not count as sent yet.
    pub(crate) owed: u64,
    /// Whether the handshake is complete, and the server was verified.
    pub(crate) is_good: bool,
}

impl LinkTls {
    /// The session for a request; none for plain text.
    ///
    /// # Errors
    ///
    /// In nginx's words: our certificate cannot be used.
    pub(crate) fn new(
        request: &OriginRequest,
        to: &PeerAddress,
        all: Option<&Arc<[OriginTls]>>,
    ) -> Result<Option<Box<Self>>, String> {
        let Some(wanted) = request.secure.clone() else { return Ok(None) };
        debug_assert!(request.protocol.has_tls(), "no other protocol has it");
        let settings = all.and_then(|all| all.get(wanted.settings as usize));
        let settings = settings.ok_or("no settings for TLS to this origin")?;
        let pems = wanted.certificate.as_ref().map(|[chain, key]| (&**chain, &**key));
        let session = settings.session(&wanted.name, &to.to_string(), pems)?;
        Ok(Some(Box::new(Self { session, wanted, early: Vec::new(), owed: 0, is_good: false })))
    }

    /// Encrypts `plain` for sending.
    pub(crate) fn seal(&mut self, plain: &[u8]) -> Segment {
        let mut sealed = Vec::new();
        self.session.seal(plain, &mut sealed);
        self.owed += plain.len() as u64;
        Segment::Bytes(Bytes::from(sealed))
    }

    /// The session's own output, such as handshake messages.
    pub(crate) fn take_output(&mut self) -> Option<Segment> {
        let mut words = Vec::new();
        self.session.transmit(&mut words);
        (!words.is_empty()).then(|| Segment::Bytes(Bytes::from(words)))
    }

    /// The close_notify; none during the handshake.
    pub(crate) fn close_notify(&mut self) -> Option<Segment> {
        if !self.is_good {
            return None;
        }
        let mut words = Vec::new();
        self.session.close(&mut words);
        (!words.is_empty()).then(|| Segment::Bytes(Bytes::from(words)))
    }
}
