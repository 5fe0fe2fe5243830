//! Known dates, tolerance, and format and parse as inverses.

use super::{
    CivilDate, DateClock, LAST_SECOND, error_date, http_date, iso_date, log_date, parse,
    parse_strictly, syslog_date,
};
use bolide_base::{Instant, Now};
use proptest::prelude::{any, proptest};

const NOV_1994: i64 = 784_111_777;

#[test]
fn the_three_formats_of_rfc_9110_mean_the_same_second() {
    assert_eq!(parse(b"Sun, 06 Nov 1994 08:49:37 GMT"), Some(NOV_1994 as u64));
    assert_eq!(parse(b"Sunday, 06-Nov-94 08:49:37 GMT"), Some(NOV_1994 as u64));
    assert_eq!(parse(b"Sun Nov  6 08:49:37 1994"), Some(NOV_1994 as u64));
    assert_eq!(parse(b"Sun Nov 16 08:49:37 1994"), Some(NOV_1994 as u64 + 864_000));
    assert_eq!(parse(b"Friday, 01-Jan-38 00:00:00 GMT"), parse(b"x, 01 Jan 2038 00:00:00"));
}

#[test]
fn texts_are_written_as_clients_and_log_readers_expect() {
    assert_eq!(&http_date(NOV_1994), b"Sun, 06 Nov 1994 08:49:37 GMT");
    assert_eq!(&http_date(-5), b"Thu, 01 Jan 1970 00:00:00 GMT");
    assert_eq!(&http_date(951_782_400), b"Tue, 29 Feb 2000 00:00:00 GMT");
    assert_eq!(&http_date(i64::MAX), b"Fri, 31 Dec 9999 23:59:59 GMT");
    assert_eq!(&log_date(NOV_1994, 3600), b"06/Nov/1994:09:49:37 +0100");
    assert_eq!(&log_date(NOV_1994, -12_600), b"06/Nov/1994:05:19:37 -0330");
    assert_eq!(&iso_date(NOV_1994, 0), b"1994-11-06T08:49:37+00:00");
    assert_eq!(&iso_date(NOV_1994, 20_700), b"1994-11-06T14:34:37+05:45");
    assert_eq!(&error_date(NOV_1994, 0), b"1994/11/06 08:49:37");
    assert_eq!(&syslog_date(NOV_1994, 0), b"Nov  6 08:49:37");
    assert_eq!(&syslog_date(NOV_1994 + 5 * 86400, 3600), b"Nov 11 09:49:37");
}

#[test]
fn what_is_no_date_is_refused() {
    let cases = [
        "",
        "0",
        "Sun,",
        "Sun, 06 Nov 1994",
        "Sun, 06 Nov 1994 08:49",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 31 Nov 1994 08:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Tue, 29 Feb 2001 00:00:00 GMT",
        "Mon, 29 Feb 2100 00:00:00 GMT",
        "Sun, 06 nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:49:37 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT",
        "Sun, 06 Nov 1994 08:49:60 GMT",
        "Sun, 06 Nov 1969 08:49:37 GMT",
        "Sun, 06/Nov/1994 08:49:37 GMT",
        "Sun, 06-Nov 94 08:49:37 GMT",
        "Sun Nov 006 08:49:37 1994",
        "Sun Nov  6 08:49:37 94",
    ];
    for text in cases {
        assert_eq!(parse(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn strictly_a_date_has_one_of_three_spellings_and_is_in_gmt() {
    let good = [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Mon, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
    ];
    for text in good {
        assert_eq!(parse_strictly(text.as_bytes()), Some(784_111_777), "{text}");
    }
    let bad = [
        "Sun, 06 Nov 1994 08:49:37 AEST",
        "Sun, 06 Nov 1994 08:49:37 gmt",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 GMT ",
        "Sun, 06 NOV 1994 08:49:37 GMT",
        "sun, 06 Nov 1994 08:49:37 GMT",
        "Foo, 06 Nov 1994 08:49:37 GMT",
        "Sun,  06 Nov 1994 08:49:37 GMT",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 06-Nov-94 08:49:37 GMT",
        "Sunday, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-nov-94 08:49:37 GMT",
        "Sun nov  6 08:49:37 1994",
        "Sun Nov 06 08:49:37 1994",
        "Sun Nov  6 08:49:37 1994 GMT",
        "",
    ];
    for text in bad {
        assert_eq!(parse_strictly(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn the_clock_formats_anew_only_when_the_second_or_zone_changes() {
    let at = |unix_millis| Now { mono: Instant::default(), unix_millis };
    let mut clock = DateClock::new(at(784_111_777_001), 0);
    clock.http = *b"a text that shows it was kept";
    clock.update(at(784_111_777_999), 0);
    assert_eq!(clock.http(), b"a text that shows it was kept");
    clock.update(at(784_111_778_000), 0);
    assert_eq!(clock.http(), b"Sun, 06 Nov 1994 08:49:38 GMT");
    clock.update(at(784_111_778_000), 7200);
    assert_eq!(clock.time_local(), b"06/Nov/1994:10:49:38 +0200");
    assert_eq!(clock.time_iso8601(), b"1994-11-06T10:49:38+02:00");
    assert_eq!(clock.error_log(), b"1994/11/06 10:49:38");
}

#[test]
fn every_day_up_to_the_year_2500_follows_the_one_before() {
    let mut previous = CivilDate::from_unix(0);
    assert_eq!((previous.year, previous.month, previous.day, previous.weekday), (1970, 1, 1, 4));
    for day in 1..193_600 {
        let civil = CivilDate::from_unix(day * 86_400);
        let follows = (civil.year, civil.month, civil.day)
            == (previous.year, previous.month, previous.day + 1)
            || civil.day == 1
                && previous.day >= 28
                && (civil.month == previous.month + 1 && civil.year == previous.year
                    || civil.month == 1 && previous.month == 12 && civil.year == previous.year + 1);
        assert!(follows && civil.weekday == (previous.weekday + 1) % 7, "{civil:?}");
        assert_eq!(civil.to_unix(), day * 86_400);
        previous = civil;
    }
}

proptest! {
    #[test]
    fn a_written_date_reads_back(seconds in 0..=LAST_SECOND) {
        assert_eq!(parse(&http_date(seconds)), Some(seconds as u64));
        assert_eq!(CivilDate::from_unix(seconds).to_unix(), seconds);
    }

    #[test]
    fn any_bytes_are_a_date_or_refused(
        text in "[A-Za-z]{0,6}[, ]{1,2}[0-9]{1,2}[ -][A-S][a-z]{2}[ -][0-9]{2,4} [0-9:]{8}.{0,4}",
        bytes in any::<Vec<u8>>(),
    ) {
        crate::fuzz::date(text.as_bytes());
        crate::fuzz::date(&bytes);
    }
}
