//! Arbitrary request heads never panic and are answered exactly once.

use bolide_fuzz_entries::run;
use proptest::prelude::{ProptestConfig, any, proptest};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn arbitrary_bytes_are_answered_once(data in any::<Vec<u8>>()) {
        run("engine", &data);
    }

    #[test]
    fn likely_requests_are_answered_once(
        circumstances in any::<u8>(),
        target in concat!(
            "/(list|alias|re|loop|hidden|gone|text|move|a\\.html|secret|[a-z%/.?&=]{0,8}){0,3}",
            "(\\?[a-z=&]{0,6})?",
        ),
        host in "(a\\.test|x\\.b\\.test|c\\.d|y\\.re\\.test|other\\.test|[a-z.:\\[\\]]{0,8})",
        fields in concat!(
            "(\n(Accept-Encoding: (gzip|br, zstd|\\*)|Range: bytes=[0-9,-]{0,8}",
            "|If-None-Match: (\\*|\"x\")|If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT",
            "|Cookie: a=b|X: y)){0,4}",
        ),
    ) {
        let mut data = vec![circumstances];
        data.extend_from_slice(format!("{target}\n{host}{fields}").as_bytes());
        run("engine", &data);
    }

    #[test]
    fn requests_to_origins_are_answered_once(
        circumstances in any::<u8>(),
        target in "/(app/|app/small/|app/stream/|pool/a\\.php|pool/)[a-z]{0,3}(\\?a=b)?",
        fields in concat!(
            "(\n(Accept-Encoding: (gzip|br, zstd)|Range: bytes=[0-9,-]{0,8}|Via: x",
            "|If-None-Match: \"x\"|Cookie: a=b|X: y{0,900})){0,6}",
        ),
        says in concat!(
            "\u{0}((h|4|3|e)(Content-Type: text/html",
            "|X-Accel-Redirect: (/a\\.html|@app|/app/|\\.\\.)",
            "|Content-Length: [0-9]{1,3}|ETag: \"x\"|Location: /x|X-Accel-Buffering: no",
            "|Link: <a>|X-Accel-Charset: x|Expires: 0){0,1}",
            "(\\|(Content-Type: text/html|X-Accel-Limit-Rate: 9|Vary: x",
            "|Cache-Control: no-cache)){0,2}",
            "\n|(b|L)[a-z]{0,30}\n|w\n|t[a-z]{0,3}\n|l\n){0,12}(\\.|f|ff|c)?",
        ),
    ) {
        let mut data = vec![circumstances];
        data.extend_from_slice(format!("{target}\na.test{fields}{says}").as_bytes());
        run("engine", &data);
    }
}
