//! What a decision costs, without a server around it.
#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use rl_core::codec::{decode, encode};
use rl_core::{Bucket, Held, Limit, Rate, Tokens, UnixMicros};

const NOW: UnixMicros = UnixMicros::saturating(1_750_000_000_000_000);
const A_SECOND_LATER: UnixMicros = UnixMicros::saturating(1_750_000_001_000_000);

fn limit(capacity: u64, rate: &str) -> Limit {
    Limit::new(Tokens::new(capacity).unwrap(), Rate::parse(rate.as_bytes()).unwrap())
}

/// Half a bucket of a hundred a minute: neither the rate nor the level is round.
fn half_full() -> Held {
    let limit = limit(100, "100/60");
    Held { bucket: Bucket { level: limit.full() / 2, last_change: NOW }, limit }
}

fn takes(criterion: &mut Criterion) {
    let warm = half_full();
    let empty = Held { bucket: Bucket { level: 0, last_change: A_SECOND_LATER }, ..warm };
    let other = limit(1_000, "1000000/d");
    let cases = [("allowed", warm, warm.limit), ("denied", empty, warm.limit), ("changed limit", warm, other)];
    let mut group = criterion.benchmark_group("take");
    for (name, held, asked) in cases {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                black_box(&asked).take(Some(black_box(&held)), black_box(A_SECOND_LATER), black_box(Tokens::ONE))
            });
        });
    }
    group.finish();
}

fn rates(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("Rate::parse");
    for text in ["5", "100/60", "1.6666666666666667"] {
        group.bench_function(text, |bencher| bencher.iter(|| Rate::parse(black_box(text.as_bytes()))));
    }
    group.finish();
}

fn limits(criterion: &mut Criterion) {
    let (capacity, rate) = (half_full().limit.capacity(), half_full().limit.rate());
    criterion.bench_function("Limit::new", |bencher| {
        bencher.iter(|| Limit::new(black_box(capacity), black_box(rate)));
    });
}

fn bytes(criterion: &mut Criterion) {
    let held = half_full();
    let encoded = encode(&held);
    criterion.bench_function("encode", |bencher| bencher.iter(|| encode(black_box(&held))));
    criterion.bench_function("decode", |bencher| bencher.iter(|| decode::<Held>(black_box(encoded.as_bytes()))));
}

fn expiries(criterion: &mut Criterion) {
    let held = half_full();
    criterion.bench_function("Bucket::expiry", |bencher| {
        bencher.iter(|| black_box(held.bucket).expiry(black_box(&held.limit), black_box(None)));
    });
}

criterion_group!(benches, takes, rates, limits, bytes, expiries);
criterion_main!(benches);
