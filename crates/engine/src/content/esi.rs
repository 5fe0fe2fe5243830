//! Fragments of an ESI page: the subrequest of an include, and its limits.
//!
//! Owns the request of a fragment: the client's own, for another target, without the fields that
//! concern the page alone. Easiest to break: a fragment passes all checks that a client's request
//! would, and a page has bounded subrequests.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use bolide_base::Spool;
use bolide_cache::rules::Environment;
use bolide_cache::{FillMoment, Object};
use bolide_http::lscache::LsCacheControl;
use bolide_http::{BodyLen, HttpVersion, Method, Name, RequestBody, RequestHead};
use bytes::Bytes;

use crate::answer::Answer;
use crate::answer::{AnswerBody, ByteSpan, BytesFrom, PageAssembly, Pulled};
use crate::caching::CacheTransaction;
use crate::caching::lookup::date_back;
use crate::ctx::{ConnInfo, StepCtx, StepEffect};
use crate::exchange::NextStep;
use crate::filter::headers::HeadDraft;
use crate::request::Request;
use crate::site::Site;
use crate::subrequest::{FragmentAncestry, FragmentFamily, Lineage, is_same_site};
use crate::subrequest::{FragmentSource, IncludingPage};

/// LIMIT: nesting of fragments.
const DEPTH_MAX: u8 = 5;
/// LIMIT: fragments of one page, including nested ones.
const FRAGMENTS_MAX: u32 = 1024;
/// LIMIT: bytes of all fragments of one page; those that begin beyond it are empty.
const SIZE_MAX: u64 = 256 * 1024 * 1024;

/// Whether a request field concerns the page only.
const fn is_about_page(name: Name) -> bool {
    name.is_about_content() || matches!(name, Name::AcceptEncoding | Name::ContentType)
}

impl Request {
    /// The environment of the include whose fragment this is, if it is one.
    pub(crate) fn environment(&self) -> Environment {
        let lineage = self.role.fragment();
        let mut control = lineage.map_or_else(LsCacheControl::default, |lineage| lineage.control);
        control.esi = None;
        Environment { control, ..Environment::default() }
    }
}

/// Begins the lineage of a page without a parent.
fn found_family(request: &mut Request, answer: &Answer) {
    if request.lineage().is_some() {
        return;
    }
    let head = request.head();
    let family = FragmentFamily {
        page: head.target.clone(),
        content_type: answer.head.fields.get(Name::ContentType).unwrap_or_default().to_vec(),
        count: Cell::new(0),
        size: Cell::new(0),
        limits: request.limited.details(),
        listen: request.listen,
    };
    let lineage = Lineage {
        family: Rc::new(family),
        own: Rc::new(FragmentAncestry { target: head.target.clone(), depth: 0, parent: None }),
        control: LsCacheControl::default(),
        source: FragmentSource::Anywhere,
        combined_by: None,
        shared: None,
        includer: IncludingPage { id: Vec::new(), location: request.location, vary_value: None },
        real: request.real,
    };
    request.own_lineage = Some(Box::new(lineage));
}

impl Request {
    /// Sets the state that a fragment has from its page.
    pub(crate) fn adopt_lineage(&mut self, lineage: &Lineage) {
        debug_assert!(
            (1..=DEPTH_MAX).contains(&lineage.own.depth),
            "fragments in one another are so many at most"
        );
        debug_assert!(
            lineage.family.count.get() <= FRAGMENTS_MAX,
            "a page has so many fragments at most"
        );
        self.limited.adopt(lineage.family.limits);
        self.listen = lineage.family.listen;
        self.real = lineage.real;
        if let Some(form) = lineage.form() {
            self.upload.share(Spool::of(form.clone()));
        }
    }
}

impl Answer {
    /// Writes the request of the next fragment to `head`. The caller starts it and calls
    /// [`Self::bind_fragment`], or calls [`Self::refuse_fragment`].
    pub(crate) fn next_fragment(
        &mut self,
        request: &mut Request,
        cache: &CacheTransaction,
        head: &mut RequestHead,
        conn: &ConnInfo,
    ) -> Option<Box<Lineage>> {
        if !self.body.assembly().is_some_and(PageAssembly::wants_fragments) {
            return None;
        }
        found_family(request, self);
        loop {
            let assembly = self.body.assembly_mut()?;
            if !assembly.wants_fragments() {
                return None;
            }
            let wanted = assembly.next_wanted()?;
            let (include, source) = (wanted.include, wanted.source);
            let mut control = include.control;
            let shared = include.tags.clone().filter(|tags| control.shared && !tags.is_empty());
            let lineage = request.lineage()?;
            let port = conn.local.port();
            let is_own = |authority: &[u8]| {
                is_same_site(authority, &request.host, [request.port.unwrap_or(0), port])
            };
            let resolve = |src| bolide_esi::source::resolve(src, &lineage.own.target, is_own).ok();
            let target = resolve(wanted.src);
            let combined_by = wanted.combined_by.and_then(|src| resolve(src)).map(Rc::from);
            let family = &lineage.family;
            let may_be = lineage.own.depth < DEPTH_MAX
                && family.count.get() < FRAGMENTS_MAX
                && family.size.get() < SIZE_MAX;
            let target = target.filter(|target| may_be && !lineage.own.is_or_descends_from(target));
            let Some(target) = target else {
                self.refuse_fragment();
                continue;
            };
            family.count.set(family.count.get() + 1);
            inherit(head, request.head(), &target);
            let vary_value = cache.environment.vary_value.clone();
            let includer =
                IncludingPage { id: cache.page.clone(), location: request.location, vary_value };
            if let FragmentSource::Combined(form) = &source {
                let kept = request.site.as_ref().and_then(|site| site.kept());
                let moment = kept
                    .zip(cache.asked().1)
                    .map(|(kept, space)| FillMoment::now(&kept.store, space));
                assembly.set_moment(moment.map(Rc::new));
                // The server, not the visitor, sends this form.
                control.no_autoflush = true;
                post(head, form.len());
            }
            let (depth, parent) = (lineage.own.depth + 1, Some(lineage.own.clone()));
            let own = Rc::new(FragmentAncestry { target, depth, parent });
            return Some(Box::new(Lineage {
                family: family.clone(),
                own,
                control,
                source,
                combined_by,
                shared,
                includer,
                real: lineage.real,
            }));
        }
    }

    /// Binds the fragment that was named last to an exchange.
    pub(crate) fn bind_fragment(&mut self, child: u64) {
        if let Some(assembly) = self.body.assembly_mut() {
            assembly.bind(child);
        }
    }

    /// The fragment that was named last is not started.
    pub(crate) fn refuse_fragment(&mut self) {
        if let Some(assembly) = self.body.assembly_mut() {
            assembly.refuse();
        }
    }
}

impl Answer {
    /// Takes the bytes that were pulled of the fragment that [`crate::BodyPiece::Fragment`] named;
    /// false if it needs no more of them.
    pub(crate) fn take_fragment(
        &mut self,
        request: &Request,
        bytes: &[u8],
        pulled: Pulled,
    ) -> bool {
        if let Some(lineage) = request.lineage() {
            let size = &lineage.family.size;
            size.set(size.get() + bytes.len() as u64);
        }
        let assembly = self.body.assembly_mut();
        assembly.is_some_and(|assembly| assembly.take(bytes, pulled))
    }
}

/// Makes `head` a request for `target` from the client of `page`.
fn inherit(head: &mut RequestHead, page: &RequestHead, target: &[u8]) {
    head.clear();
    head.method_text.extend_from_slice(b"GET");
    head.version = match page.version {
        HttpVersion::Http09 => HttpVersion::Http10,
        version => version,
    };
    head.target.extend_from_slice(target);
    head.authority.extend_from_slice(&page.authority);
    head.line.extend_from_slice(&page.line);
    for field in page.fields.iter().filter(|field| !is_about_page(field.name)) {
        head.fields.push_parsed(field.name, field.text, field.value);
    }
    head.wire_size = page.wire_size;
    head.early = page.early;
}

/// Makes `head` a POST of a form with this length.
fn post(head: &mut RequestHead, len: usize) {
    head.method = Method::Post;
    head.method_text.clear();
    head.method_text.extend_from_slice(b"POST");
    head.body = RequestBody::Length(len as u64);
    head.fields.push(Name::ContentType, b"application/x-www-form-urlencoded");
    head.fields.push(Name::ContentLength, len.to_string().as_bytes());
}

/// Answers a fragment without a fetch: with the part of a combined response, or with a note that it
/// is not cached.
pub(crate) fn answer_without_origin(
    answer: &mut Answer,
    request: &Request,
    cache: &mut CacheTransaction,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> Option<NextStep> {
    match &request.role.fragment()?.source {
        FragmentSource::Anywhere | FragmentSource::Combined(_) => None,
        FragmentSource::Kept => {
            cache.let_go();
            let html = site.location(request.location).kinds.html();
            answer.fill_typed(request, html, 504, &mut HeadDraft::default(), site, ctx);
            answer.give_text(request, Bytes::new());
            Some(NextStep::Respond)
        }
        FragmentSource::Given(given) => {
            if let Some(moment) = &given.moment {
                date_back(cache, moment, ctx);
            }
            let (fill, news) = given.feed(answer, request, cache, site, ctx);
            if let Some(fill) = fill {
                ctx.effects.push(StepEffect::Fill(fill));
            }
            answer.origin.get_or_insert_default().begin("", ctx.now);
            ctx.effects.push(StepEffect::DeliverNews(news));
            Some(NextStep::Fetch)
        }
    }
}

/// Answers a fragment with a cached object, if the page needs no more than its body and cookies;
/// false otherwise.
pub(crate) fn serve_fragment(answer: &mut Answer, object: &Arc<Object>) -> bool {
    let is_outside = object.outside().is_some();
    if object.status() != 200 || answer.forced_status != 0 || is_outside {
        return false;
    }
    let fields = &mut answer.head.fields;
    fields.clear();
    for (name, value) in object.iter_fields() {
        if name.eq_ignore_ascii_case(b"content-encoding") {
            return false;
        }
        if name.eq_ignore_ascii_case(b"set-cookie") {
            fields.push(Name::SetCookie, value);
        }
    }
    let end = object.body_len();
    answer.head.status = 200;
    answer.head.body = BodyLen::Exact(end);
    answer.body = match end {
        0 => AnswerBody::Empty,
        _ => AnswerBody::Span(BytesFrom::Object(object.clone()), ByteSpan { at: 0, end }),
    };
    true
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
