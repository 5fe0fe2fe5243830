//! Variables from addresses and from shares of clients: `geo`, `split_clients`.

use std::fmt::Write as _;
use std::time::Instant;

use bolide_testkit::server::Home;

use crate::{BOLIDE, http, report};

fn asked(blocks: &str, show: &str, rows: &[(&str, &str)]) {
    let listen = bolide_testkit::server::LISTEN;
    let server = http(&format!("{blocks} server {{ {listen} return 200 \"{show}\"; }}"));
    let mut failures = Vec::new();
    for (address, wanted) in rows {
        let got = server.connect().get(&format!("/?a={address}"), "").text();
        if got != *wanted {
            failures.push(format!("{address}: {got}, want {wanted}"));
        }
    }
    report(rows.len(), &failures);
}

#[test]
fn the_longest_network_around_an_address_counts() {
    asked(
        "geo $arg_a $net { default d; 10.0.0.0/8 ten; 10.1.0.0/16 one; 10.1.2.3 self;
           2001:db8::/32 six; 10.9.0.0/16 gone; delete 10.9.0.0/16; }
         geo $mine { 127.0.0.1 loop; }",
        "$net $mine",
        &[
            ("10.0.0.1", "ten loop"),
            ("10.1.0.1", "one loop"),
            ("10.1.2.3", "self loop"),
            ("10.9.0.1", "ten loop"),
            ("11.0.0.0", "d loop"),
            ("2001:db8::7", "six loop"),
            ("2001:db9::7", "d loop"),
            ("nobody", "d loop"),
        ],
    );
}

#[test]
fn ranges_may_lie_inside_one_another() {
    asked(
        "geo $arg_a $in { ranges; default out; 10.0.0.0-10.2.0.5 wide; 10.0.0.10-10.0.0.20 in; }",
        "$in",
        &[
            ("9.255.255.255", "out"),
            ("10.0.0.9", "wide"),
            ("10.0.0.10", "in"),
            ("10.0.0.21", "wide"),
            ("10.2.0.5", "wide"),
            ("10.2.0.6", "out"),
            ("::1", "out"),
        ],
    );
}

#[test]
fn clients_fall_into_the_shares_that_nginx_gives_them() {
    // As the real nginx does.
    asked(
        "split_clients \"$arg_a\" $part { 33.33% a; 33.33% b; 0.01% z; * c; }",
        "$part",
        &[
            ("/", "b"),
            ("/a", "c"),
            ("/ab", "c"),
            ("/abc", "a"),
            ("/abcd", "c"),
            ("/abcdef", "b"),
            ("/abcdefg", "b"),
            ("/x2", "a"),
        ],
    );
}

#[test]
fn wrong_arguments_are_refused_with_nginxs_messages() {
    let home = Home::new(BOLIDE);
    let rows = [
        ("geo a { }", "invalid variable name \"a\""),
        ("geo $a { 1.2.3 b; }", "invalid network \"1.2.3\""),
        ("geo $a { 1.2.3.4; }", "invalid number of the geo parameters"),
        ("geo $a { ranges; 1.2.3.4 b; }", "invalid range \"1.2.3.4\""),
        (
            "geo $a { ranges; 1.2.3.4-1.2.3.8 a; 1.2.3.6-1.2.3.10 b; }",
            "range \"1.2.3.6-1.2.3.10\" overlaps \"1.2.3.4-1.2.3.8\"",
        ),
        ("split_clients a b { }", "invalid variable name \"b\""),
        ("split_clients a $b { 50 x; }", "invalid percent value \"50\""),
        ("split_clients a $b { 60% x; 50% y; }", "percent total is greater than 100%"),
    ];
    let mut failures = Vec::new();
    for (n, (conf, wanted)) in rows.iter().enumerate() {
        let file = home.write(&format!("g{n}.conf"), &format!("events {{}} http {{ {conf} }}"));
        let done = home.run(&["-t", "-c", file.to_str().unwrap()]);
        if done.code != 1 || !done.stderr.contains(wanted) {
            failures.push(format!("{conf}: {}", done.stderr));
        }
    }
    report(rows.len(), &failures);
}

#[test]
fn two_hundred_thousand_networks_are_read_and_found() {
    let home = Home::new(BOLIDE);
    let mut nets = String::from("default none;\n");
    for n in 0..200_000_u32 {
        let [_, a, b, c] = (n << 4).to_be_bytes();
        writeln!(nets, "{}.{a}.{b}.{c}/28 v{};", 20 + (n >> 20), n % 250).unwrap();
    }
    home.write("nets.conf", &nets);
    let began = Instant::now();
    let conf = home.write(
        "large.conf",
        "events {} http { geo $arg_a $net { include nets.conf; } server { listen 1; } }",
    );
    let done = home.run(&["-t", "-c", conf.to_str().unwrap()]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    println!("200,000 networks in {:?}", began.elapsed());
}
