//! Random numbers whose seed is printed, and can be given: `RL_SEED`.

/// Steele, Lea and Flood's SplitMix64.
pub struct Random(u64);

impl Random {
    /// Always the same numbers for the same seed.
    #[allow(dead_code, reason = "for the tests of faults")]
    pub fn from(seed: u64) -> Self {
        Self(seed)
    }

    pub fn seeded() -> Self {
        let given = std::env::var("RL_SEED").ok().map(|seed| seed.parse().expect("RL_SEED is a number"));
        let seed = given.unwrap_or_else(|| {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
            now.as_nanos() as u64
        });
        println!("RL_SEED={seed}");
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Less than `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A place in something of that length.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// At most `max`, and often where things break: at 0, 1, the maximum, near a power of two.
    pub fn biased(&mut self, max: u64) -> u64 {
        let power = 1_u64 << self.below(54);
        let number = match self.below(6) {
            0 => self.below(2),
            1 => max,
            2 => power,
            3 => power - 1,
            4 => power + 1,
            _ => self.next() >> self.below(64),
        };
        number.min(max)
    }
}
