//! Static responses: preconditions, codings, ranges, and the body.

use std::rc::Rc;

use bolide_files::{FileVariant, OpenFile, VariantKey};
use bolide_http::BodyLen;
use bolide_http::conditional::Validator;
use bolide_http::negotiate::{Coding, Codings};

use crate::answer::Answer;
use crate::answer::{AnswerBody, BytesFrom, CompressedFile};
use crate::ctx::{StepCtx, StepEffect};
use crate::delivery::{
    RangeDate, Representation, RepresentationSource, Transfer, remove_content_fields,
};
use crate::exchange::{NextStep, RequestStep};
use crate::filter::body::filters_file;
use crate::filter::charset::{mark_file, recodes_file};
use crate::filter::compress;
use crate::filter::headers::{HeadDraft, range_date};
use crate::htaccess::searched::{is_searched, tag_like_searched};
use crate::media_types::MediaType;
use crate::request::Request;
use crate::site::{CompiledLocation, Site};

/// The content coding of a file's bytes when they are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coded {
    /// None.
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

/// The form in which a file is sent.
#[derive(Clone, Copy)]
struct FileForm<'a> {
    kind: &'a MediaType,
    coded: Coded,
    /// Whether `Vary: Accept-Encoding` applies.
    varies: bool,
}

impl Answer {
    /// Sends a file, compressed if configuration and client agree on it.
    pub(crate) fn send(
        &mut self,
        request: &Request,
        file: &Rc<OpenFile>,
        client: Codings,
        has_sibling: bool,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        let location = site.location(request.location);
        let kind = location.kinds.of_path(&request.uri);
        let mut varies = has_sibling;
        if location.coded && !is_searched(self, request, (&kind.media, b""), location) {
            let status = self.status_or(200);
            let choice =
                compress::choose(request, location, kind, status, Some(file.meta.size), client);
            varies |= choice.varies;
            if let Some(coding) = choice.coding {
                let level = compress::level(location, coding);
                if let Some(next) = self.send_compressed(
                    request,
                    file,
                    kind,
                    VariantKey { coding, level },
                    site,
                    ctx,
                ) {
                    return next;
                }
            }
        }
        self.send_plain(request, file, FileForm { kind, coded: Coded::No, varies }, site, ctx)
    }

    /// Sends a precompressed sibling of the requested file.
    pub(crate) fn send_stored(
        &mut self,
        request: &Request,
        file: &Rc<OpenFile>,
        coding: Coding,
        varies: bool,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        let kinds = &site.location(request.location).kinds;
        let kind = kinds.of_path(&request.uri);
        let coded = Coded::Stored(coding);
        self.send_plain(request, file, FileForm { kind, coded, varies }, site, ctx)
    }

    #[inline]
    fn send_plain(
        &mut self,
        request: &Request,
        file: &Rc<OpenFile>,
        FileForm { kind, coded, varies }: FileForm<'_>,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        let location = site.location(request.location);
        let status = self.status_or(200);
        let with_etag = location.settings.etag;
        let is_filtered = location.filters_bodies
            && (filters_file(request, self, kind, coded.token(), file.meta.size, site, ctx)
                || recodes_file(self, request, (kind, coded.token()), file.meta.size, site, ctx))
            || coded == Coded::No && is_searched(self, request, (&kind.media, b""), location);
        let representation = Representation {
            source: RepresentationSource::File,
            status,
            length: Some(file.meta.size),
            transfer: if is_filtered { Transfer::Filtered } else { Transfer::Identity },
            validator: validator(file, location),
            range_date: range_date(request, self, site, ctx),
            rules: location.rules,
            advertises_ranges: true,
        };
        let delivery = match self.deliver(request, &representation) {
            Ok(delivery) => delivery,
            Err(next) => {
                if let Some(range) = &mut self.unsatisfied {
                    range.varies = varies;
                }
                return next;
            }
        };
        let mut draft = HeadDraft {
            etag: with_etag.then(|| file.etag.strong()),
            encoding: coded.token(),
            varies,
            ranges: delivery.accept_ranges,
            ..dated(file)
        };
        if delivery.is_not_modified {
            let next = self.not_modified(request, &draft, site, ctx);
            if coded == Coded::No {
                let mut fields = std::mem::take(&mut self.head.fields);
                let what = (Some(&*kind.media), Some(&b""[..]));
                tag_like_searched(&mut fields, self, request, what, location);
                self.head.fields = fields;
            }
            return next;
        }
        // As in nginx, `add_header` sees the values of the whole.
        self.head.body = BodyLen::Exact(file.meta.size);
        self.fill_typed(request, kind, delivery.status, &mut draft, site, ctx);
        if location.filters_bodies {
            mark_file(self);
        }
        self.give_bytes(&delivery, source(file), file.meta.size, ctx);
        NextStep::Respond
    }

    /// RFC 9110 §15.4.5: a 304 has the validators and the fields of the configuration.
    pub(crate) fn not_modified(
        &mut self,
        request: &Request,
        draft: &HeadDraft<'_>,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) -> NextStep {
        let draft = HeadDraft { ranges: false, encoding: "", content_type: b"", ..*draft };
        remove_content_fields(&mut self.carried);
        self.head.body = BodyLen::None;
        self.fill(request, 304, &draft, site, ctx);
        self.body = AnswerBody::Empty;
        NextStep::Respond
    }

    /// Sends the compressed form `key`, after having it made if necessary; `None` if the file has
    /// to be sent uncompressed.
    fn send_compressed(
        &mut self,
        request: &Request,
        file: &Rc<OpenFile>,
        kind: &MediaType,
        key: VariantKey,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Option<NextStep> {
        let location = site.location(request.location);
        let variant = file.variant(key);
        let length = match &variant {
            FileVariant::Ready(form) => Some(form.len() as u64),
            FileVariant::Absent => None,
            FileVariant::NotWorth | FileVariant::Pending => return None,
        };
        let representation = Representation {
            source: RepresentationSource::CodedFile,
            status: self.status_or(200),
            length: Some(file.meta.size),
            transfer: Transfer::Coded { length },
            // nginx evaluates preconditions before it compresses, so against the strong tag.
            validator: validator(file, location),
            range_date: RangeDate::Own,
            rules: location.rules,
            advertises_ranges: false,
        };
        let delivery = match self.deliver(request, &representation) {
            Ok(delivery) => delivery,
            Err(next) => return Some(next),
        };
        if delivery.is_not_modified {
            let etag = representation.validator.etag;
            let draft = HeadDraft { etag, varies: true, ..dated(file) };
            return Some(self.not_modified(request, &draft, site, ctx));
        }
        debug_assert!(!delivery.is_partial(), "a form that is made on the fly has no ranges");
        let body = match variant {
            FileVariant::Ready(form) => {
                let sizes = (file.meta.size, form.len() as u64);
                self.compression = Some((key.coding.token(), sizes.0, sizes.1));
                AnswerBody::memory(form)
            }
            _ => match &file.body {
                bolide_files::FileBody::Disk(open) => {
                    let stream = CompressedFile::new(open.clone(), file.meta.size, key)?;
                    AnswerBody::Stream(Box::new(stream))
                }
                // An evicted form is not waited for a second time.
                bolide_files::FileBody::Memory(_) if self.waited_for_form => return None,
                bolide_files::FileBody::Memory(_) => {
                    let job = ctx.files.begin_variant(file, key)?;
                    self.waited_for_form = true;
                    ctx.effects.push(StepEffect::Compress(Box::new(job)));
                    return Some(NextStep::Compress(RequestStep::File));
                }
            },
        };
        let mut draft = HeadDraft {
            etag: location.settings.etag.then(|| file.etag.weak()),
            encoding: key.coding.token(),
            varies: true,
            ..dated(file)
        };
        self.head.body = BodyLen::Exact(file.meta.size);
        self.fill_typed(request, kind, delivery.status, &mut draft, site, ctx);
        self.head.body = delivery.length;
        self.body = body;
        Some(NextStep::Respond)
    }
}

/// The validators of `file`, as far as the location sends them.
fn validator<'a>(file: &'a OpenFile, location: &CompiledLocation) -> Validator<'a> {
    let mut validator = file.validator();
    validator.etag = validator.etag.filter(|_| location.settings.etag);
    validator
}

/// The fields of every response from `file`.
pub(super) fn dated(file: &OpenFile) -> HeadDraft<'_> {
    HeadDraft {
        last_modified: Some(&file.last_modified),
        modified_at: Some(u64::try_from(file.meta.mtime_secs).unwrap_or(0)),
        ..HeadDraft::default()
    }
}

pub(super) fn source(file: &OpenFile) -> BytesFrom {
    match &file.body {
        bolide_files::FileBody::Memory(bytes) => BytesFrom::Memory(bytes.clone()),
        bolide_files::FileBody::Disk(open) => BytesFrom::File(open.clone()),
    }
}
