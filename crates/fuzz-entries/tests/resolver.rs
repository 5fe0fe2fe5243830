//! Any order of events, and any responses, give each lookup exactly one result.

use bolide_fuzz_entries::run;
use proptest::prelude::{any, proptest};

proptest! {
    #[test]
    fn each_question_gets_one_verdict(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        run("resolver", &bytes);
    }
}
