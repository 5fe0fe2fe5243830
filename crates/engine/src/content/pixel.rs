//! Small built-in handlers: `empty_gif`, a transparent picture of one pixel, and `stub_status`.

use std::sync::Arc;

use bolide_http::conditional::Validator;
use bolide_http::{BodyLen, Method};
use bytes::Bytes;

use crate::answer::Answer;
use crate::content::admin::AdminRequest;
use crate::content::console::ConsoleRequest;
use crate::content::listing::compress_text;
use crate::counters::TallyCount;
use crate::ctx::StepCtx;
use crate::delivery::send::give_coded;
use crate::delivery::{DeliveredBytes, RangeDate, Representation, RepresentationSource, Transfer};
use crate::exchange::{Exchange, NextStep, RequestStep};
use crate::filter::headers::HeadDraft;
use crate::request::Request;
use crate::site::{Builtin, Site};

/// A GIF of one transparent pixel, as nginx sends it.
const PIXEL: &[u8] = b"GIF89a\x01\0\x01\0\x80\x01\0\0\0\0\xff\xff\xff!\xf9\x04\x01\0\0\x01\0,\
    \0\0\0\0\x01\0\x01\0\0\x02\x02L\x01\0;";
/// Its `Last-Modified` in nginx, as a date and in seconds since 1970.
const CHANGED: (&[u8], u64) = (b"Mon, 28 Sep 1970 06:00:00 GMT", 23_349_600);

/// Its type.
const GIF: &[u8] = b"image/gif";

/// The type of `stub_status`.
const PLAIN: &[u8] = b"text/plain";

impl Exchange {
    /// Runs the built-in handler of the location.
    pub(crate) fn builtin(
        &mut self,
        builtin: Builtin,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        let Self { request, answer, trial, .. } = self;
        match builtin {
            Builtin::Admin => AdminRequest { request, answer, trial }.answer(site, ctx),
            Builtin::Console => ConsoleRequest { request, answer }.answer(site, ctx),
            Builtin::EmptyGif => answer.pixel(request, site, ctx),
            Builtin::Flv => self.videos(RequestStep::Flv, site, ctx),
            Builtin::Health(probe) => super::health::serve(answer, request, probe, site, ctx),
            Builtin::Metrics => super::metrics::serve(answer, request, site, ctx),
            Builtin::Mp4 => self.videos(RequestStep::Mp4, site, ctx),
            Builtin::StubStatus => answer.stub_status(request, site, ctx),
        }
    }
}

impl Answer {
    fn stub_status(&mut self, request: &Request, site: &Site, ctx: &StepCtx<'_>) -> NextStep {
        if !matches!(request.method, Method::Get | Method::Head) {
            return NextStep::Fail(405);
        }
        let sum = |count| ctx.counters.sum(count);
        let text = format!(
            "Active connections: {} \nserver accepts handled requests\n {} {} {} \n\
             Reading: {} Writing: {} Waiting: {} \n",
            sum(TallyCount::Active),
            sum(TallyCount::Accepted),
            sum(TallyCount::Handled),
            sum(TallyCount::Requests),
            sum(TallyCount::Reading),
            sum(TallyCount::Writing),
            sum(TallyCount::Waiting)
        );
        let settings = &site.location(request.location).settings;
        let kind = crate::media_types::kind(settings, &Arc::from(PLAIN));
        self.send_text(request, &kind, 200, Bytes::from(text), site, ctx)
    }

    fn pixel(&mut self, request: &Request, site: &Site, ctx: &StepCtx<'_>) -> NextStep {
        if !matches!(request.method, Method::Get | Method::Head) {
            return NextStep::Fail(405);
        }
        let location = site.location(request.location);
        let status = self.status_or(200);
        let mut draft = HeadDraft {
            content_type: GIF,
            last_modified: Some(CHANGED.0),
            modified_at: Some(CHANGED.1),
            ..HeadDraft::default()
        };
        let representation = Representation {
            source: RepresentationSource::Pixel,
            status,
            length: Some(PIXEL.len() as u64),
            transfer: Transfer::Identity,
            validator: Validator { etag: None, last_modified: Some(CHANGED.1) },
            range_date: RangeDate::Own,
            rules: location.rules,
            advertises_ranges: false,
        };
        let delivery = match self.deliver(request, &representation) {
            Ok(delivery) => delivery,
            Err(next) => return next,
        };
        if delivery.is_not_modified {
            return self.not_modified(request, &draft, site, ctx);
        }
        let mut body = Bytes::from_static(PIXEL);
        self.head.body = delivery.length;
        let mut delivery = delivery;
        if location.coded && delivery.bytes == DeliveredBytes::Whole {
            let kind = crate::media_types::kind(&location.settings, &Arc::from(GIF));
            body = compress_text(request, self, &kind, status, body, &mut draft, location);
            delivery.length = BodyLen::Exact(body.len() as u64);
        }
        self.fill(request, delivery.status, &draft, site, ctx);
        give_coded(self, &delivery, body);
        NextStep::Respond
    }
}
