//! The fields that applications send to the cache alone, which no client gets.

/// Fields that applications send to the cache alone.
pub(super) const CONTROLS: &[&[u8]] = &[
    b"X-LiteSpeed-Cache-Control",
    b"X-LiteSpeed-Tag",
    b"X-LiteSpeed-Purge",
    b"X-LiteSpeed-Purge2",
    b"X-LiteSpeed-Vary",
    b"LSC-Cookie",
    b"Bolide-Cache-Control",
    b"Surrogate-Control",
    b"Surrogate-Key",
    b"xkey",
    b"Edge-Cache-Tag",
    b"X-Cache-Tags",
    b"X-Magento-Tags",
];

/// Whether applications send this field to the cache alone.
pub(crate) fn is_for_cache_alone(name: &[u8]) -> bool {
    CONTROLS.iter().any(|known| name.eq_ignore_ascii_case(known))
}
