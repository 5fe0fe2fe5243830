//! What the server answers by itself: `empty_gif`, a transparent picture of one pixel, and
//! `stub_status`, a few numbers.

use std::sync::Arc;

use bytes::Bytes;
use http::conditional::{Conditions, Validator, Verdict};
use http::{BodyLen, Method};

use crate::answer::Body;
use crate::ctx::Ctx;
use crate::exchange::{Exchange, Next};
use crate::filter::headers::Draft;
use crate::site::{Builtin, Site};
use crate::tally::Count;

/// A GIF of one transparent pixel, as nginx sends it.
const PIXEL: &[u8] = b"GIF89a\x01\0\x01\0\x80\x01\0\0\0\0\xff\xff\xff!\xf9\x04\x01\0\0\x01\0,\
    \0\0\0\0\x01\0\x01\0\0\x02\x02L\x01\0;";
/// When nginx says that it changed, as a date and in seconds since 1970.
const CHANGED: (&[u8], u64) = (b"Mon, 28 Sep 1970 06:00:00 GMT", 23_349_600);

/// The type of `stub_status`.
const PLAIN: &[u8] = b"text/plain";

impl Exchange {
    /// Answers by what the server has itself.
    pub(crate) fn builtin(&mut self, builtin: Builtin, site: &Site, ctx: &mut Ctx<'_>) -> Next {
        match builtin {
            Builtin::Admin => self.admin(site, ctx),
            Builtin::EmptyGif => self.pixel(site, ctx),
            Builtin::StubStatus => self.stub_status(site, ctx),
        }
    }

    fn stub_status(&mut self, site: &Site, ctx: &mut Ctx<'_>) -> Next {
        if !matches!(self.request.method, Method::Get | Method::Head) {
            return Next::Fail(405);
        }
        let sum = |count| ctx.counters.sum(count);
        let text = format!(
            "Active connections: {} \nserver accepts handled requests\n {} {} {} \n\
             Reading: {} Writing: {} Waiting: {} \n",
            sum(Count::Active),
            sum(Count::Accepted),
            sum(Count::Handled),
            sum(Count::Requests),
            sum(Count::Reading),
            sum(Count::Writing),
            sum(Count::Waiting)
        );
        let settings = &site.location(self.request.location).settings;
        let kind = crate::kinds::kind(settings, &Arc::from(PLAIN));
        self.send_text(&kind, 200, Bytes::from(text), site, ctx)
    }

    fn pixel(&mut self, site: &Site, ctx: &Ctx<'_>) -> Next {
        if !matches!(self.request.method, Method::Get | Method::Head) {
            return Next::Fail(405);
        }
        let location = site.location(self.request.location);
        let status = self.answer.status_or(200);
        let draft = Draft {
            content_type: b"image/gif",
            last_modified: Some(CHANGED.0),
            modified_at: Some(CHANGED.1),
            ..Draft::default()
        };
        if status == 200 {
            let validator = Validator { etag: None, last_modified: Some(CHANGED.1) };
            let conditions = Conditions::of(&self.request.head().fields);
            match conditions.evaluate(validator, location.rules.since) {
                Verdict::Proceed => {}
                Verdict::PreconditionFailed => return Next::Fail(412),
                Verdict::NotModified => {
                    let draft = Draft { content_type: b"", ..draft };
                    return self.not_modified(&draft, site, ctx);
                }
            }
        }
        self.answer.head.body = BodyLen::Exact(PIXEL.len() as u64);
        self.fill(status, &draft, site, ctx);
        self.answer.body = Body::memory(Bytes::from_static(PIXEL));
        Next::Respond
    }
}
