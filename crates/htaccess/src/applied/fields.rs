//! `Header` and `RequestHeader` of all places that apply.

use bolide_http::{FieldMap, Name};

use super::Applied;
use crate::headers::{self, HeaderLine, HeaderTable, HeaderTimes};
use crate::world::{Evaluation, ResponseView, Stop};

impl Applied<'_> {
    /// Whether request fields are edited.
    #[must_use]
    pub fn edits_request(&self) -> bool {
        self.all().any(|settings| !settings.request_headers.is_empty())
    }

    /// Applies `RequestHeader` to `fields`.
    ///
    /// # Errors
    ///
    /// A condition could not be evaluated.
    pub fn edit_request(
        &self,
        fields: &mut FieldMap,
        times: HeaderTimes,
        by: &mut Evaluation<'_>,
    ) -> Result<(), Stop> {
        headers::apply(self.all().flat_map(|settings| &settings.request_headers), fields, times, by)
    }

    /// Whether response fields are edited.
    #[must_use]
    pub fn edits_response(&self) -> bool {
        self.all().any(|settings| !settings.headers.is_empty())
    }

    /// Applies `Header` to response fields. Those of `always` come first, and only they apply to a
    /// generated error.
    ///
    /// # Errors
    ///
    /// A condition could not be evaluated.
    pub fn edit_response(
        &self,
        fields: &mut FieldMap,
        always: &mut FieldMap,
        (status, is_own_error): (u16, bool),
        times: HeaderTimes,
        by: &mut Evaluation<'_>,
    ) -> Result<(), Stop> {
        if self.all().flat_map(|settings| &settings.headers).any(HeaderLine::evaluates) {
            let media_type = fields.get(Name::ContentType).unwrap_or_default().to_vec();
            by.response = Some(ResponseView { status, media_type, fields: fields.clone() });
        }
        let of = |table: HeaderTable| {
            let edits = self.all().flat_map(|settings| &settings.headers);
            edits.filter(move |edit| edit.table == table)
        };
        headers::apply(of(HeaderTable::Always), always, times, by)?;
        if !is_own_error {
            headers::apply(of(HeaderTable::Success), fields, times, by)?;
        }
        Ok(())
    }
}
