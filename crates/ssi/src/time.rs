//! Times in the formats of `config timefmt`: the output of strftime in the C locale.

use std::io::Write as _;

/// The default format of `$date_local` and `$date_gmt`.
pub const TIME_FORMAT: &[u8] = b"%A, %d-%b-%Y %H:%M:%S %Z";

const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// A moment in a zone.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// Seconds since 1970.
    pub unix: i64,
    /// Seconds east of Greenwich.
    pub offset: i32,
    /// The zone's name.
    pub zone: &'a str,
}

/// A moment taken apart.
struct Civil {
    year: i64,
    /// From 0.
    month: usize,
    day: i64,
    /// From 0, of the year.
    yday: i64,
    /// From 0, Sunday.
    weekday: i64,
    hour: i64,
    minute: i64,
    second: i64,
}

/// Days from 1970 to the first of March of the year 0.
const EPOCH: i64 = 719_468;

impl Civil {
    fn of(moment: Moment<'_>) -> Self {
        let local = moment.unix.saturating_add(i64::from(moment.offset));
        let (days, second) = (local.div_euclid(86_400), local.rem_euclid(86_400));
        // A year begins in March here, so that the day of a leap year is its last.
        let shifted = days + EPOCH;
        let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let shifted_month = (5 * of_year + 2) / 153;
        let month = (shifted_month + 2) % 12;
        let year = year + era * 400 + i64::from(month < 2);
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        Self {
            year,
            month: month as usize,
            day: of_year - (153 * shifted_month + 2) / 5 + 1,
            yday: if month < 2 { of_year - 306 } else { of_year + 59 + i64::from(is_leap) },
            weekday: (days + 4).rem_euclid(7),
            hour: second / 3600,
            minute: second / 60 % 60,
            second: second % 60,
        }
    }

    /// ISO 8601: the year of the week, and its number.
    fn iso_week(&self) -> (i64, i64) {
        let monday_based = (self.weekday + 6) % 7;
        let week = (self.yday - monday_based + 10) / 7;
        let weeks_of = |year: i64| {
            let last = |year: i64| (year + year / 4 - year / 100 + year / 400) % 7;
            if last(year) == 4 || last(year - 1) == 3 { 53 } else { 52 }
        };
        if week < 1 {
            (self.year - 1, weeks_of(self.year - 1))
        } else if week > weeks_of(self.year) {
            (self.year + 1, 1)
        } else {
            (self.year, week)
        }
    }

    const fn hour_of_twelve(&self) -> i64 {
        match self.hour % 12 {
            0 => 12,
            hour => hour,
        }
    }
}

/// Appends a moment in the format `format`; false if the result is empty. `%s` is the number of
/// seconds since 1970.
pub fn push_time(out: &mut Vec<u8>, format: &[u8], moment: Moment<'_>) -> bool {
    let start = out.len();
    push_parts(out, format, moment, &Civil::of(moment));
    out.len() > start
}

fn push_parts(out: &mut Vec<u8>, format: &[u8], moment: Moment<'_>, civil: &Civil) {
    let mut rest = format;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        // `E` and `O` request an alternative form, which this locale lacks.
        let skip = usize::from(
            matches!(after.first(), Some(b'E' | b'O'))
                && after.get(1).is_some_and(u8::is_ascii_alphabetic),
        );
        let Some(&letter) = after.get(skip) else {
            out.push(b'%');
            continue;
        };
        if push_letter(out, letter, moment, civil) {
            rest = &after[skip + 1..];
        } else {
            out.push(b'%');
        }
    }
}

/// Appends the value of `%letter`; false if it is unknown.
fn push_letter(out: &mut Vec<u8>, letter: u8, moment: Moment<'_>, civil: &Civil) -> bool {
    let month = MONTHS[civil.month];
    let day = DAYS[civil.weekday as usize];
    let format = match letter {
        b'c' => &b"%a %b %e %H:%M:%S %Y"[..],
        b'D' | b'x' => b"%m/%d/%y",
        b'F' => b"%Y-%m-%d",
        b'r' => b"%I:%M:%S %p",
        b'R' => b"%H:%M",
        b'T' | b'X' => b"%H:%M:%S",
        _ => b"",
    };
    if !format.is_empty() {
        push_parts(out, format, moment, civil);
        return true;
    }
    let (number, width) = match letter {
        b'd' => (civil.day, Width::Zeros(2)),
        b'e' => (civil.day, Width::Blanks),
        b'H' => (civil.hour, Width::Zeros(2)),
        b'k' => (civil.hour, Width::Blanks),
        b'I' => (civil.hour_of_twelve(), Width::Zeros(2)),
        b'l' => (civil.hour_of_twelve(), Width::Blanks),
        b'j' => (civil.yday + 1, Width::Zeros(3)),
        b'm' => (civil.month as i64 + 1, Width::Zeros(2)),
        b'M' => (civil.minute, Width::Zeros(2)),
        b'S' => (civil.second, Width::Zeros(2)),
        b'C' => (civil.year.div_euclid(100), Width::Zeros(2)),
        b'y' => (civil.year.rem_euclid(100), Width::Zeros(2)),
        b'Y' => (civil.year, Width::Zeros(1)),
        b'G' => (civil.iso_week().0, Width::Zeros(1)),
        b'g' => (civil.iso_week().0.rem_euclid(100), Width::Zeros(2)),
        b'V' => (civil.iso_week().1, Width::Zeros(2)),
        b'u' => ((civil.weekday + 6) % 7 + 1, Width::Zeros(1)),
        b'w' => (civil.weekday, Width::Zeros(1)),
        b'U' => ((civil.yday + 7 - civil.weekday) / 7, Width::Zeros(2)),
        b'W' => ((civil.yday + 7 - (civil.weekday + 6) % 7) / 7, Width::Zeros(2)),
        b's' => (moment.unix, Width::Zeros(1)),
        _ => return push_word(out, letter, moment, civil, (day, month)),
    };
    let _ = match width {
        Width::Zeros(width) => write!(out, "{number:0width$}"),
        Width::Blanks => write!(out, "{number:2}"),
    };
    true
}

enum Width {
    Zeros(usize),
    Blanks,
}

fn push_word(
    out: &mut Vec<u8>,
    letter: u8,
    moment: Moment<'_>,
    civil: &Civil,
    (day, month): (&str, &str),
) -> bool {
    let is_morning = civil.hour < 12;
    let text = match letter {
        b'a' => &day[..3],
        b'A' => day,
        b'b' | b'h' => &month[..3],
        b'B' => month,
        b'n' => "\n",
        b't' => "\t",
        b'p' if is_morning => "AM",
        b'p' => "PM",
        b'P' if is_morning => "am",
        b'P' => "pm",
        b'Z' => moment.zone,
        b'%' => "%",
        b'z' => {
            let (sign, east) =
                if moment.offset < 0 { ('-', -moment.offset) } else { ('+', moment.offset) };
            let _ = write!(out, "{sign}{:02}{:02}", east / 3600, east / 60 % 60);
            return true;
        }
        _ => return false,
    };
    out.extend_from_slice(text.as_bytes());
    true
}

#[cfg(test)]
mod tests {
    use super::{Moment, push_time};

    fn shown(format: &str, unix: i64, offset: i32, zone: &str) -> String {
        let mut out = Vec::new();
        push_time(&mut out, format.as_bytes(), Moment { unix, offset, zone });
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_moment_is_written_as_strftime_does() {
        let all = "%a %A %b %B %c %d %D %e %F %H %I %j %k %l %m %M %p %r %R %S %T %u %U %V %w %W \
                   %x %X %y %Y %z %Z %% %G %g %h %C %P %Q %E %Ey %Od %s";
        let wanted = "Sat Saturday Nov November Sat Nov 21 18:15:30 2026 21 11/21/26 21 2026-11-21 \
                      18 06 325 18  6 11 15 PM 06:15:30 PM 18:15 30 18:15:30 6 46 47 6 46 11/21/26 \
                      18:15:30 26 2026 +0000 GMT % 2026 26 Nov 20 pm %Q %E 26 21 1795284930";
        assert_eq!(shown(all, 1_795_284_930, 0, "GMT"), wanted);
        assert_eq!(shown("%d %H %z %Z", 1_795_284_930, -12_600, "X"), "21 14 -0330 X");
        assert_eq!(shown("%", 0, 0, ""), "%");
    }

    #[test]
    fn weeks_and_days_of_odd_years_are_right() {
        for (unix, wanted) in [
            (1_104_537_600, "2005-01-01 001 53 2004 00 00"),
            (1_230_768_000, "2009-01-01 001 01 2009 00 00"),
            (1_230_681_600, "2008-12-31 366 01 2009 52 52"),
            (1_293_926_400, "2011-01-02 002 52 2010 01 00"),
            (951_782_400, "2000-02-29 060 09 2000 09 09"),
            (0, "1970-01-01 001 01 1970 00 00"),
        ] {
            assert_eq!(shown("%F %j %V %G %U %W", unix, 0, "GMT"), wanted);
        }
    }
}
