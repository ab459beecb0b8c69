//! Geometric growth with a single rounding, for cooldowns, backoffs and the rate after a recovery (R57, R62,
//! R74).
//!
//! `first · factor^n` is computed from the exponent. If each step were rounded, each would lose a fraction: one
//! nanosecond times 1.25 would stay one nanosecond forever.

use super::policy::MILLION;

/// A fixed-point number: 64 integer bits and 192 fractional bits, the most significant word last.
type Fixed = [u64; 4];

/// `first · factor^n`, rounded down once, and at most `most`. The factor is in millionths and at least 1.
///
/// Takes at most 62 divisions and 64 multiplications of four words for any input, because the lock is held
/// meanwhile.
pub(super) fn grown(first: u64, factor: u32, n: u32, most: u64) -> u64 {
    if first == 0 || n == 0 || factor <= MILLION || first >= most {
        return first.min(most);
    }
    // If the result is an integer, compute it with integers. With the factor in lowest terms top/bottom, the
    // result is an integer if bottom^n divides `first`. Otherwise the result differs from every integer by more
    // than the error of the power.
    let shared = gcd(factor, MILLION);
    let (top, bottom) = (u64::from(factor / shared), u64::from(MILLION / shared));
    let mut rest = first;
    let divisions = (0..n).take_while(|_| {
        let divides = rest.is_multiple_of(bottom);
        rest = if divides { rest / bottom } else { rest };
        // Division by 1 never ends the loop.
        divides && bottom > 1
    });
    if divisions.count() == n as usize || bottom == 1 {
        return whole(rest, top, n, most);
    }
    let Some(power) = power(ratio(top, bottom), n) else { return most };
    times(power, first).min(most)
}

/// `first · factor^n`, at most `most`. `first` is not 0, and the factor is above 1.
fn whole(first: u64, factor: u64, n: u32, most: u64) -> u64 {
    let mut value = first;
    for _ in 0..n {
        match value.checked_mul(factor) {
            Some(next) if next < most => value = next,
            _ => return most,
        }
    }
    value.min(most)
}

/// `top / bottom`, rounded down to 2^-192.
fn ratio(top: u64, bottom: u64) -> Fixed {
    let mut rest = 0_u128;
    let mut digit = |word: u64| {
        let all = rest << 64 | u128::from(word);
        rest = all % u128::from(bottom);
        (all / u128::from(bottom)) as u64
    };
    let [a, b, c, d] = [digit(top), digit(0), digit(0), digit(0)];
    [d, c, b, a]
}

/// `base^n` by squaring, each product rounded down. `None` above 64 integer bits. `base` is at least 1.
///
/// Each product has a relative error of 2^-192, and squaring doubles it. The total is below 2^-160 even for the
/// largest n that does not overflow (2^26, for a factor of 1.000001).
fn power(base: Fixed, n: u32) -> Option<Fixed> {
    let (mut result, mut square) = ([0, 0, 0, 1], Some(base));
    for bit in 0..u32::BITS - n.leading_zeros() {
        if n >> bit & 1 == 1 {
            result = product(result, square?)?;
        }
        square = square.and_then(|square| product(square, square));
    }
    Some(result)
}

/// The product, rounded down. `None` above 64 integer bits.
fn product(a: Fixed, b: Fixed) -> Option<Fixed> {
    let mut words = [0_u64; 8];
    for (i, a) in a.into_iter().enumerate() {
        let mut carry = 0_u128;
        for (j, b) in b.into_iter().enumerate() {
            carry += u128::from(a) * u128::from(b) + u128::from(words[i + j]);
            words[i + j] = carry as u64;
            carry >>= 64;
        }
        words[i + 4] = carry as u64;
    }
    let [_, _, _, d, c, b, a, beyond] = words;
    (beyond == 0).then_some([d, c, b, a])
}

/// The product with an integer, rounded down to an integer. Saturates.
fn times(a: Fixed, b: u64) -> u64 {
    let mut carry = 0_u128;
    for word in a {
        carry = u128::from(word) * u128::from(b) + (carry >> 64);
    }
    u64::try_from(carry).unwrap_or(u64::MAX)
}

fn gcd(mut a: u32, mut b: u32) -> u32 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The n with `grown(first, factor, n, …) == value`, if there is one.
pub(super) fn exponent(first: u64, factor: u32, value: u64) -> Option<u32> {
    let at = |n: u32| grown(first, factor, n, u64::MAX);
    let (mut low, mut high) = (0_u32, u32::MAX);
    while low < high {
        let middle = low + (high - low) / 2;
        if at(middle) < value {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    (at(low) == value).then_some(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reference for `grown`: integers of any length, by long multiplication.
    fn long(first: u64, factor: u32, n: u32, most: u64) -> u64 {
        let mut words = vec![first as u32, (first >> 32) as u32];
        for _ in 0..n {
            let mut carry = 0_u64;
            for word in &mut words {
                carry += u64::from(*word) * u64::from(factor);
                *word = carry as u32;
                carry >>= 32;
            }
            words.push(carry as u32);
        }
        for _ in 0..n {
            let mut rest = 0_u64;
            for word in words.iter_mut().rev() {
                rest = rest << 32 | u64::from(*word);
                *word = (rest / u64::from(MILLION)) as u32;
                rest %= u64::from(MILLION);
            }
        }
        let large = words[2..].iter().any(|word| *word > 0);
        let value = u64::from(words[0]) | u64::from(words[1]) << 32;
        if large { most } else { value.min(most) }
    }

    proptest! {
        #[test]
        fn r57_r74_growth_is_exact_to_one_rounding(
            first in prop_oneof![0u64..9, any::<u64>().prop_map(|n| n >> 20), (0u32..62).prop_map(|n| 1 << n)],
            factor in prop_oneof![
                Just(1_000_000u32), Just(1_000_001), Just(1_100_000), Just(1_250_000), Just(1_500_000), Just(2_000_000),
                1_000_000u32..1_100_000, 1_000_000u32..=1_000_000_000,
            ],
            n in prop_oneof![0u32..70, 0u32..700],
            most in prop_oneof![0u64..99, any::<u64>().prop_map(|n| n >> 2), Just((1 << 62) - 1)],
        ) {
            prop_assert_eq!(grown(first, factor, n, most), long(first, factor, n, most));
        }

        #[test]
        fn r62_exponent_is_the_inverse_of_grown(factor in 1_001_000u32..3_000_000, n in 0u32..800) {
            let first = 5_000_000_000;
            let value = grown(first, factor, n, u64::MAX);
            if value < u64::MAX {
                prop_assert_eq!(exponent(first, factor, value), Some(n));
                prop_assert_eq!(exponent(first, factor, value + 1).filter(|_| n > 0), None);
            }
        }
    }

    #[test]
    fn r74_one_nanosecond_grows_and_every_exponent_is_accepted() {
        let steps: Vec<u64> = (0..8).map(|n| grown(1, 1_250_000, n, 99)).collect();
        assert_eq!(steps, [1, 1, 1, 1, 2, 3, 3, 4]);
        assert_eq!(grown(1, 1_000_001, u32::MAX, 1 << 62), 1 << 62);
        assert_eq!(grown(1, 1_000_000, u32::MAX, 1 << 62), 1);
        assert_eq!(grown(1, 1_000_000_000, u32::MAX, 1 << 62), 1 << 62);
        // e^10 = 22026.46, and (1 + 10^-6)^(10^7) is a little less.
        assert_eq!(grown(1, 1_000_001, 10_000_000, 1 << 62), 22_026);
    }
}
