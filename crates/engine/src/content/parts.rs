//! Responses within a response, by SSI and `addition`: executes commands and starts subrequests.
//!
//! Owns the request of a part: as in nginx a GET with the client's fields, which shares variables
//! with its page and passes no access checks. Easiest to break: mutual includes end.

use std::rc::Rc;
use std::sync::Arc;

use bolide_conf::regex::{GroupSpans, LetterCase, Regex};
use bolide_conf::vars::Var;
use bolide_http::{BodyLen, HttpVersion, Method, RequestHead};
use bolide_ssi::{Matched, Moment, SsiAct, SsiCommand, SsiEvent, SsiFault, SsiInclude, SsiWorld};
use bytes::Bytes;

use crate::answer::Answer;
use crate::answer::{CompoundReader, PartOrder};
use crate::ctx::{SiteRef, StepCtx};
use crate::exchange::{Exchange, NextStep};
use crate::filter::accel::is_unsafe;
use crate::filter::headers::HeadDraft;
use crate::request::Request;
use crate::site::Site;
use crate::subrequest::{Failing, Inclusion, RequestRole, Subrequest, SubrequestPlace};
use crate::vars::{VariableScope, VariableValue, shown_method};
use bolide_patterns::Captures;

/// LIMIT, as in nginx: nesting of subrequests.
const DEPTH_MAX: u8 = 51;
/// LIMIT: subrequests of one response, including nested ones.
const COUNT_MAX: u32 = 8192;

/// LIMIT: work of commands at once, as `take_work` counts it.
const WORK_MAX: usize = 128 * 1024;

/// What a page needs to know of the head of a part.
#[derive(Debug)]
pub struct PartHead {
    before: Captures,
    now: Captures,
    /// The most bytes of it that a variable may take, if its type may be the value of one.
    value_max: Option<usize>,
    has_stub: bool,
    /// Whether it is longer than that.
    is_too_big: bool,
}

impl Request {
    /// Sets the state that a subrequest has from its parent.
    fn adopt(&mut self, child: &Subrequest) {
        match child {
            Subrequest::Fragment(lineage) => self.adopt_lineage(lineage),
            Subrequest::Part(inclusion) => self.adopt_page(inclusion),
            Subrequest::Auth(auth) => self.adopt_asker(auth),
            Subrequest::Mirror(mirrored) => self.adopt_original(mirrored),
            Subrequest::Slice(slice) => self.adopt_sliced(slice),
        }
    }

    /// The state that this page shares with all its parts; the outermost page creates it.
    pub(crate) fn family(&mut self) -> Rc<SubrequestPlace> {
        match self.role.part() {
            Some(inclusion) => inclusion.family.clone(),
            None => self.family.get_or_insert_default().clone(),
        }
    }

    /// The reader of this page's commands.
    pub(crate) fn reader(&mut self, value_max: usize) -> CompoundReader {
        CompoundReader::new(value_max, self.family().shared.clone())
    }

    /// The block that replaces this page if its body is empty (`stub`).
    pub(crate) fn take_stub(&mut self) -> Option<Arc<Vec<u8>>> {
        let inclusion = self.role.part_mut()?;
        let Failing::Stub(text) = &inclusion.failing else { return None };
        let is_taken = std::mem::replace(&mut inclusion.has_stub, true);
        (!is_taken).then(|| text.clone())
    }

    /// Sets the state that a part has from its page.
    pub(crate) fn adopt_page(&mut self, inclusion: &Inclusion) {
        debug_assert!(
            (1..=DEPTH_MAX).contains(&inclusion.depth),
            "answers in one another are so many at most"
        );
        debug_assert!(
            inclusion.family.count.get() <= COUNT_MAX,
            "an answer has so many others in it at most"
        );
        self.internal = true;
        self.captures.get_mut().adopt(inclusion.known.clone());
        self.id = inclusion.id;
        self.real = inclusion.real;
        self.listen = inclusion.listen;
        self.limited.adopt(inclusion.limits);
    }

    fn log_fault(&self, fault: &[u8], site: &Site, ctx: &mut StepCtx<'_>) {
        if !fault.is_empty() {
            self.log_error(site, ctx, |out| {
                out.extend_from_slice(fault);
                out.extend_from_slice(WHILE);
            });
        }
    }
}

impl PartHead {
    /// The head of a part, when it is there.
    pub(crate) fn of(request: &Request, answer: &Answer, ctx: &mut StepCtx<'_>) -> Option<Self> {
        let site = request.site.clone()?;
        let inclusion = request.role.part()?;
        let (before, has_stub) = (inclusion.known.clone(), inclusion.has_stub);
        let max = site.location(request.location).settings.filters.subrequest_buffer;
        let head = &answer.head;
        let value_max = (head.status < 300).then_some(max);
        let mut is_too_big = false;
        if let BodyLen::Exact(len) = head.body
            && len > max as u64
            && value_max.is_some()
            && matches!(request.role.part()?.failing, Failing::Nothing)
        {
            request.log_error(&site, ctx, |out| {
                out.extend_from_slice(b"too big subrequest response: ");
                bolide_http::digits::push_decimal(out, len);
                out.extend_from_slice(WHILE);
            });
            is_too_big = true;
        }
        let now = request.captures.borrow().clone();
        Some(Self { before, now, value_max, has_stub, is_too_big })
    }

    /// The head of the part `child` is there.
    pub(crate) fn accept(&self, request: &mut Request, answer: &mut Answer, child: u64) {
        request.captures.get_mut().absorb(&self.before, &self.now);
        if let Some(compound) = answer.body.compound_mut() {
            compound.accept(child, self.value_max, self.has_stub);
            if self.is_too_big {
                compound.refuse();
            }
        }
    }
}

impl Exchange {
    /// Whether the page is assembled while it is sent.
    #[must_use]
    #[inline]
    pub fn is_assembled(&self) -> bool {
        self.answer.body.may_have_parts() && has_parts(&self.answer)
    }

    /// Whether subrequests or commands are pending: see [`crate::SubrequestParent::next`].
    #[must_use]
    #[inline]
    pub fn wants_fragments(&self) -> bool {
        self.answer.body.may_have_parts() && parts_want(&self.answer)
    }

    /// Whether `child` is the part that is being sent.
    #[must_use]
    pub fn is_at_fragment(&self, child: u64) -> bool {
        let body = &self.answer.body;
        body.assembly().is_some_and(|assembly| assembly.is_at(child))
            || body.compound().is_some_and(|compound| compound.is_at(child))
            || body.sliced().is_some_and(|sliced| sliced.owns(child))
    }

    /// Gives a subrequest to an idle exchange; step it with `Start` next.
    pub fn start_child(&mut self, head: Box<RequestHead>, site: SiteRef, child: Subrequest) {
        self.start(head, site, None);
        self.request.adopt(&child);
        self.request.role = RequestRole::Subrequest(child);
    }
}

impl Answer {
    /// The text that a failed part contributes instead of an error page.
    pub(crate) fn fail_part(
        &mut self,
        request: &mut Request,
        status: u16,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) -> Option<NextStep> {
        let inclusion = request.role.part_mut()?;
        let text = match &inclusion.failing {
            Failing::Page => return None,
            Failing::Nothing => Bytes::new(),
            Failing::Stub(text) => Bytes::copy_from_slice(text),
        };
        inclusion.has_stub = true;
        let html = site.location(request.location).kinds.html();
        self.fill_typed(request, html, status, &mut HeadDraft::default(), site, ctx);
        self.give_text(request, text);
        Some(NextStep::Respond)
    }
}

/// Executes the pending commands, and writes the request of the next part to `head`.
pub(crate) fn next_part(
    request: &mut Request,
    answer: &mut Answer,
    head: &mut RequestHead,
    ctx: &mut StepCtx<'_>,
) -> Option<Box<Inclusion>> {
    let site = request.site.clone()?;
    do_commands(request, answer, &site, ctx);
    let order = answer.body.compound()?.next_order()?;
    let mut target = Vec::with_capacity(order.uri.len());
    bolide_http::escape::push_uri(&mut target, &order.uri, bolide_http::escape::UriPart::Path);
    if let Some(args) = &order.args {
        target.push(b'?');
        target.extend_from_slice(args);
    }
    let failing = match (&order.set, &order.stub) {
        (Some(_), _) => Failing::Nothing,
        (None, Some(stub)) => Failing::Stub(stub.clone()),
        (None, None) => Failing::Page,
    };
    let (uri, args) = (order.uri.clone(), order.args.clone());
    inherit(head, request);
    Some(Box::new(Inclusion {
        uri,
        args,
        target,
        family: request.family(),
        depth: depth(request) + 1,
        failing,
        has_stub: false,
        known: request.captures.get_mut().clone(),
        id: request.id,
        real: request.real,
        listen: request.listen,
        limits: request.limited.details(),
    }))
}

/// Decodes percent-escapes of a path; as in nginx, the rest of a broken one stays.
fn decoded(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path;
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let Some((&high, after)) = rest.split_first() else { break };
        rest = after;
        let Some(high_digit) = digit(high) else {
            out.push(high);
            continue;
        };
        let Some((&low, after)) = rest.split_first() else { break };
        rest = after;
        out.extend(digit(low).map(|low| high_digit << 4 | low));
    }
    out
}

/// What nginx was doing when it found a fault.
const WHILE: &[u8] = b" while sending response to client";

/// Appends the value of a server variable; returns whether it has one.
fn look_up(scope: &VariableScope<'_>, name: &[u8], out: &mut Vec<u8>) -> bool {
    let Ok(name) = std::str::from_utf8(name) else { return false };
    let var = Var::parse(name).or_else(|| {
        let named = &scope.site.http()?.named;
        let slot = named.iter().position(|known| known.eq_ignore_ascii_case(name))?;
        Some(Var::Named(u16::try_from(slot).ok()?))
    });
    var.is_some_and(|var| scope.write(&var, out) == VariableValue::Yes)
}

impl VariableScope<'_> {
    /// Whether this request is a subrequest, or has started some (SSI, ESI, `auth_request`,
    /// `mirror`) that are logged (`log_subrequest`): as in nginx, `$request_completion` is then
    /// empty, because the value that is evaluated for the log of a subrequest is kept.
    pub(crate) fn is_in_parts(&self) -> bool {
        let request = self.request;
        let family = request.family.as_ref();
        let has_parts = || family.is_some_and(|family| family.count.get() > 0);
        let has_logged = family.is_some_and(|family| family.is_logged.get());
        request.role.part().is_some()
            || request.role.auth().is_some()
            || request.role.mirrored().is_some()
            || has_logged
            || self.location().settings.log_subrequest && (request.is_authorized || has_parts())
    }
}

/// Matches an expression of a page against a text.
fn find(pattern: &[u8], text: &[u8]) -> Result<Option<Matched>, SsiFault> {
    let regex = Regex::new(pattern, LetterCase::Sensitive).map_err(String::into_bytes)?;
    let mut spans = GroupSpans::default();
    match regex.find(text, &mut spans) {
        Ok(false) => Ok(None),
        Ok(true) => {
            let count = (0..spans.len()).rev().find(|at| spans.get(*at).is_some());
            let group = |at: usize| {
                spans.get(at).map_or_else(Vec::new, |(start, end)| text[start..end].to_vec())
            };
            let groups = (0..=count.unwrap_or(0).min(9)).map(group).collect();
            let named =
                regex.names().map(|(at, name)| (name.as_bytes().to_vec(), group(at))).collect();
            Ok(Some(Matched { groups, named }))
        }
        Err(error) => {
            let code = error.code.to_string();
            let parts: [&[u8]; 6] = [
                b"pcre2_match() failed: ",
                code.as_bytes(),
                b" on \"",
                text,
                b"\" using \"",
                pattern,
            ];
            Err([&parts.concat()[..], b"\""].concat())
        }
    }
}

/// Makes `head` a request from the client of `page`.
pub(crate) fn inherit(head: &mut RequestHead, parent: &Request) {
    let page = parent.head();
    head.clear();
    head.method = Method::Get;
    // As in nginx, `$request_uri` and `$request` are the client's, and `$request_method` is the
    // page's, which an internal redirect may have changed.
    head.method_text.extend_from_slice(shown_method(parent).unwrap_or_default());
    head.version = match page.version {
        HttpVersion::Http09 => HttpVersion::Http10,
        version => version,
    };
    head.target.extend_from_slice(&page.target);
    head.authority.extend_from_slice(&page.authority);
    head.line.extend_from_slice(&page.line);
    for field in page.fields.iter().filter(|field| !field.name.is_about_content()) {
        head.fields.push_parsed(field.name, field.text, field.value);
    }
    head.early = page.early;
}

/// A subrequest of `addition`: as in nginx, its path is used as written.
pub(crate) fn added(uri: Option<&Arc<[u8]>>) -> Option<PartOrder> {
    uri.map(|uri| PartOrder { uri: uri.to_vec(), ..PartOrder::default() })
}

fn has_parts(answer: &Answer) -> bool {
    let body = &answer.body;
    body.assembly().is_some() || body.compound().is_some() || body.sliced().is_some()
}

fn parts_want(answer: &Answer) -> bool {
    let body = &answer.body;
    body.assembly().is_some_and(|assembly| assembly.wants_fragments())
        || body.compound().is_some_and(|compound| compound.wants())
        || body.sliced().is_some_and(|sliced| sliced.due().is_some())
}

fn depth(request: &Request) -> u8 {
    request.role.part().map_or(0, |inclusion| inclusion.depth)
}

/// Appends the text for a failed command (`errmsg`).
fn show_error(request: &Request, answer: &mut Answer, site: &Site) {
    let is_silent = site.location(request.location).settings.filters.ssi.silent_errors;
    let Some(compound) = answer.body.compound_mut().filter(|_| !is_silent) else { return };
    let Some(reader) = compound.reader_mut() else { return };
    let text = reader.flow.error().to_vec();
    compound.push_text(&text);
}

/// Executes pending commands up to the limit of a turn; the rest is executed later.
fn do_commands(request: &mut Request, answer: &mut Answer, site: &Site, ctx: &mut StepCtx<'_>) {
    let mut work = 0;
    while work < WORK_MAX
        && let Some(compound) = answer.body.compound_mut()
    {
        if let Some(trouble) = compound.take_trouble() {
            return request.log_fault(trouble.as_bytes(), site, ctx);
        }
        let Some(event) = compound.take_event() else { return };
        match event {
            SsiEvent::Fault(fault) => request.log_fault(&fault, site, ctx),
            SsiEvent::Broken => show_error(request, answer, site),
            SsiEvent::Command(command) => {
                if let Err(fault) = do_command(request, answer, &command, site, ctx) {
                    request.log_fault(&fault, site, ctx);
                    show_error(request, answer, site);
                }
            }
        }
        work += request.family().shared.borrow_mut().take_work();
        if let Some(compound) = answer.body.compound_mut() {
            compound.read();
        }
    }
}

fn do_command(
    request: &mut Request,
    answer: &mut Answer,
    command: &SsiCommand,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> Result<(), SsiFault> {
    let compound = answer.body.compound_mut();
    let Some(mut reader) = compound.and_then(|compound| compound.reader_mut().take()) else {
        return Ok(());
    };
    let (mut warnings, shared) = (Vec::new(), reader.shared.clone());
    let scope = VariableScope::new(request, answer, site, ctx);
    let mut known = shared.borrow_mut();
    let mut world = SsiWorld {
        shared: &mut known,
        uri: &request.uri,
        moment: Moment {
            unix: ctx.now.unix_seconds() as i64,
            offset: ctx.clock.utc_offset(),
            zone: ctx.clock.zone(),
        },
        look_up: |name: &[u8], out: &mut Vec<u8>| look_up(&scope, name, out),
        find,
        warn: |fault| warnings.push(fault),
    };
    let done = reader.flow.run(command, &mut world);
    drop(known);
    if let Some(compound) = answer.body.compound_mut() {
        *compound.reader_mut() = Some(reader);
    }
    request.log_notes(b"", site, ctx);
    for warning in warnings {
        request.log_fault(&warning, site, ctx);
    }
    match done? {
        SsiAct::Nothing => {}
        SsiAct::Show(text) => {
            if let Some(compound) = answer.body.compound_mut() {
                compound.push_text(&text);
            }
        }
        SsiAct::Include(include) => {
            let order = order(request, include)?;
            if let Some(name) = &order.set
                && shared.borrow().get(&name.to_ascii_lowercase()).is_none()
            {
                shared.borrow_mut().set(name, Vec::new());
            }
            if let Some(compound) = answer.body.compound_mut() {
                compound.push_part(order);
            }
        }
    }
    Ok(())
}

/// The subrequest of an `include`.
fn order(request: &mut Request, include: SsiInclude) -> Result<PartOrder, SsiFault> {
    let unsafe_uri = |uri: &[u8]| Err([b"unsafe URI \"", uri, b"\" was detected"].concat());
    let mark = memchr::memchr(b'?', &include.uri);
    let (path, args) = match mark {
        Some(mark) => (&include.uri[..mark], Some(include.uri[mark + 1..].to_vec())),
        None => (&include.uri[..], None),
    };
    if is_unsafe(path) {
        return unsafe_uri(path);
    }
    let uri = decoded(path);
    if is_unsafe(&uri) {
        return unsafe_uri(&uri);
    }
    if depth(request) >= DEPTH_MAX {
        return Err([b"subrequests cycle while processing \"", &uri[..], b"\""].concat());
    }
    let family = request.family();
    if family.count.get() >= COUNT_MAX {
        let what = b"request reference counter overflow while processing \"";
        return Err([what, &uri[..], b"\""].concat());
    }
    family.count.set(family.count.get() + 1);
    let args = args.filter(|args| !args.is_empty());
    let SsiInclude { waits, set, stub, .. } = include;
    Ok(PartOrder { uri, args, waits, set, stub })
}
