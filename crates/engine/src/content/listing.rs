//! `autoindex`: directory listings in four formats; 403 if it is off.

use std::sync::Arc;

use bolide_conf::model::{AutoindexFormat, CharsetOf, LogLevel};
use bolide_files::listing::{Columns, Format, ListingJob, Sizes, Style, callback, content_type};
use bolide_files::{DirEntry, Want};
use bolide_http::{BodyLen, Method};
use bytes::Bytes;

use crate::answer::Answer;
use crate::content::search::FileSearch;
use crate::ctx::{JobResult, StepCtx, StepEffect};
use crate::delivery::Representation;
use crate::delivery::send::give_coded;
use crate::exchange::{NextStep, RequestStep};
use crate::filter::compress;
use crate::filter::headers::HeadDraft;
use crate::htaccess::effects::lists;
use crate::htaccess::listed::listed;
use crate::log_lines;
use crate::media_types::kind;
use crate::phase::checks::AccessChecks;
use crate::request::Request;
use crate::site::{CompiledLocation, Site};

impl FileSearch {
    /// Lists the directory of the path, if `autoindex` permits it.
    pub(crate) fn listing(
        &mut self,
        request: &mut Request,
        answer: &mut Answer,
        access: &mut AccessChecks,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        let location = site.location(request.location);
        debug_assert!(
            request.uri.ends_with(b"/") || location.htaccess.is_some(),
            "a directory's path ends with a slash unless a file says otherwise"
        );
        let allowed =
            lists(request, location) && matches!(request.method, Method::Get | Method::Head);
        self.map_path(request, answer, site, ctx);
        if !allowed {
            let path = &self.path;
            request.log_error(site, ctx, |out| {
                out.extend_from_slice(b"directory index of \"");
                out.extend_from_slice(path);
                out.extend_from_slice(b"\" is forbidden");
            });
            return NextStep::Fail(403);
        }
        self.end_without_slash();
        if let Some(JobResult::Listing(text)) = self.made.take() {
            return answer.send_listing(request, text, location, site, ctx);
        }
        if let Some(Ok(entries)) = ctx.files.listing(&self.path, ctx.now) {
            let entries = match listed(request, answer, self, access, entries, (site, ctx)) {
                Ok(entries) => entries,
                Err(next) => return next,
            };
            let job = match listing_job(request, location, entries, site, ctx) {
                Ok(job) => job,
                Err(next) => return next,
            };
            if job.entries.len() <= LISTED_AT_ONCE {
                return answer.send_listing(request, job.run().into(), location, site, ctx);
            }
            ctx.effects.push(StepEffect::List(Box::new(job)));
            return NextStep::Make(RequestStep::Listing);
        }
        self.probe_listing(request, RequestStep::Listing, site, ctx)
    }

    /// Removes the final slash, as the table of open files has directories.
    pub(crate) fn end_without_slash(&mut self) {
        if self.path.len() > 1 && self.path.last() == Some(&b'/') {
            self.path.pop();
        }
    }

    /// Waits for the entries of the directory, then repeats `step`; fails if the directory cannot
    /// be read.
    pub(super) fn probe_listing(
        &mut self,
        request: &Request,
        step: RequestStep,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        let policy = &site.location(request.location).policy;
        if self.waited_for_listing
            && let Some(Err(failure)) = ctx.files.listing(&self.path, ctx.now)
        {
            return self.listing_failed(request, failure, site, ctx);
        }
        self.waited_for_listing = true;
        let probe = ctx.files.probe(&self.path, Want::List, policy);
        ctx.effects.push(StepEffect::Probe(Box::new(probe)));
        NextStep::Probe(step)
    }

    fn listing_failed(
        &self,
        request: &Request,
        failure: bolide_files::OpenFailure,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        let status = failure.status();
        let location = site.location(request.location);
        if status != 404 || location.settings.log_not_found {
            let level = if status == 500 { LogLevel::Crit } else { LogLevel::Error };
            let path = &self.path;
            log_lines::error(request, site, ctx, level, |out| {
                out.extend_from_slice(b"opendir() \"");
                out.extend_from_slice(path);
                out.extend_from_slice(b"\" failed ");
                log_lines::push_errno(out, failure.errno());
            });
        }
        NextStep::Fail(status)
    }
}

/// LIMIT: entries of a listing that is written within the turn; a longer one takes milliseconds.
const LISTED_AT_ONCE: usize = 1000;

fn format_of(location: &CompiledLocation) -> Format {
    match location.settings.autoindex.format {
        AutoindexFormat::Html => Format::Html,
        AutoindexFormat::Json => Format::Json,
        AutoindexFormat::Jsonp => Format::Jsonp,
        AutoindexFormat::Xml => Format::Xml,
    }
}

fn asked_callback(request: &Request, format: Format) -> Option<&[u8]> {
    match format {
        Format::Jsonp => crate::vars::argument(request.args(), b"callback"),
        Format::Html | Format::Json | Format::Xml => None,
    }
}

/// The job that writes the listing of these entries.
fn listing_job(
    request: &Request,
    location: &CompiledLocation,
    entries: Arc<Vec<DirEntry>>,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> Result<ListingJob, NextStep> {
    let autoindex = location.settings.autoindex;
    let format = format_of(location);
    let Ok(callback) = callback(asked_callback(request, format)) else {
        request.log_error(site, ctx, |out| {
            out.extend_from_slice(b"client sent invalid callback name");
        });
        return Err(NextStep::Fail(400));
    };
    let style = Style {
        format,
        sizes: if autoindex.exact_size { Sizes::Exact } else { Sizes::Rounded },
        columns: match &location.settings.charset.charset {
            CharsetOf::Name(name)
                if name.as_text().is_some_and(|name| name.eq_ignore_ascii_case(b"utf-8")) =>
            {
                Columns::Utf8
            }
            _ => Columns::Bytes,
        },
        offset: if autoindex.localtime { ctx.clock.utc_offset() } else { 0 },
    };
    Ok(ListingJob {
        uri: request.uri.clone(),
        entries,
        style,
        callback: callback.map(<[u8]>::to_vec),
    })
}

impl Answer {
    fn send_listing(
        &mut self,
        request: &Request,
        text: Bytes,
        location: &CompiledLocation,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) -> NextStep {
        let format = format_of(location);
        let callback = callback(asked_callback(request, format)).unwrap_or_default();
        let media = content_type(format, callback).as_bytes().into();
        let mut kind = kind(&location.settings, &media);
        if format == Format::Xml {
            // As in nginx, XML declares its charset, whatever `charset` says.
            kind.value = Box::from(&b"text/xml; charset=utf-8"[..]);
            kind.charset_varies = false;
        }
        self.send_text(request, &kind, 200, text, site, ctx)
    }

    /// Sends a generated text, compressed if configuration and client agree.
    pub(crate) fn send_text(
        &mut self,
        request: &Request,
        kind: &crate::media_types::MediaType,
        status: u16,
        text: Bytes,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) -> NextStep {
        let location = site.location(request.location);
        let status = self.status_or(status);
        let mut draft = HeadDraft::default();
        let body = compress_text(request, self, kind, status, text, &mut draft, location);
        let delivery = match self.deliver(request, &Representation::text(status, body.len() as u64))
        {
            Ok(delivery) => delivery,
            Err(next) => return next,
        };
        // As in nginx, `add_header` may use the length of a text that a 204 does not send.
        self.head.body = BodyLen::Exact(body.len() as u64);
        self.fill_typed(request, kind, delivery.status, &mut draft, site, ctx);
        self.head.body = delivery.length;
        give_coded(self, &delivery, body);
        NextStep::Respond
    }
}

/// Bytes of the longest text that is compressed within the turn.
const TEXT_COMPRESSED_MAX: u64 = 64 * 1024;

/// The bytes of `text` that are sent; sets the consequences for the head in `draft`.
pub(crate) fn compress_text(
    request: &Request,
    answer: &mut Answer,
    kind: &crate::media_types::MediaType,
    status: u16,
    text: Bytes,
    draft: &mut HeadDraft<'_>,
    location: &CompiledLocation,
) -> Bytes {
    if !location.coded || kind.is_coded_last() {
        return text;
    }
    let client = compress::codings_for_text(request, location);
    let len = text.len() as u64;
    let choice = compress::choose(request, location, kind, status, Some(len), client);
    draft.varies |= choice.varies;
    // LIMIT: a text that takes long to compress is sent uncompressed; the worker must not block.
    if let Some(coding) = choice.coding.filter(|_| len <= TEXT_COMPRESSED_MAX)
        && let Ok(form) = bolide_files::compress(coding, compress::level(location, coding), &text)
    {
        draft.encoding = coding.token();
        answer.compression = Some((coding.token(), len, form.len() as u64));
        return Bytes::from(form);
    }
    text
}
