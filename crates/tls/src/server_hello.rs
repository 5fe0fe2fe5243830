//! The session in our own ServerHello, read from the bytes sent: the library does not expose it.

use aws_lc_rs::digest::{SHA256, digest};

/// Types of records, and of the ServerHello message.
const CHANGE_CIPHER_SPEC: u8 = 20;
const HANDSHAKE: u8 = 22;
const SERVER_HELLO: u8 = 2;

/// The identifier of a session, and that of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerHello {
    random: [u8; 32],
    session: Vec<u8>,
}

impl ServerHello {
    /// The last one in the bytes sent (RFC 5246 §7.4.1.3, RFC 8446 §4.1.3); after a
    /// HelloRetryRequest that is the one that counts.
    pub(crate) fn of(mut flight: &[u8]) -> Option<Self> {
        let mut last = None;
        while let [kind, _, _, high, low, rest @ ..] = flight {
            let (record, behind) =
                rest.split_at_checked(usize::from(u16::from_be_bytes([*high, *low])))?;
            match *kind {
                HANDSHAKE => last = read(record).or(last),
                // Later records are encrypted.
                CHANGE_CIPHER_SPEC => break,
                _ => {}
            }
            flight = behind;
        }
        last
    }

    /// The value of `$ssl_session_id`: in TLS 1.2 the session's identifier on both sides. TLS 1.3
    /// has none, and OpenSSL invents one for each connection, as is done here.
    pub(crate) fn session_id(self, protocol: &str) -> Vec<u8> {
        match protocol {
            "TLSv1.3" => digest(&SHA256, &self.random).as_ref().to_vec(),
            _ => self.session,
        }
    }
}

/// Type and length of the message, version, random, and the session's identifier.
fn read(record: &[u8]) -> Option<ServerHello> {
    let (&[SERVER_HELLO, _, _, _, 3, 3], rest) = record.split_first_chunk::<6>()? else {
        return None;
    };
    let (random, rest) = rest.split_first_chunk::<32>()?;
    let (&len, rest) = rest.split_first()?;
    let session = rest.get(..usize::from(len))?.to_vec();
    Some(ServerHello { random: *random, session })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::ServerHello;

    fn record(kind: u8, message: &[u8]) -> Vec<u8> {
        [&[kind, 3, 3, 0, message.len() as u8], message].concat()
    }

    fn hello(random: u8, session: &[u8]) -> Vec<u8> {
        let fixed = [&[2, 0, 0, 80, 3, 3][..], &[random; 32], &[session.len() as u8]].concat();
        record(22, &[&fixed[..], session, &[0; 40]].concat())
    }

    #[test]
    fn the_last_hello_of_a_flight_names_the_session() {
        let flight = [hello(1, b"first"), hello(2, b"session"), record(20, &[1]), hello(3, b"no")];
        let flight = flight.concat();
        assert_eq!(ServerHello::of(&flight).unwrap().session_id("TLSv1.2"), b"session");
        let other = [hello(2, b""), record(23, b"sealed")].concat();
        assert_eq!(ServerHello::of(&other).unwrap().session_id("TLSv1.2"), b"");
        assert_eq!(ServerHello::of(&record(22, &[11, 0, 0, 1, 0, 0, 0])), None);
    }

    #[test]
    fn connections_of_tls13_have_names_of_their_own() {
        let name = |random| ServerHello::of(&hello(random, b"x")).unwrap().session_id("TLSv1.3");
        assert_eq!((name(1).len(), name(1) == name(1), name(1) == name(2)), (32, true, false));
    }

    proptest! {
        #[test]
        fn any_flight_is_read_to_some_end(
            random: Vec<u8>, session in proptest::collection::vec(any::<u8>(), 0..90),
        ) {
            let flight = [hello(1, &session), random].concat();
            if let Some(hello) = ServerHello::of(&flight) {
                prop_assert!(hello.session_id("").len() < 256);
            }
        }
    }
}
