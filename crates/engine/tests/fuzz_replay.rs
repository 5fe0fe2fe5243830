//! Arbitrary request heads never panic and are answered exactly once.

use engine::fuzz;
use proptest::prelude::{ProptestConfig, any, proptest};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn arbitrary_bytes_are_answered_once(data in any::<Vec<u8>>()) {
        fuzz::exchange(&data);
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
        fuzz::exchange(&data);
    }
}
