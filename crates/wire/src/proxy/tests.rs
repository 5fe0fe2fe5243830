//! Headers of both versions, read whole and in pieces.

use proptest::prelude::*;

use super::{Broken, ProxyHeader, ProxyRead, fuzz, read};

fn said(input: &str) -> Option<(String, String)> {
    match read(input.as_bytes()) {
        Ok(ProxyRead::Header(Some(header), used)) => {
            assert_eq!(used, input.find("\r\n").unwrap() + 2);
            let ProxyHeader { source, source_port, target, target_port, .. } = *header;
            Some((format!("{source} {source_port}"), format!("{target} {target_port}")))
        }
        Ok(ProxyRead::Header(None, _)) => Some(("no client".to_owned(), String::new())),
        _ => None,
    }
}

#[test]
fn a_line_says_who_asks() {
    for (line, source, target) in [
        ("PROXY TCP4 1.2.3.4 5.6.7.8 80 90\r\nGET", "1.2.3.4 80", "5.6.7.8 90"),
        ("PROXY TCP6 ::1 ::2 0 080\r\n", "::1 0", "::2 80"),
        ("PROXY TCP4 999.2.3.4 abc 1 2\r\n", "999.2.3.4 1", "abc 2"),
        ("PROXY TCP4  5.6.7.8 1 2\r\n", " 1", "5.6.7.8 2"),
        ("PROXY UNKNOWN\r\n", "no client", ""),
        ("PROXY UNKNOWN a b\nc\r\n", "no client", ""),
        ("PROXY UNKNOWNx\r\n", "no client", ""),
    ] {
        assert_eq!(said(line), Some((source.to_owned(), target.to_owned())), "{line}");
    }
}

#[test]
fn what_is_no_header_is_refused_in_nginxs_words() {
    for line in [
        "PROXY TCP4 1.2.3.4 5.6.7.8 80\r\n",
        "PROXY TCP4 1.2.3.4 5.6.7.8 80 90\nGET",
        "PROXY TCP4 1.2.3.4 5.6.7.8 80 90\rx\n",
        "PROXY TCP4 1.2.3.4 5.6.7.8 80 90 \r\n",
        "PROXY TCP4 1.2.3.4 5.6.7.8 80 +90\r\n",
        "PROXY TCP4 1.2.3.4 5.6.7.8 80 65536\r\n",
        "PROXY TCP4 1.2.3.4 5.6.7.8  90\r\n",
        "PROXY TCP4 x 5.6.7.8 80 90\r\n",
        "PROXY TCP5 1.2.3.4 5.6.7.8 80 90\r\n",
        "PROXY TCP4\r\n",
        "PROXY \r\n",
        "PROXY\r\n",
        "proxy TCP4 1.2.3.4 5.6.7.8 80 90\r\n",
        "GET / HTTP/1.1\r\n",
    ] {
        assert_eq!(read(line.as_bytes()), Err(Broken::Header), "{line}");
    }
    let message = Broken::Header.message(b"GET / HTTP/1.1\r\nHost: a");
    let wanted = "broken header: \"GET / HTTP/1.1\" while reading PROXY protocol";
    assert_eq!(message.as_deref(), Some(wanted));
    assert_eq!(read(&b"PROXY UNKNOWN ".repeat(400)), Err(Broken::Header));
}

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

fn v2(version_command: u8, family: u8, body: &[u8]) -> Vec<u8> {
    let len = u16::try_from(body.len()).unwrap().to_be_bytes();
    [SIGNATURE, &[version_command, family], &len, body].concat()
}

#[test]
fn version_2_says_it_in_bytes() {
    let v4 = [1, 2, 3, 4, 5, 6, 7, 8, 0, 80, 0, 90, 1, 0, 2, b'h', b'2'];
    let Ok(ProxyRead::Header(Some(header), 33)) = read(&v2(0x21, 0x11, &v4)) else { panic!() };
    assert_eq!((&*header.source, header.source_port), ("1.2.3.4", 80));
    assert_eq!((&*header.target, header.target_port), ("5.6.7.8", 90));
    assert_eq!(&*header.fields, b"\x01\0\x02h2");
    for (version_command, family, body) in [
        (0x20, 0x11, &v4[..12]),
        (0x22, 0x11, &v4[..12]),
        (0x21, 0x12, &v4[..12]),
        (0x21, 0x00, b"xyz"),
        (0x21, 0x31, &[0; 216]),
        (0x20, 0x11, b""),
    ] {
        let input = v2(version_command, family, body);
        assert_eq!(read(&input), Ok(ProxyRead::Header(None, input.len())));
    }
    assert_eq!(read(&v2(0x31, 0x11, &v4)), Err(Broken::Version(3)));
    assert_eq!(read(&v2(0x21, 0x11, &v4[..8])), Err(Broken::Short));
    assert_eq!(read(&v2(0x21, 0x21, &v4[..12])), Err(Broken::Short));
    assert_eq!(read(&v2(0x21, 0x11, &[0; 4081])), Err(Broken::TooLarge));
    assert_eq!(read(&[&SIGNATURE[..11], b"x!\x11\0\0"].concat()), Err(Broken::Header));
}

proptest! {
    /// A header is read as written, whatever follows, and no prefix of it is a header.
    #[test]
    fn a_header_is_read_as_it_was_written(
        ip: [u8; 16], port: u16, fields in prop::collection::vec(any::<u8>(), 0..60),
        behind in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let body = [&ip[..], &ip, &port.to_be_bytes(), &[0, 1], &fields].concat();
        let mut input = v2(0x21, 0x21, &body);
        let len = input.len();
        input.extend_from_slice(&behind);
        let Ok(ProxyRead::Header(Some(header), used)) = read(&input) else { panic!("a header") };
        prop_assert_eq!(used, len);
        prop_assert_eq!(header.source.parse(), Ok(std::net::Ipv6Addr::from(ip)));
        prop_assert_eq!((header.source_port, header.target_port), (port, 1));
        prop_assert_eq!(&*header.fields, &fields[..]);
        fuzz::header(&input);
    }

    /// A line is a header exactly from its last byte on.
    #[test]
    fn lines_agree_with_their_beginnings(
        line in "(PROXY )?(TCP[46] |UNKNOWN|[A-Z]{0,4}) ?[0-9a-g.: \r\n]{0,40}(\r\n)?.{0,5}",
    ) {
        fuzz::header(line.as_bytes());
    }
}
