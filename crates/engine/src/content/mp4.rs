//! `mp4`: a file, or the part of it between the times `start` and `end`.

use std::rc::Rc;

use bolide_conf::model::LogLevel;
use bolide_files::{FileBody, Mp4Cut, Mp4Fault, Mp4Job, Mp4Outcome, OpenFile};
use bytes::Bytes;

use crate::answer::Answer;
use crate::content::flv::VideoPart;
use crate::content::search::FileSearch;
use crate::ctx::{JobResult, StepCtx, StepEffect};
use crate::delivery::DeliveryRules;
use crate::exchange::{NextStep, RequestStep};
use crate::filter::compress;
use crate::log_lines;
use crate::request::Request;
use crate::site::{CompiledLocation, Site};
use crate::vars::argument;

impl FileSearch {
    /// `mp4`: a file, or the part of it between the times of its arguments.
    pub(crate) fn mp4(
        &mut self,
        request: &Request,
        answer: &mut Answer,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        let location = site.location(request.location);
        let file = match self.open_video(RequestStep::Mp4, request, answer, site, ctx) {
            Ok(file) => file,
            Err(next) => return next,
        };
        let outcome = match wanted(request.args(), location) {
            None => Ok(Mp4Outcome::Whole),
            Some(cut) => match self.cut(&file, cut, ctx) {
                Some(outcome) => outcome,
                None => return NextStep::Make(RequestStep::Mp4),
            },
        };
        match outcome {
            Ok(Mp4Outcome::Whole) => {
                let client = compress::wanted_codings(request, location);
                answer.send(request, &file, client, false, site, ctx)
            }
            Ok(Mp4Outcome::Parts(parts)) => {
                // As in nginx, several ranges are ignored.
                let max_ranges = location.rules.max_ranges.min(1);
                let rules = DeliveryRules { max_ranges, ..location.rules };
                let part = VideoPart { head: Bytes::from(parts.head), body: parts.body, rules };
                answer.send_video(request, &file, part, site, ctx)
            }
            Err(fault) => {
                log_lines::error(request, site, ctx, LogLevel::Error, |out| {
                    fault.write(&self.path, out);
                });
                NextStep::Fail(500)
            }
        }
    }

    /// The part of a file; `None` if it has to be requested first.
    fn cut(
        &mut self,
        file: &Rc<OpenFile>,
        cut: Mp4Cut,
        ctx: &mut StepCtx<'_>,
    ) -> Option<Result<Mp4Outcome, Mp4Fault>> {
        // The file may have changed meanwhile.
        if let Some(JobResult::Video(made)) = self.made.take()
            && made.meta == file.meta
            && made.cut == cut
        {
            return Some(made.outcome);
        }
        match &file.body {
            FileBody::Memory(bytes) => Some(cut.of_memory(bytes)),
            FileBody::Disk(open) => {
                let job = Mp4Job::new(open.clone(), file.meta, cut);
                ctx.effects.push(StepEffect::CutVideo(Box::new(job)));
                None
            }
        }
    }
}

/// The part of a video that a request selects; `None` for all of it.
fn wanted(args: &[u8], location: &CompiledLocation) -> Option<Mp4Cut> {
    let time = |name: &[u8]| argument(args, name).and_then(milliseconds);
    let (start, end) = (time(b"start"), time(b"end").filter(|end| *end > 0));
    if start.is_none() && end.is_none() {
        return None;
    }
    let start = start.unwrap_or(0);
    let settings = &location.settings.mp4;
    Some(Mp4Cut {
        start,
        length: end.and_then(|end| end.checked_sub(start)).filter(|length| *length > 0),
        buffer: settings.buffer_size,
        buffer_max: settings.max_buffer_size,
        start_key_frame: settings.start_key_frame,
    })
}

/// Parses seconds with at most three decimals, as milliseconds.
fn milliseconds(text: &[u8]) -> Option<u64> {
    let (mut value, mut decimals, mut is_fraction) = (0_i64, 0, false);
    for byte in text {
        match byte {
            b'.' if !is_fraction => is_fraction = true,
            b'0'..=b'9' if decimals == 3 => {}
            b'0'..=b'9' => {
                value = value.checked_mul(10)?.checked_add(i64::from(byte - b'0'))?;
                decimals += u32::from(is_fraction);
            }
            _ => return None,
        }
    }
    let has_digits = text.iter().any(u8::is_ascii_digit);
    let value = value.checked_mul(10_i64.pow(3 - decimals))?;
    u64::try_from(value).ok().filter(|_| has_digits)
}

#[cfg(test)]
mod tests {
    use super::milliseconds;

    #[test]
    fn times_are_seconds_with_at_most_one_point() {
        let rows: [(&str, Option<u64>); 15] = [
            ("1", Some(1000)),
            ("0", Some(0)),
            ("01", Some(1000)),
            ("1.5", Some(1500)),
            (".5", Some(500)),
            ("1.", Some(1000)),
            ("1.23456", Some(1234)),
            ("9223372036854775", Some(9_223_372_036_854_775_000)),
            ("9223372036854776", None),
            ("99999999999999999999", None),
            ("", None),
            (".", None),
            ("1.5.5", None),
            ("1.2345x", None),
            ("-1", None),
        ];
        for (text, wanted) in rows {
            assert_eq!(milliseconds(text.as_bytes()), wanted, "{text}");
        }
    }
}
