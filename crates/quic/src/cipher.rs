//! A keyed block cipher of 64 bits, for connection ids: Speck64/128 (Beaulieu et al., "The Simon
//! and Speck Families of Lightweight Block Ciphers", 2013).
//!
//! The kernel decrypts connection ids with classic BPF, which has no tables, only 32-bit sums,
//! shifts and exclusive ors; this cipher needs no more. It hides nothing but the worker's number.

/// Rounds of the cipher.
pub(crate) const ROUNDS: usize = 27;

/// The keys of all rounds.
#[derive(Clone)]
pub(crate) struct Cipher(pub(crate) [u32; ROUNDS]);

impl Cipher {
    /// The cipher of a key. Its words are in the order of the paper, last word first.
    pub(crate) fn new(key: [u32; 4]) -> Self {
        let [a, b, c, mut own] = key;
        let mut others = [c, b, a];
        let mut rounds = [0; ROUNDS];
        for (at, round) in rounds.iter_mut().enumerate() {
            *round = own;
            let other = &mut others[at % 3];
            (*other, own) = mix((*other, own), at as u32);
        }
        Self(rounds)
    }

    /// Encrypts a block.
    pub(crate) fn seal(&self, block: [u8; 8]) -> [u8; 8] {
        joined(self.0.iter().fold(words(block), |words, key| mix(words, *key)))
    }

    /// Decrypts a block.
    pub(crate) fn open(&self, block: [u8; 8]) -> [u8; 8] {
        joined(self.0.iter().rev().fold(words(block), |(x, y), key| {
            let y = (x ^ y).rotate_right(3);
            ((x ^ key).wrapping_sub(y).rotate_left(8), y)
        }))
    }
}

/// One round.
const fn mix((x, y): (u32, u32), key: u32) -> (u32, u32) {
    let x = x.rotate_right(8).wrapping_add(y) ^ key;
    (x, y.rotate_left(3) ^ x)
}

const fn words([a, b, c, d, e, f, g, h]: [u8; 8]) -> (u32, u32) {
    (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]))
}

const fn joined((x, y): (u32, u32)) -> [u8; 8] {
    let ([a, b, c, d], [e, f, g, h]) = (x.to_be_bytes(), y.to_be_bytes());
    [a, b, c, d, e, f, g, h]
}

#[cfg(test)]
mod tests {
    use super::{Cipher, joined};

    #[test]
    fn it_is_the_cipher_of_the_paper() {
        let cipher = Cipher::new([0x1b1a_1918, 0x1312_1110, 0x0b0a_0908, 0x0302_0100]);
        let plain = joined((0x3b72_6574, 0x7475_432d));
        let sealed = joined((0x8c6f_a548, 0x454e_028b));
        assert_eq!((cipher.seal(plain), cipher.open(sealed)), (sealed, plain));
    }
}
