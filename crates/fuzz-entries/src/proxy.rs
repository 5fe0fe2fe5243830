//! PROXY protocol headers of arbitrary bytes, and every prefix of them.

use bolide_wire::proxy::{ProxyRead, SIZE_MAX, read};

/// Parses every prefix of `data`. The results must be consistent.
pub fn header(data: &[u8]) {
    let whole = read(data);
    if let Ok(ProxyRead::Header(_, used)) = &whole {
        assert!(*used <= data.len() && *used <= SIZE_MAX);
    }
    for len in 0..data.len().min(SIZE_MAX + 8) {
        match read(&data[..len]) {
            Ok(ProxyRead::More) => assert!(len < SIZE_MAX, "what is too long is refused"),
            decided => assert_eq!(decided, whole, "more bytes change nothing"),
        }
    }
}
