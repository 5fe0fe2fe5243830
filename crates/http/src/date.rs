//! Civil time: the three HTTP date formats (RFC 9110 §5.6.7) and other texts that a server writes
//! often.
//!
//! Reads no clock and knows no time zone: both are arguments. A [`DateClock`] formats once per
//! second.

use bolide_base::Now;

use crate::digits::{put_four, put_two};

const DAYS: [&[u8; 3]; 7] = [b"Sun", b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat"];
/// The same, in RFC 850's spelling.
const LONG_DAYS: [&[u8]; 7] =
    [b"Sunday", b"Monday", b"Tuesday", b"Wednesday", b"Thursday", b"Friday", b"Saturday"];
/// English month names in the spelling of all formats here, January first.
pub const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];
const DAY_SECONDS: i64 = 86_400;
/// The last second of the year 9999; later times do not fit the formats and appear as this.
const LAST_SECOND: i64 = 253_402_300_799;

/// A point in time in calendar form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CivilDate {
    /// 1970 to 9999.
    pub year: u32,
    /// 1 to 12.
    pub month: u32,
    /// 1 to 31.
    pub day: u32,
    /// 0 to 23.
    pub hour: u32,
    /// 0 to 59.
    pub minute: u32,
    /// 0 to 59.
    pub second: u32,
    /// 0 is Sunday.
    pub weekday: u32,
}

impl CivilDate {
    /// The civil time `unix_seconds` after 1970; clamped to 1970 to 9999.
    #[must_use]
    pub const fn from_unix(unix_seconds: i64) -> Self {
        let seconds = if unix_seconds < 0 {
            0
        } else if unix_seconds > LAST_SECOND {
            LAST_SECOND
        } else {
            unix_seconds
        };
        let (days, rest) = ((seconds / DAY_SECONDS) as u32, (seconds % DAY_SECONDS) as u32);
        // Years are counted from 1 March 0000, so that the leap day is a year's last and a month's
        // first day is a linear function of its number. 719,468 days lie between that and 1970.
        let shifted = days + 719_468;
        let (era, in_era) = (shifted / 146_097, shifted % 146_097);
        let year_of_era = (in_era - in_era / 1_460 + in_era / 36_524 - in_era / 146_096) / 365;
        let in_year = in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * in_year + 2) / 153;
        let day = in_year - (153 * from_march + 2) / 5 + 1;
        let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
        let year = era * 400 + year_of_era + if month <= 2 { 1 } else { 0 };
        Self {
            year,
            month,
            day,
            hour: rest / 3600,
            minute: rest / 60 % 60,
            second: rest % 60,
            weekday: (days + 4) % 7,
        }
    }

    /// Seconds since 1970; ignores `weekday`.
    #[must_use]
    pub const fn to_unix(self) -> i64 {
        let year = self.year - if self.month <= 2 { 1 } else { 0 };
        let from_march = (self.month + 9) % 12;
        let (era, year_of_era) = (year / 400, year % 400);
        let in_year = (153 * from_march + 2) / 5 + self.day - 1;
        let in_era = 365 * year_of_era + year_of_era / 4 - year_of_era / 100 + in_year;
        let days = era as i64 * 146_097 + in_era as i64 - 719_468;
        days * DAY_SECONDS + (self.hour * 3600 + self.minute * 60 + self.second) as i64
    }
}

/// Days in `month` (1 to 12) of `year`.
const fn month_days(year: u32, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => {
            29
        }
        2 => 28,
        _ => 31,
    }
}

const fn put(place: &mut [u8], at: usize, text: &[u8; 3]) {
    place[at] = text[0];
    place[at + 1] = text[1];
    place[at + 2] = text[2];
}

/// `HH:MM:SS` at `at`.
const fn put_clock(place: &mut [u8], at: usize, civil: &CivilDate) {
    put_two(place, at, civil.hour);
    put_two(place, at + 3, civil.minute);
    put_two(place, at + 6, civil.second);
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`
#[must_use]
pub const fn http_date(unix_seconds: i64) -> [u8; 29] {
    let civil = CivilDate::from_unix(unix_seconds);
    let mut text = *b"Sun, 00 Jan 0000 00:00:00 GMT";
    put(&mut text, 0, DAYS[civil.weekday as usize]);
    put_two(&mut text, 5, civil.day);
    put(&mut text, 8, MONTHS[civil.month as usize - 1]);
    put_four(&mut text, 12, civil.year);
    put_clock(&mut text, 17, &civil);
    text
}

/// `06/Nov/1994:09:49:37 +0100` for the zone `offset` seconds east of Greenwich.
#[must_use]
pub const fn log_date(unix_seconds: i64, offset: i32) -> [u8; 26] {
    let civil = CivilDate::from_unix(unix_seconds + offset as i64);
    let mut text = *b"00/Jan/0000:00:00:00 +0000";
    put_two(&mut text, 0, civil.day);
    put(&mut text, 3, MONTHS[civil.month as usize - 1]);
    put_four(&mut text, 7, civil.year);
    put_clock(&mut text, 12, &civil);
    put_zone(&mut text, 21, offset);
    put_two(&mut text, 24, offset.unsigned_abs() / 60 % 60);
    text
}

/// `1994-11-06T09:49:37+01:00` for the zone `offset` seconds east of Greenwich.
#[must_use]
pub const fn iso_date(unix_seconds: i64, offset: i32) -> [u8; 25] {
    let civil = CivilDate::from_unix(unix_seconds + offset as i64);
    let mut text = *b"0000-00-00T00:00:00+00:00";
    put_four(&mut text, 0, civil.year);
    put_two(&mut text, 5, civil.month);
    put_two(&mut text, 8, civil.day);
    put_clock(&mut text, 11, &civil);
    put_zone(&mut text, 19, offset);
    put_two(&mut text, 23, offset.unsigned_abs() / 60 % 60);
    text
}

/// `1994/11/06 09:49:37` for the zone `offset` seconds east of Greenwich.
#[must_use]
pub const fn error_date(unix_seconds: i64, offset: i32) -> [u8; 19] {
    let civil = CivilDate::from_unix(unix_seconds + offset as i64);
    let mut text = *b"0000/00/00 00:00:00";
    put_four(&mut text, 0, civil.year);
    put_two(&mut text, 5, civil.month);
    put_two(&mut text, 8, civil.day);
    put_clock(&mut text, 11, &civil);
    text
}

/// `Nov  6 09:49:37` for the zone `offset` seconds east of Greenwich (RFC 3164 §4.1.2: a blank, not
/// a zero, pads the day).
#[must_use]
pub const fn syslog_date(unix_seconds: i64, offset: i32) -> [u8; 15] {
    let civil = CivilDate::from_unix(unix_seconds + offset as i64);
    let mut text = *b"Jan 00 00:00:00";
    put(&mut text, 0, MONTHS[civil.month as usize - 1]);
    put_two(&mut text, 4, civil.day);
    if text[4] == b'0' {
        text[4] = b' ';
    }
    put_clock(&mut text, 7, &civil);
    text
}

/// Sign and hours of a zone.
const fn put_zone(place: &mut [u8], at: usize, offset: i32) {
    place[at] = if offset < 0 { b'-' } else { b'+' };
    put_two(place, at + 1, offset.unsigned_abs() / 3600);
}

/// Texts of the current second.
#[derive(Clone, Debug)]
pub struct DateClock {
    second: u64,
    offset: i32,
    http: [u8; 29],
    log: [u8; 26],
    iso: [u8; 25],
    error: [u8; 19],
    zone: Zone,
}

/// The name of a time zone: `CET`.
type Zone = ([u8; 8], u8);

impl DateClock {
    /// The texts of `now`, in the zone `utc_offset_seconds` east of Greenwich.
    #[must_use]
    pub const fn new(now: Now, utc_offset_seconds: i32) -> Self {
        let second = now.unix_seconds();
        let unix = second as i64;
        Self {
            second,
            offset: utc_offset_seconds,
            http: http_date(unix),
            log: log_date(unix, utc_offset_seconds),
            iso: iso_date(unix, utc_offset_seconds),
            error: error_date(unix, utc_offset_seconds),
            zone: (*b"UTC     ", 3),
        }
    }

    /// Names the zone; a name longer than eight bytes is cut.
    pub fn set_zone(&mut self, name: &str) {
        let len = name.bytes().take(8).take_while(u8::is_ascii).count();
        self.zone.0[..len].copy_from_slice(&name.as_bytes()[..len]);
        self.zone.1 = len as u8;
    }

    /// The name of the zone of the texts.
    #[must_use]
    pub fn zone(&self) -> &str {
        std::str::from_utf8(&self.zone.0[..usize::from(self.zone.1)]).unwrap_or_default()
    }

    /// Formats again if the second or the zone has changed.
    #[inline]
    pub fn update(&mut self, now: Now, utc_offset_seconds: i32) {
        if self.second != now.unix_seconds() || self.offset != utc_offset_seconds {
            *self = Self { zone: self.zone, ..Self::new(now, utc_offset_seconds) };
        }
    }

    /// For `Date`: `Sun, 06 Nov 1994 08:49:37 GMT`.
    #[must_use]
    pub const fn http(&self) -> &[u8; 29] {
        &self.http
    }

    /// `$time_local`: `06/Nov/1994:08:49:37 +0000`.
    #[must_use]
    pub const fn time_local(&self) -> &[u8; 26] {
        &self.log
    }

    /// `$time_iso8601`: `1994-11-06T08:49:37+00:00`.
    #[must_use]
    pub const fn time_iso8601(&self) -> &[u8; 25] {
        &self.iso
    }

    /// Seconds east of Greenwich of the zone of the texts.
    #[must_use]
    pub const fn utc_offset(&self) -> i32 {
        self.offset
    }

    /// For syslog: `Nov  6 08:49:37`.
    #[must_use]
    pub const fn syslog(&self) -> [u8; 15] {
        syslog_date(self.second as i64, self.offset)
    }

    /// For the error log: `1994/11/06 08:49:37`.
    #[must_use]
    pub const fn error_log(&self) -> &[u8; 19] {
        &self.error
    }
}

/// Seconds since 1970 of a date in any of the three formats, with nginx's tolerance: it ignores the
/// day's name and the zone. `None` for anything else and for times before 1970.
#[must_use]
pub fn parse(text: &[u8]) -> Option<u64> {
    let stop = memchr::memchr2(b',', b' ', text)?;
    let mut rest = Rest(text[stop + 1..].trim_ascii_start());
    let civil =
        if text[stop] == b',' { parse_fixed(&mut rest)? } else { parse_asctime(&mut rest)? };
    let in_range = civil.year >= 1970
        && (1..=month_days(civil.year, civil.month)).contains(&civil.day)
        && civil.hour < 24
        && civil.minute < 60
        && civil.second < 60;
    if !in_range {
        return None;
    }
    u64::try_from(civil.to_unix()).ok()
}

/// The same without tolerance: the zone is `GMT`, and names have their exact spelling (RFC 9110
/// §5.6.7). The name of the weekday is not checked against the date.
#[must_use]
pub fn parse_strictly(text: &[u8]) -> Option<u64> {
    let seconds = parse(text)?;
    let civil = CivilDate::from_unix(seconds as i64);
    let (day, rest) = text.split_at(memchr::memchr2(b',', b' ', text)?);
    let names: &[&[u8]] = if day.len() == 3 { &DAYS.map(|day| &day[..]) } else { &LONG_DAYS };
    let is_exact = match (day.len(), rest.first()) {
        (3, Some(b',')) => *rest == http_date(seconds as i64)[3..],
        (3, _) => *rest == asctime_behind_day(&civil),
        _ => *rest == rfc850_behind_day(&civil),
    };
    (is_exact && names.contains(&day)).then_some(seconds)
}

/// ` Nov  6 08:49:37 1994`
const fn asctime_behind_day(civil: &CivilDate) -> [u8; 21] {
    let mut text = *b" Jan 00 00:00:00 0000";
    put(&mut text, 1, MONTHS[civil.month as usize - 1]);
    put_two(&mut text, 5, civil.day);
    if text[5] == b'0' {
        text[5] = b' ';
    }
    put_clock(&mut text, 8, civil);
    put_four(&mut text, 17, civil.year);
    text
}

/// `, 06-Nov-94 08:49:37 GMT`
const fn rfc850_behind_day(civil: &CivilDate) -> [u8; 24] {
    let mut text = *b", 00-Jan-00 00:00:00 GMT";
    put_two(&mut text, 2, civil.day);
    put(&mut text, 5, MONTHS[civil.month as usize - 1]);
    put_two(&mut text, 9, civil.year % 100);
    put_clock(&mut text, 12, civil);
    text
}

/// `06 Nov 1994 08:49:37` or, as in RFC 850, `06-Nov-94 08:49:37`.
fn parse_fixed(rest: &mut Rest<'_>) -> Option<CivilDate> {
    let day = rest.number(2)?;
    let separator = rest.byte()?;
    let month = rest.month()?;
    rest.expect(separator)?;
    let year = match separator {
        b' ' => rest.number(4)?,
        b'-' => match rest.number(2)? {
            year @ 0..70 => 2000 + year,
            year => 1900 + year,
        },
        _ => return None,
    };
    rest.expect(b' ')?;
    rest.clock(year, month, day)
}

/// `Nov  6 08:49:37 1994`
fn parse_asctime(rest: &mut Rest<'_>) -> Option<CivilDate> {
    let month = rest.month()?;
    rest.expect(b' ')?;
    let day = if rest.0.first() == Some(&b' ') {
        rest.byte()?;
        rest.number(1)?
    } else if rest.0.get(1) == Some(&b' ') {
        rest.number(1)?
    } else {
        rest.number(2)?
    };
    rest.expect(b' ')?;
    let civil = rest.clock(0, month, day)?;
    rest.expect(b' ')?;
    Some(CivilDate { year: rest.number(4)?, ..civil })
}

struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    fn expect(&mut self, wanted: u8) -> Option<()> {
        (self.byte()? == wanted).then_some(())
    }

    fn number(&mut self, digits: usize) -> Option<u32> {
        (0..digits).try_fold(0, |number, _| {
            let digit = self.byte()?.wrapping_sub(b'0');
            (digit < 10).then_some(number * 10 + u32::from(digit))
        })
    }

    fn month(&mut self) -> Option<u32> {
        let (name, rest) = self.0.split_first_chunk::<3>()?;
        self.0 = rest;
        let index = MONTHS.iter().position(|month| *month == name)?;
        Some(index as u32 + 1)
    }

    /// `HH:MM:SS` completes a date.
    fn clock(&mut self, year: u32, month: u32, day: u32) -> Option<CivilDate> {
        let hour = self.number(2)?;
        self.expect(b':')?;
        let minute = self.number(2)?;
        self.expect(b':')?;
        let second = self.number(2)?;
        Some(CivilDate { year, month, day, hour, minute, second, weekday: 0 })
    }
}

#[cfg(test)]
mod tests;
