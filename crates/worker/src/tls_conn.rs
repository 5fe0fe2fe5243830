//! What makes a link secret: the settings of a site, and the session of one link.

use std::sync::{Arc, Weak};

use bolide_base::Segment;
use bolide_conf::model::Protocol;
use bolide_engine::Site;
use bolide_tls::{OriginSession, OriginTls};
use bolide_upstream::{OriginRequest, Secure};
use bytes::Bytes;

use crate::generation::Generation;

/// What TLS to origins is like, by the site that says so.
#[derive(Debug, Default)]
pub(crate) struct UpstreamTlsSettings(Vec<(Weak<Site>, Arc<[OriginTls]>)>);

impl UpstreamTlsSettings {
    /// Learns what a configuration says; forgets what cannot be asked for any more.
    pub(crate) fn learn(&mut self, generation: &Generation) {
        self.0.retain(|(site, _)| site.strong_count() > 0);
        self.0.push((Arc::downgrade(&generation.site), Arc::clone(&generation.origin_tls)));
    }

    /// What holds for a request of `site`; none if its origin is spoken to in the clear.
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

/// What makes a link secret.
#[derive(Debug)]
pub(crate) struct LinkTls {
    pub(crate) session: OriginSession,
    /// What was wanted of it: no other request may use it.
    pub(crate) wanted: Arc<Secure>,
    /// What the origin said before it was asked.
    pub(crate) early: Vec<u8>,
    /// Plain bytes that were sealed and are not counted as sent yet.
    pub(crate) owed: u64,
    /// The handshake is over, and the origin is who it should be.
    pub(crate) is_good: bool,
}

impl LinkTls {
    /// The session that a request wants; none where none is wanted.
    ///
    /// # Errors
    ///
    /// In nginx's words: what the origin is to be shown cannot be had.
    pub(crate) fn new(
        request: &OriginRequest,
        all: Option<&Arc<[OriginTls]>>,
    ) -> Result<Option<Box<Self>>, String> {
        let Some(wanted) = request.secure.clone() else { return Ok(None) };
        debug_assert!(request.protocol == Protocol::Http, "no other protocol has it");
        let settings = all.and_then(|all| all.get(wanted.settings as usize));
        let settings = settings.ok_or("no settings for TLS to this origin")?;
        let pems = wanted.certificate.as_ref().map(|[chain, key]| (&**chain, &**key));
        let session = settings.session(&wanted.name, pems)?;
        Ok(Some(Box::new(Self { session, wanted, early: Vec::new(), owed: 0, is_good: false })))
    }

    /// Seals `plain` into what is to be sent.
    pub(crate) fn seal(&mut self, plain: &[u8]) -> Segment {
        let mut sealed = Vec::new();
        self.session.seal(plain, &mut sealed);
        self.owed += plain.len() as u64;
        Segment::Bytes(Bytes::from(sealed))
    }

    /// What the session itself has to say.
    pub(crate) fn take_output(&mut self) -> Option<Segment> {
        let mut words = Vec::new();
        self.session.transmit(&mut words);
        (!words.is_empty()).then(|| Segment::Bytes(Bytes::from(words)))
    }

    /// The last words; none during the handshake.
    pub(crate) fn close_notify(&mut self) -> Option<Segment> {
        if !self.is_good {
            return None;
        }
        let mut words = Vec::new();
        self.session.close(&mut words);
        (!words.is_empty()).then(|| Segment::Bytes(Bytes::from(words)))
    }
}
