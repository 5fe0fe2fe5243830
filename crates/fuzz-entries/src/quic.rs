//! QUIC endpoints with arbitrary datagrams, and their invariants.

use std::net::{Ipv4Addr, SocketAddr};

use bolide_base::{Instant, Now};

use bolide_quic::{Endpoint, QuicArrival, QuicOutgoing, padding};

/// LIMIT: bytes of stateless responses per received byte: three times a client's (RFC 9000 §8.1).
const ANSWERS_PER_BYTE: usize = 3;

/// Removes the padding of an arbitrary payload.
///
/// # Panics
///
/// Bytes other than zeroes are lost, or all bytes are.
pub fn padding(data: &[u8]) {
    let mut payload = data.to_vec();
    let len = padding::cut(&mut payload);
    assert!(len <= data.len() && (len == 0) == data.is_empty(), "something always stays");
    let others = |bytes: &[u8]| bytes.iter().filter(|byte| **byte != 0).count();
    assert_eq!(others(&payload[..len]), others(data), "only zero bytes are cut");
}

/// Passes arbitrary datagrams to an endpoint, each after its length in two bytes.
///
/// # Panics
///
/// The responses exceed the amplification limit.
pub fn endpoint(endpoint: &mut Endpoint, mut data: &[u8]) {
    let remote = SocketAddr::from((Ipv4Addr::LOCALHOST, 4433));
    let from = QuicArrival { remote, local: None, ecn: 0 };
    let mut out = QuicOutgoing::default();
    let mut nanos = 1_000_000_000_u64;
    while let Some((len, rest)) = data.split_first_chunk::<2>() {
        let len = usize::from(u16::from_be_bytes(*len)).min(rest.len());
        let (datagram, rest) = rest.split_at(len);
        data = rest;
        nanos += 1_000_000;
        let now = Now { mono: Instant::from_nanos(nanos), unix_millis: nanos / 1_000_000 };
        let woken = endpoint.receive(now, from, datagram, &mut out);
        if let Some(id) = woken {
            while endpoint.poll_event(id).is_some() {}
            let _ = endpoint.transmit(id, now, 10, &mut out);
            while endpoint.poll_event(id).is_some() {}
        }
        let answer: usize = out.trains().iter().map(|train| train.bytes.len()).sum();
        let allowed = ANSWERS_PER_BYTE * len + 2 * 1452;
        assert!(answer <= allowed, "{answer} bytes of answer to {len}");
        out.clear();
    }
}
