//! The static answer: preconditions, codings, ranges, and the body that follows from them.

use std::rc::Rc;

use bolide_files::{CodingEncoder, FileAnswer as Verdict, FileVariant, OpenFile, VariantKey};
use bolide_http::conditional::{Conditions, Precondition};
use bolide_http::negotiate::{Coding, Codings};
use bolide_http::range::{push_content_range, push_unsatisfied};
use bolide_http::{BodyLen, Method, Name};

use crate::answer::{AnswerBody, ByteSpan, BytesFrom, UpstreamBody};
use crate::ctx::{StepCtx, StepEffect};
use crate::exchange::{Exchange, NextStep, RequestStep};
use crate::filter::compress;
use crate::filter::headers::HeadDraft;
use crate::filter::range::parts;
use crate::media_types::MediaType;
use crate::site::Site;

/// How a file's bytes are coded when they leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coded {
    /// As they are.
    No,
    /// The file itself holds a coded form.
    Stored(Coding),
}

impl Coded {
    /// For `Content-Encoding`; empty for none.
    const fn token(self) -> &'static str {
        match self {
            Self::No => "",
            Self::Stored(coding) => coding.token(),
        }
    }
}

impl Exchange {
    /// Sends a file, compressed if configuration and client agree on it.
    pub(crate) fn send(
        &mut self,
        file: &Rc<OpenFile>,
        client: Codings,
        has_sibling: bool,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        let location = site.location(self.request.location);
        let kind = location.kinds.of_path(&self.request.uri);
        let mut varies = has_sibling;
        if location.coded {
            let status = self.answer.status_or(200);
            let choice = compress::choose(location, kind, status, Some(file.meta.size), client);
            varies |= choice.varies;
            if let Some(coding) = choice.coding {
                let level = compress::level(location, coding);
                if let Some(next) =
                    self.send_compressed(file, kind, VariantKey { coding, level }, site, ctx)
                {
                    return next;
                }
            }
        }
        self.send_plain(file, kind, Coded::No, varies, site, ctx)
    }

    /// Sends a file that holds a coded form of the one asked for.
    pub(crate) fn send_stored(
        &mut self,
        file: &Rc<OpenFile>,
        coding: Coding,
        varies: bool,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        let kinds = &site.location(self.request.location).kinds;
        let kind = kinds.of_path(&self.request.uri);
        self.send_plain(file, kind, Coded::Stored(coding), varies, site, ctx)
    }

    #[inline]
    fn send_plain(
        &mut self,
        file: &Rc<OpenFile>,
        kind: &MediaType,
        coded: Coded,
        varies: bool,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        let location = site.location(self.request.location);
        let status = self.answer.status_or(200);
        let with_etag = location.settings.etag;
        let is_reworked =
            location.reworks && self.reworks_file(kind, coded.token(), file.meta.size, site, ctx);
        let verdict = if status == 200 {
            let conditions = Conditions::of(&self.request.head().fields);
            let mut validator = file.validator();
            validator.etag = validator.etag.filter(|_| with_etag);
            let size = file.meta.size;
            let mut rules = location.rules;
            if is_reworked {
                rules.max_ranges = 0;
            }
            bolide_files::answer(Method::Get, &conditions, validator, size, rules, &mut self.ranges)
        } else {
            Verdict::Whole
        };
        let draft = HeadDraft {
            etag: with_etag.then(|| file.etag.strong()),
            encoding: coded.token(),
            varies,
            ranges: !is_reworked,
            ..dated(file)
        };
        match verdict {
            Verdict::Whole => {
                self.answer.head.body = BodyLen::Exact(file.meta.size);
                self.fill_typed(kind, status, &draft, site, ctx);
                self.answer.body = whole(file);
                NextStep::Respond
            }
            Verdict::Partial => self.send_ranges(file, kind, &draft, site, ctx),
            Verdict::NotModified => self.not_modified(&draft, site, ctx),
            Verdict::PreconditionFailed => NextStep::Fail(412),
            Verdict::NotAllowed => NextStep::Fail(405),
            Verdict::Unsatisfiable => {
                self.unsatisfied = Some(file.meta.size);
                NextStep::Fail(416)
            }
        }
    }

    /// RFC 9110 §15.4.5: a 304 carries the validators and what configuration adds.
    pub(crate) fn not_modified(
        &mut self,
        draft: &HeadDraft<'_>,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) -> NextStep {
        let draft = HeadDraft { ranges: false, encoding: "", ..*draft };
        self.answer.head.body = BodyLen::None;
        self.fill(304, &draft, site, ctx);
        self.answer.body = AnswerBody::Empty;
        NextStep::Respond
    }

    fn send_ranges(
        &mut self,
        file: &Rc<OpenFile>,
        kind: &MediaType,
        draft: &HeadDraft<'_>,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        let size = file.meta.size;
        // As in nginx, `add_header` sees what the whole would be.
        self.answer.head.body = BodyLen::Exact(size);
        let ranges = std::mem::take(&mut self.ranges);
        if let [range] = ranges[..] {
            self.fill_typed(kind, 206, draft, site, ctx);
            let fields = &mut self.answer.head.fields;
            fields.push_writing(Name::ContentRange, |out| push_content_range(out, range, size));
            self.answer.head.body = BodyLen::Exact(range.len());
            self.answer.body = AnswerBody::span(source(file), range);
        } else {
            let boundary = bolide_http::range::Boundary::new(ctx.prng.next_u64());
            let (parts, len) = parts(source(file), &kind.value, size, boundary, &ranges);
            let mut content_type = Vec::with_capacity(64);
            boundary.push_content_type(&mut content_type);
            let draft = HeadDraft { content_type: &content_type, ..*draft };
            self.fill(206, &draft, site, ctx);
            self.answer.head.body = BodyLen::Exact(len);
            self.answer.body = AnswerBody::Parts(Box::new(parts));
        }
        self.ranges = ranges;
        NextStep::Respond
    }

    /// Sends the compressed form `key`, orders it if nobody has yet, or gives `None` where the
    /// file has to leave as it is.
    fn send_compressed(
        &mut self,
        file: &Rc<OpenFile>,
        kind: &MediaType,
        key: VariantKey,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Option<NextStep> {
        // nginx weighs preconditions before it compresses, so against the strong tag.
        if let Some(next) = self.evaluate_file_preconditions(file, site, ctx) {
            return Some(next);
        }
        let (body, len) = match file.variant(key) {
            FileVariant::Ready(form) => {
                let len = form.len() as u64;
                self.answer.compression = Some((key.coding.token(), file.meta.size, len));
                (AnswerBody::memory(form), BodyLen::Exact(len))
            }
            FileVariant::NotWorth | FileVariant::Pending => return None,
            FileVariant::Absent => match &file.body {
                bolide_files::FileBody::Disk(open) => {
                    let encoder = CodingEncoder::new(key.coding, key.level).ok()?;
                    let stream = UpstreamBody::new(open.clone(), file.meta, encoder);
                    (AnswerBody::Stream(Box::new(stream)), BodyLen::Unknown)
                }
                // One wait is enough: a form that is gone again is not worth a second one.
                bolide_files::FileBody::Memory(_) if self.waited_for_form => return None,
                bolide_files::FileBody::Memory(_) => {
                    let job = ctx.files.begin_variant(file, key)?;
                    self.waited_for_form = true;
                    ctx.effects.push(StepEffect::Compress(job));
                    return Some(NextStep::Compress(RequestStep::File));
                }
            },
        };
        let with_etag = site.location(self.request.location).settings.etag;
        let draft = HeadDraft {
            etag: with_etag.then(|| file.etag.weak()),
            encoding: key.coding.token(),
            varies: true,
            ..dated(file)
        };
        let status = self.answer.status_or(200);
        self.answer.head.body = BodyLen::Exact(file.meta.size);
        self.fill_typed(kind, status, &draft, site, ctx);
        let is_head = self.request.head().method == Method::Head;
        let untold = is_head && len == BodyLen::Unknown;
        self.answer.head.body = if untold { BodyLen::None } else { len };
        self.answer.body = body;
        Some(NextStep::Respond)
    }

    /// 304 or 412, if the preconditions ask for it.
    fn evaluate_file_preconditions(
        &mut self,
        file: &OpenFile,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Option<NextStep> {
        if self.answer.status_or(200) != 200 {
            return None;
        }
        let location = site.location(self.request.location);
        let conditions = Conditions::of(&self.request.head().fields);
        let mut validator = file.validator();
        validator.etag = validator.etag.filter(|_| location.settings.etag);
        match conditions.evaluate(validator, location.rules.since) {
            Precondition::Proceed => None,
            Precondition::PreconditionFailed => Some(NextStep::Fail(412)),
            Precondition::NotModified => {
                let draft = HeadDraft { etag: validator.etag, varies: true, ..dated(file) };
                Some(self.not_modified(&draft, site, ctx))
            }
        }
    }

    /// What an answer to impossible ranges says, if that is what is being answered.
    pub(crate) fn push_unsatisfied(&mut self) {
        if let Some(len) = self.unsatisfied.take() {
            let fields = &mut self.answer.head.fields;
            fields.push_writing(Name::ContentRange, |out| push_unsatisfied(out, len));
        }
    }
}

/// What is said of every answer that comes from `file`.
fn dated(file: &OpenFile) -> HeadDraft<'_> {
    HeadDraft {
        last_modified: Some(&file.last_modified),
        modified_at: Some(u64::try_from(file.meta.mtime_secs).unwrap_or(0)),
        ..HeadDraft::default()
    }
}

fn source(file: &OpenFile) -> BytesFrom {
    match &file.body {
        bolide_files::FileBody::Memory(bytes) => BytesFrom::Memory(bytes.clone()),
        bolide_files::FileBody::Disk(open) => BytesFrom::File(open.clone(), file.meta),
    }
}

fn whole(file: &OpenFile) -> AnswerBody {
    let end = file.meta.size;
    if end == 0 {
        AnswerBody::Empty
    } else {
        AnswerBody::Span(source(file), ByteSpan { at: 0, end })
    }
}
