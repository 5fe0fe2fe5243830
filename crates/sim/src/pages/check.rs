//! The oracle for pages: whether a client may get a response, and whether the store may keep it.

use std::io::Read as _;

use super::{PageAudience, PageLocation, PageModel, PageVersion, SIZES};
use crate::fault_record::FaultRecord;
use crate::request::{RequestKind, SimRequest};
use crate::response::SimResponse;

impl PageModel {
    /// Checks the response to a request for a page, an edit or a purge.
    ///
    /// # Errors
    ///
    /// The violation.
    pub fn check(
        &self,
        request: &SimRequest,
        response: &SimResponse,
        fault_record: &FaultRecord,
    ) -> Result<(), String> {
        let hidden = |name: &str| name.starts_with("x-litespeed-") && name != "x-litespeed-cache";
        if let Some((name, value)) = response.fields.iter().find(|(name, _)| hidden(name)) {
            return Err(format!("clients get {name}: {value}"));
        }
        if fault_record.allows_status(&request.token(), response.status) {
            return Ok(());
        }
        match (request.what, response.status) {
            (RequestKind::Page(place, page), status) => {
                self.check_page((place, page), status, request, response, fault_record)
            }
            (RequestKind::Edit(..) | RequestKind::Refresh(..), 200) => Ok(()),
            (RequestKind::Purge(place, _), 200 | 404) if place.is_zone() => Ok(()),
            (RequestKind::Purge(..), 200) => Ok(()),
            (_, status) => Err(format!("status {status}")),
        }
    }

    fn check_page(
        &self,
        which: (PageLocation, usize),
        status: u16,
        request: &SimRequest,
        response: &SimResponse,
        fault_record: &FaultRecord,
    ) -> Result<(), String> {
        if which.0 == PageLocation::Esi {
            return match status {
                200 if request.head_only => Ok(()),
                200 => {
                    self.check_esi_page(which, &plain(request, response)?, request, fault_record)
                }
                _ => Err(format!("status {status}")),
            };
        }
        let etag = match (status, &request.known) {
            (200 | 206, _) => response.field("etag"),
            (304, Some(known)) => Some(&**known),
            (416, _) if request.range.is_some_and(|(first, _)| first >= SIZES[which.1] as u64) => {
                return Ok(());
            }
            _ => return Err(format!("status {status}")),
        };
        let version = etag.and_then(|etag| self.by_etag(etag));
        let Some(version) = version else { return Err(format!("no version is {etag:?}")) };
        self.check_version(which, version, request)?;
        if request.head_only || status == 304 {
            return Ok(());
        }
        let whole = version.body();
        let body = plain(request, response)?;
        let wanted = match (status, request.range) {
            (206, Some((first, last))) => {
                let last = last.min(whole.len() as u64 - 1);
                let range = format!("bytes {first}-{last}/{}", whole.len());
                // A wrong Content-Length of the application is not detected before the range is
                // sent.
                if response.field("content-range") != Some(&range)
                    && !fault_record.may_truncate(&request.token())
                {
                    return Err(format!("{:?}, not {range}", response.field("content-range")));
                }
                whole.get(first as usize..=last as usize).unwrap_or_default()
            }
            _ => &whole[..],
        };
        if body != wanted {
            let found = crate::run_trace::excerpt(&body);
            return Err(format!("bytes that are not those of {version:?}: {found}"));
        }
        Ok(())
    }

    /// Checks that the client may get this version.
    pub(super) fn check_version(
        &self,
        which: (PageLocation, usize),
        version: &PageVersion,
        request: &SimRequest,
    ) -> Result<(), String> {
        if (version.place, version.page) != which {
            return Err(format!("another page: {version:?}"));
        }
        if version.lang.as_ref().is_some_and(|lang| *lang != request.lang()) {
            return Err(format!("another language than {:?}: {version:?}", request.lang()));
        }
        match &version.audience {
            PageAudience::All => {}
            PageAudience::Session(session) if request.session().as_ref() == Some(session) => {}
            PageAudience::Visitor(visitor)
                if *visitor == request.visitor() && version.created >= request.since => {}
            _ => return Err(format!("A LEAK to {:?}: {version:?}", request.session())),
        }
        for floor in self.purges.iter().filter(|floor| floor.acked <= request.since) {
            if floor.scope.covers(version, request.port) && version.revalidated_at < floor.since {
                return Err(format!("{version:?} was dropped by {floor:?}"));
            }
        }
        Ok(())
    }

    /// The violation in a stored object of `session`, if there is one.
    #[must_use]
    pub fn check_stored(&self, body: &[u8], session: Option<&[u8]>) -> Option<String> {
        let number = body.split(|byte| *byte == b' ').next().unwrap_or_default();
        let number = std::str::from_utf8(number).ok().and_then(|text| text.parse().ok());
        let Some(version) = number.and_then(|number: u64| self.versions.get(&number)) else {
            return Some(format!("stored, but no version is {}", crate::run_trace::excerpt(body)));
        };
        let is_its = match (&version.audience, session) {
            (PageAudience::All, None) => true,
            (PageAudience::Session(own), Some(session)) => {
                String::from_utf8_lossy(session).contains(own.as_str())
            }
            _ => false,
        };
        if !is_its || version.body() != body {
            return Some(format!("stored for {session:?}: {version:?}"));
        }
        None
    }
}

/// The body without its coding.
fn plain(request: &SimRequest, response: &SimResponse) -> Result<Vec<u8>, String> {
    match response.field("content-encoding") {
        None => Ok(response.body.clone()),
        Some("gzip") if request.gzip => {
            let mut plain = Vec::new();
            let read = flate2::read::GzDecoder::new(&response.body[..]).read_to_end(&mut plain);
            read.map_err(|error| error.to_string())?;
            Ok(plain)
        }
        Some(other) => Err(format!("coding {other}")),
    }
}
