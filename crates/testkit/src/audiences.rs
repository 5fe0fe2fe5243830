//! The audience oracle: checks that no client gets a response which another client's request had
//! put into the cache. A test application marks every response with what it depends on. Sites,
//! visitors and their requests are random, from a grammar of real configurations. A response is
//! right if the same server without a cache would send it.
//!
//! It uses none of the product's crates and sends no requests. Its caller sends each request to two
//! servers, one of which caches nothing, and passes both responses.

mod app;
mod oracle;
mod site;
mod visitors;

pub use app::{AudienceApp, AudienceAppRequest, AudienceAppResponse};
pub use oracle::{Oracle, VisitSeen};
pub use site::AudienceSite;
pub use visitors::{VisitorAct, VisitorAsk};

/// A seeded random number generator.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// The generator with this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A generator for the part of a site with this name.
    #[must_use]
    pub fn about(seed: u64, name: &str) -> Self {
        let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Self(name.bytes().fold(seed ^ 0xcbf2_9ce4_8422_2325, mix))
    }

    /// A number below `bound`, which must not be 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    /// True in one of `n` cases.
    pub const fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of several values.
    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len() as u64) as usize]
    }
}

/// A site and the events on it.
#[derive(Clone, Debug)]
pub struct Play {
    /// The site.
    pub site: AudienceSite,
    /// The events, in order.
    pub acts: Vec<VisitorAct>,
}

impl Play {
    /// The site and events of `seed`.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let mut dice = Dice::new(seed.wrapping_mul(0x9e37_79b9) ^ 0x0a0d_1e0c);
        let site = AudienceSite::any(&mut dice);
        let acts = visitors::acts(&site, &mut dice);
        Self { site, acts }
    }
}
