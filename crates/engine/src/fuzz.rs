//! Arbitrary request heads against a site.
