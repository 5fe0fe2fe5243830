//! Pages of arbitrary bytes and of likely words, cut anywhere, and joined from compressed parts.

use bolide_fuzz_entries::run;
use proptest::prelude::{any, proptest};

proptest! {
    #[test]
    fn cuts_do_not_matter(
        pick in any::<u8>(),
        words in proptest::collection::vec(
            "(<esi[:_](include|inline|remove|comment|x)|</esi:(inline|remove)>|<!--esi|-->| src=\
             |['\"]|/?>|<|-|[a-z ]{1,4}|<esi:inline name=a>|<esi:include src='/a' as-var=1/>)",
            0..24),
    ) {
        let mut data = words.concat().into_bytes();
        data.insert(0, pick);
        run("esi", &data);
    }

    #[test]
    fn any_bytes_are_read(bytes in any::<Vec<u8>>()) {
        run("esi", &bytes);
    }
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
    #[test]
    fn any_bytes_survive(
        pick in any::<u8>(),
        pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 0..6),
    ) {
        let mut data = pieces.join(&b'|');
        data.insert(0, pick);
        run("esi", &data);
    }
}
