//! Configurations of arbitrary bytes and of likely words break neither the lexer nor the parser.

use bolide_fuzz_entries::run;
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};

/// Words of configurations, some correct, most in the wrong place.
fn word() -> impl Strategy<Value = String> {
    let words = [
        "events",
        "http",
        "server",
        "location",
        "listen",
        "80",
        "443 ssl",
        "/",
        "~ a(b)",
        "= /x",
        "root",
        "alias",
        "/srv",
        "index",
        "gzip",
        "on",
        "off",
        "add_header",
        "a b",
        "try_files",
        "$uri",
        "=404",
        "@n",
        "return",
        "301",
        "error_page",
        "404",
        "types",
        "text/html html",
        "server_name",
        "a.*",
        "*.b",
        "~^c",
        "access_log",
        "log_format",
        "{",
        "}",
        ";",
        "{",
        "}",
        ";",
        ";",
        "include",
        "main.conf",
        "*",
        "expires",
        "1h",
        "upstream",
        "php_pool",
        "php_pass",
        "lsapi_pass",
        "fastcgi_pass",
        "unix:/s",
        "10.0.0.1:9",
        "backup",
        "ip_hash",
        "keepalive 4",
        "fastcgi_buffers 4 8k",
        "fastcgi_param A",
        "fastcgi_split_path_info ^(a)(b)",
        "\"",
        "'",
        "\\",
        "$x",
        "#",
    ];
    prop_oneof![8 => (0..words.len()).prop_map(move |i| words[i].to_owned()),
                1 => Just("\n".to_owned()), 1 => any::<char>().prop_map(String::from)]
}

proptest! {
    #[test]
    fn no_bytes_break_the_reader(data in vec(any::<u8>(), 0..200)) {
        run("conf", &data);
    }

    #[test]
    fn no_words_break_the_reader(words in vec(word(), 0..60)) {
        run("conf", words.join(" ").as_bytes());
        let wrapped = format!("events {{}} http {{ server {{ {} }} }}", words.join(" "));
        run("conf", wrapped.as_bytes());
    }

    #[test]
    fn no_bytes_make_the_lexer_stand_still(data in vec(any::<u8>(), 0..300)) {
        run("conf", &data);
    }

    #[test]
    fn no_punctuation_makes_the_lexer_stand_still(data in "[ab\"'\\\\{}; \n$#()]{0,60}") {
        run("conf", data.as_bytes());
    }
}
