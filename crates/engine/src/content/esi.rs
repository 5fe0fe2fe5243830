//! Fragments of a page with ESI: what an include asks this server for, and when it may not.
//!
//! Owns the request that a fragment is to the server: the client's own, for another target, without
//! what concerns the page alone. Easiest to break: a fragment passes all checks that a client's
//! request for it would, and a page never asks without bounds.

use std::cell::Cell;
use std::rc::Rc;

use cache::rules::Environment;
use http::lscache::Control;
use http::{Method, Name, RequestBody, RequestHead, Version};

use crate::answer::{Body, Pulled};
use crate::ctx::{ConnInfo, SiteRef};
use crate::exchange::Exchange;

/// LIMIT: fragments in one another.
const DEPTH_MAX: usize = 5;
/// LIMIT: fragments of one page, those of its fragments included.
const FRAGMENTS_MAX: u32 = 1024;
/// LIMIT: bytes of all fragments of one page; those that would begin beyond it give nothing.
const SIZE_MAX: u64 = 256 * 1024 * 1024;

/// What concerns the page and no fragment.
const NOT_INHERITED: &[Name] = &[
    Name::AcceptEncoding,
    Name::ContentEncoding,
    Name::ContentLength,
    Name::ContentType,
    Name::Expect,
    Name::IfMatch,
    Name::IfModifiedSince,
    Name::IfNoneMatch,
    Name::IfRange,
    Name::IfUnmodifiedSince,
    Name::Range,
    Name::TransferEncoding,
];

/// What all fragments of one page share.
#[derive(Debug)]
struct Family {
    /// Path and query that the client asked for.
    page: Vec<u8>,
    /// The page's type.
    content_type: Vec<u8>,
    /// Fragments that were asked for.
    count: Cell<u32>,
    /// Bytes that came of them.
    size: Cell<u64>,
}

/// Where a fragment comes from.
#[derive(Clone, Debug)]
pub struct Lineage {
    family: Rc<Family>,
    /// Targets from the page down to the fragment itself.
    targets: Vec<Vec<u8>>,
    /// What the include says about looking it up.
    pub(crate) control: Control,
}

impl Lineage {
    /// `ESI_REFERER`
    pub(crate) fn page(&self) -> &[u8] {
        &self.family.page
    }

    /// `ESI_CONTENT_TYPE`
    pub(crate) fn content_type(&self) -> &[u8] {
        &self.family.content_type
    }
}

impl Exchange {
    /// What the include says that this is the fragment of, if it is one.
    pub(crate) fn environment(&self) -> Environment {
        let lineage = self.request.lineage.as_ref().filter(|_| self.request.is_fragment);
        let mut control = lineage.map_or_else(Control::default, |lineage| lineage.control);
        control.esi = None;
        Environment { control, ..Environment::default() }
    }

    /// Begins the lineage of a page that has no parent.
    pub(crate) fn found_family(&mut self) {
        if self.request.lineage.is_some() {
            return;
        }
        let head = self.request.head();
        let family = Family {
            page: head.target.clone(),
            content_type: self
                .answer
                .head
                .fields
                .get(Name::ContentType)
                .unwrap_or_default()
                .to_vec(),
            count: Cell::new(0),
            size: Cell::new(0),
        };
        let lineage = Lineage {
            family: Rc::new(family),
            targets: vec![head.target.clone()],
            control: Control::default(),
        };
        self.request.lineage = Some(Box::new(lineage));
    }

    /// Whether it is a part of another one's answer.
    #[must_use]
    pub const fn is_fragment(&self) -> bool {
        self.request.is_fragment
    }

    /// Gives the request for a fragment to an idle exchange; wake it with `Start`.
    pub fn start_fragment(&mut self, head: Box<RequestHead>, site: SiteRef, lineage: Box<Lineage>) {
        self.start(head, site);
        self.request.lineage = Some(lineage);
        self.request.is_fragment = true;
    }

    /// Whether it is put together while it leaves.
    #[must_use]
    pub const fn is_assembled(&self) -> bool {
        matches!(self.answer.body, Body::Assembly(_))
    }

    /// Bytes of the body that were pulled.
    #[must_use]
    pub const fn body_sent(&self) -> u64 {
        self.answer.body_sent
    }

    /// Whether the fragment that `child` asked for is what is sent now.
    #[must_use]
    pub fn is_at_fragment(&self, child: u64) -> bool {
        matches!(&self.answer.body, Body::Assembly(assembly) if assembly.is_at(child))
    }

    /// Whether fragments are to be asked for: see [`Self::next_fragment`].
    #[must_use]
    pub fn wants_fragments(&self) -> bool {
        matches!(&self.answer.body, Body::Assembly(assembly) if assembly.wants_fragments())
    }

    /// Makes `head` the request for the next fragment. It is to be started and named with
    /// [`Self::bind_fragment`], or given up with [`Self::refuse_fragment`].
    pub fn next_fragment(
        &mut self,
        head: &mut RequestHead,
        conn: &ConnInfo,
    ) -> Option<Box<Lineage>> {
        loop {
            let Body::Assembly(assembly) = &mut self.answer.body else { return None };
            if !assembly.wants_fragments() {
                return None;
            }
            let (include, src) = assembly.next_wanted()?;
            let control = include.control;
            let lineage = self.request.lineage.as_deref()?;
            let own = lineage.targets.last().map_or(&b"/"[..], |target| target);
            let port = conn.local.port();
            let is_own = |authority: &[u8]| {
                is_same_site(authority, &self.request.host, [self.request.port.unwrap_or(0), port])
            };
            let target = esi::source::resolve(src, own, is_own).ok();
            let family = &lineage.family;
            let may_be = lineage.targets.len() <= DEPTH_MAX
                && family.count.get() < FRAGMENTS_MAX
                && family.size.get() < SIZE_MAX;
            let target = target.filter(|target| may_be && !lineage.targets.contains(target));
            let Some(target) = target else {
                self.refuse_fragment();
                continue;
            };
            family.count.set(family.count.get() + 1);
            let mut targets = lineage.targets.clone();
            targets.push(target.clone());
            inherit(head, self.request.head(), target);
            return Some(Box::new(Lineage { family: family.clone(), targets, control }));
        }
    }

    /// Names the exchange that asks for the fragment.
    pub fn bind_fragment(&mut self, child: u64) {
        if let Body::Assembly(assembly) = &mut self.answer.body {
            assembly.bind(child);
        }
    }

    /// The fragment is not asked for.
    pub fn refuse_fragment(&mut self) {
        if let Body::Assembly(assembly) = &mut self.answer.body {
            assembly.refuse();
        }
    }

    /// Whether this answer is good for a page: to be asked of a fragment when its head is there.
    #[must_use]
    pub fn is_good_fragment(&self) -> bool {
        let head = &self.answer.head;
        let is_plain = head.fields.get(Name::ContentEncoding).is_none();
        (200..300).contains(&head.status) && head.status != 206 && is_plain
    }

    /// The cookies that this answer sets.
    #[must_use]
    pub fn cookies_set(&self) -> Vec<Vec<u8>> {
        self.answer.head.fields.all(Name::SetCookie).map(<[u8]>::to_vec).collect()
    }

    /// The fragment that `child` asked for is on its way; with these cookies, if the page's head
    /// has not left.
    pub fn accept_fragment(&mut self, child: u64, cookies: Vec<Vec<u8>>) {
        if let Body::Assembly(assembly) = &mut self.answer.body {
            assembly.accept(child, cookies);
        }
    }

    /// The fragment that `child` asked for will not come, or not to its end.
    pub fn lose_fragment(&mut self, child: u64) {
        if let Body::Assembly(assembly) = &mut self.answer.body {
            assembly.lose(child);
        }
    }

    /// Takes what was pulled of the fragment that [`crate::Piece::Fragment`] named; false if no
    /// more of it is wanted.
    pub fn take_fragment(&mut self, bytes: &[u8], pulled: Pulled) -> bool {
        if let Some(lineage) = &self.request.lineage {
            let size = &lineage.family.size;
            size.set(size.get() + bytes.len() as u64);
        }
        match &mut self.answer.body {
            Body::Assembly(assembly) => assembly.take(bytes, pulled),
            _ => false,
        }
    }
}

/// Makes `head` a request for `target` by who asked `page`.
fn inherit(head: &mut RequestHead, page: &RequestHead, target: Vec<u8>) {
    head.copy_from(page);
    head.method = Method::Get;
    head.method_text.clear();
    head.method_text.extend_from_slice(b"GET");
    head.target = target;
    head.body = RequestBody::None;
    head.expects_continue = false;
    if head.version == Version::Http09 {
        head.version = Version::Http10;
    }
    for name in NOT_INHERITED {
        head.fields.remove(*name);
    }
}

/// Whether an authority in an address means the host that the page is from: on the port that
/// was asked for or reached, or on that of either scheme.
pub(crate) fn is_same_site(authority: &[u8], host: &[u8], ports: [u16; 2]) -> bool {
    let mut name = Vec::new();
    match http::host::normalise(authority, &mut name) {
        Ok(port) => {
            name == host
                && port.is_none_or(|port| matches!(port, 80 | 443) || ports.contains(&port))
        }
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::is_same_site;

    #[test]
    fn a_site_is_its_host_on_known_ports() {
        for (authority, is_own) in [
            ("a.test", true),
            ("A.Test", true),
            ("a.test:443", true),
            ("a.test:8080", true),
            ("a.test:81", false),
            ("b.test", false),
            ("a.test.evil", false),
            ("", false),
            ("a.test:x", false),
        ] {
            let found = is_same_site(authority.as_bytes(), b"a.test", [8080, 8443]);
            assert_eq!(found, is_own, "{authority}");
        }
    }
}
