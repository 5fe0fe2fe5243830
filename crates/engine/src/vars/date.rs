//! `$date_local` and `$date_gmt`, as `config timefmt` of a page says.

use bolide_conf::vars::Var;
use bolide_ssi::{Moment, TIME_FORMAT, push_time};

use super::{VariableScope, VariableValue};

impl VariableScope<'_> {
    pub(super) fn write_date(&self, var: &Var, out: &mut Vec<u8>) -> VariableValue {
        let unix = self.now.unix_seconds() as i64;
        let moment = match var {
            Var::DateGmt => Moment { unix, offset: 0, zone: "GMT" },
            _ => Moment { unix, offset: self.clock.utc_offset(), zone: self.clock.zone() },
        };
        let page = self.answer.body.compound();
        let format = page.and_then(|page| page.time_format()).unwrap_or(TIME_FORMAT);
        VariableValue::when(push_time(out, format, moment))
    }
}
