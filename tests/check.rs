//! `bolide check`: the report on each line of an nginx configuration.

use bolide_testkit::server::Home;

use crate::BOLIDE;

const MIXED: &str = "events {}
http {
    types_hash_max_size 64;
    server {
        listen 127.0.0.1:1;
        gzip on;
        perl_modules perl;
        auth_http 127.0.0.1:2;
        gzpi on;
    }
}
";

#[test]
fn differences_are_printed_with_their_lines_and_open_access_is_marked() {
    let home = Home::new(BOLIDE);
    home.write("nginx.conf", MIXED);
    let conf = home.dir().join("nginx.conf");
    let done = home.run(&["check", conf.to_str().unwrap()]);
    let file = conf.display();
    let wanted = format!(
        "approximated  {file}:3  types_hash_max_size  (no effect: the table sizes \
         itself.)\n\
         refused       {file}:7  perl_modules\n\
         \x20               \"perl_modules\" directive is not implemented yet\n\
         refused     ! {file}:8  auth_http\n\
         \x20               \"auth_http\" directive is not implemented yet\n\
         refused       {file}:9  gzpi\n\
         \x20               unknown directive \"gzpi\"\n\
         \x20               did you mean \"gzip\"?\n\
         {file}: 9 directives: 5 supported, 1 approximated, 3 refused\n\
         No server starts with it; 1 refused directives restrict access (marked with !): \
         without them the server would be more open than nginx.\n"
    );
    assert_eq!((done.code, done.text()), (1, wanted));
}

#[test]
fn supported_directives_are_printed_on_request_and_succeed() {
    let home = Home::new(BOLIDE);
    home.write("nginx.conf", "events {} http { include part.conf; }");
    home.write("part.conf", "server {\n listen 127.0.0.1:1;\n deny all;\n}");
    let short = home.run(&["check"]).succeeded().text();
    let conf = home.dir().join("nginx.conf");
    let sum = format!("{}: 5 directives: 5 supported, 0 approximated, 0 refused", conf.display());
    assert!(short.starts_with(&sum), "{short}");
    let long = home.run(&["check", "--all"]).succeeded().text();
    let part = home.dir().join("part.conf");
    assert!(long.contains(&format!("supported     {}:3  deny\n", part.display())), "{long}");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let home = Home::new(BOLIDE);
    let done = home.run(&["check", "nowhere.conf"]);
    assert_eq!(done.code, 1);
    let text = done.text();
    assert!(text.contains("nowhere.conf\" failed (2: No such file or directory)"), "{text}");
}

#[test]
fn a_command_whose_result_is_lost_fails() {
    let home = Home::new(BOLIDE);
    home.write("nginx.conf", "events {}");
    home.write("apache2.conf", "Listen 127.0.0.1:1\n");
    let run = |args: &str, to: &str| {
        let command = format!("cd '{}' && '{BOLIDE}' {args} {to}", home.dir().display());
        bolide_testkit::run("sh", ["-c", &command])
    };
    for args in [
        "check nginx.conf",
        "import apache apache2.conf",
        "cache --help",
        "serve --print-config .",
        "-T -c nginx.conf -p .",
    ] {
        let done = run(args, ">/dev/full");
        let why = "write() to standard output failed (28: No space left on device)";
        assert!(done.code == 1 && done.stderr.contains(why), "{args}: {done}");
        // The reader of the pipe is gone before the command writes.
        let closed = run(args, "| exec true");
        assert!(!closed.stderr.contains("failed"), "{args}: {closed}");
    }
    for args in ["-v", "-V", "-h"] {
        assert_eq!(run(args, "2>/dev/full").code, 1, "{args}");
        assert_eq!(run(args, ">/dev/full").code, 0, "{args}");
    }
}

#[test]
fn a_configuration_without_an_end_is_refused() {
    let home = Home::new(BOLIDE);
    for args in [&["check", "/dev/zero"][..], &["import", "apache", "/dev/zero"]] {
        let done = home.run(args);
        let text = format!("{}{}", done.text(), done.stderr);
        let is_said = text.contains("/dev/zero") && text.contains("has 64 MiB at most");
        assert!(done.code == 1 && is_said, "{args:?}: {text}");
    }
}
