//! `flv`: a file from the offset `start` on, after a header of Flash Video.

use std::ops::Range;
use std::rc::Rc;

use bolide_conf::model::Mapping;
use bolide_files::{Etag, OpenFile, Want};
use bolide_http::conditional::Validator;
use bolide_http::{BodyLen, Method};
use bytes::Bytes;

use crate::answer::{Answer, BytesFrom, HeadedBytes};
use crate::content::file::{FileLookup, alias_rewritten};
use crate::content::search::FileSearch;
use crate::content::static_answer::{dated, source};
use crate::ctx::StepCtx;
use crate::delivery::{DeliveryRules, Representation, RepresentationSource, Transfer};
use crate::exchange::{Exchange, NextStep, RequestStep};
use crate::filter::body::filters_file;
use crate::filter::compress;
use crate::filter::headers::{HeadDraft, range_date};
use crate::request::Request;
use crate::site::Site;
use crate::vars::argument;

/// The FLV header with audio and video flags, and the first PreviousTagSize.
const HEAD: &[u8] = b"FLV\x01\x05\0\0\0\x09\0\0\0\0";

/// The part of a video that is sent.
pub(super) struct VideoPart {
    /// The generated header.
    pub(super) head: Bytes,
    /// The bytes of the file after it.
    pub(super) body: Range<u64>,
    pub(super) rules: DeliveryRules,
}

impl Exchange {
    /// The content handler of `flv` and `mp4`; `step` is its step for a file.
    pub(super) fn videos(&self, step: RequestStep, site: &Site, ctx: &mut StepCtx<'_>) -> NextStep {
        if !matches!(self.request.method, Method::Get | Method::Head) {
            return NextStep::Fail(405);
        }
        let location = site.location(self.request.location);
        if self.request.rewritten_here && location.settings.root.mapping != Mapping::Whole {
            return alias_rewritten(&self.request, site, ctx);
        }
        match self.request.uri.last() {
            Some(b'/') if location.settings.random_index => {
                NextStep::Step(RequestStep::RandomIndex)
            }
            Some(b'/') => NextStep::Step(RequestStep::Index(0)),
            _ => NextStep::Step(step),
        }
    }
}

impl FileSearch {
    /// Opens the video at a path that does not end in a slash, for `step`.
    ///
    /// # Errors
    ///
    /// The step that follows instead: the static handler serves everything but regular files.
    pub(super) fn open_video(
        &mut self,
        step: RequestStep,
        request: &Request,
        answer: &Answer,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Result<Rc<OpenFile>, NextStep> {
        let location = site.location(request.location);
        self.map_path(request, answer, site, ctx);
        match self.look(request, answer, location, Want::OPEN, site, ctx) {
            FileLookup::Asked => Err(NextStep::Probe(step)),
            FileLookup::Directory | FileLookup::Other => Err(NextStep::Step(RequestStep::File)),
            FileLookup::Failed(failure) | FileLookup::Closed(_, failure) => {
                Err(self.open_failed(request, failure, site, ctx))
            }
            FileLookup::File(file) => Ok(file),
        }
    }

    /// `flv`: a file from the offset `start` on.
    pub(crate) fn flv(
        &mut self,
        request: &Request,
        answer: &mut Answer,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        let location = site.location(request.location);
        let file = match self.open_video(RequestStep::Flv, request, answer, site, ctx) {
            Ok(file) => file,
            Err(next) => return next,
        };
        // As in nginx, an invalid number, or one beyond the end, means the beginning.
        let start = argument(request.args(), b"start").and_then(bolide_conf::value::number);
        match start.and_then(|start| u64::try_from(start).ok()) {
            Some(start) if start > 0 && start < file.meta.size => {
                answer.send_flv(request, &file, start, site, ctx)
            }
            _ => {
                let client = compress::wanted_codings(request, location);
                answer.send(request, &file, client, false, site, ctx)
            }
        }
    }
}

impl Answer {
    /// Sends the FLV header and the file from `start` on.
    fn send_flv(
        &mut self,
        request: &Request,
        file: &Rc<OpenFile>,
        start: u64,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        debug_assert!(start < file.meta.size, "a video begins within its file");
        let rules = site.location(request.location).rules;
        let part = VideoPart { head: Bytes::from_static(HEAD), body: start..file.meta.size, rules };
        self.send_video(request, file, part, site, ctx)
    }

    /// Sends a part of a video with a generated header.
    pub(super) fn send_video(
        &mut self,
        request: &Request,
        file: &Rc<OpenFile>,
        part: VideoPart,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        let VideoPart { head, body, rules } = part;
        debug_assert!(body.end <= file.meta.size, "a part ends within its file");
        let location = site.location(request.location);
        let kind = location.kinds.of_path(&request.uri);
        let length = head.len() as u64 + (body.end - body.start);
        let etag = Etag::of_part(&file.meta, length);
        let etag = location.settings.etag.then(|| etag.strong());
        let is_filtered =
            location.filters_bodies && filters_file(request, self, kind, "", length, site, ctx);
        let representation = Representation {
            source: RepresentationSource::File,
            status: self.status_or(200),
            length: Some(length),
            transfer: if is_filtered { Transfer::Filtered } else { Transfer::Identity },
            validator: Validator { etag, ..file.validator() },
            range_date: range_date(request, self, site, ctx),
            rules,
            advertises_ranges: true,
        };
        let delivery = match self.deliver(request, &representation) {
            Ok(delivery) => delivery,
            Err(next) => return next,
        };
        let mut draft = HeadDraft { etag, ranges: delivery.accept_ranges, ..dated(file) };
        if delivery.is_not_modified {
            return self.not_modified(request, &draft, site, ctx);
        }
        // As in nginx, `add_header` sees the values of the whole.
        self.head.body = BodyLen::Exact(length);
        self.fill_typed(request, kind, delivery.status, &mut draft, site, ctx);
        let video = HeadedBytes::new(head, source(file), body.start);
        self.give_bytes(&delivery, BytesFrom::Headed(Box::new(video)), length, ctx);
        NextStep::Respond
    }
}
