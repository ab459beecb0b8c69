//! Places the marks of an axis.

/// Returns a round step for a time axis, in nanoseconds: the shortest that needs at most `most` marks.
pub fn time_step(span: u64, most: u64) -> u64 {
    const SECOND: u64 = 1_000_000_000;
    const LONG: [u64; 13] = [10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600, 43_200];
    let mut below_ten = std::iter::successors(Some(1_u64), |power| power.checked_mul(10))
        .take_while(|power| *power < 10 * SECOND)
        .flat_map(|power| [power, 2 * power, 5 * power]);
    let long = LONG.map(|seconds| seconds * SECOND);
    let fits = |step: &u64| span / step <= most;
    below_ten.find(fits).or_else(|| long.into_iter().find(fits)).unwrap_or_else(|| {
        let day = 86_400 * SECOND;
        let mut days = std::iter::successors(Some(1_u64), |power| power.checked_mul(10))
            .take(5)
            .flat_map(|power| [day * power, day.saturating_mul(2 * power), day.saturating_mul(5 * power)]);
        days.find(fits).unwrap_or(u64::MAX)
    })
}

/// Returns round marks from 0 to at least `top`. Their distance is 1, 2 or 5 times a power of ten; whole numbers if
/// `whole`.
pub fn marks(top: f64, most: u32, whole: bool) -> Vec<f64> {
    let top = if top > 0.0 { top } else { 1.0 };
    let rough = top / f64::from(most);
    let power = power_of_ten(rough);
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|n| n * power)
        .find(|step| *step >= rough * 0.999)
        .unwrap_or(rough);
    let step = if whole { step.max(1.0) } else { step };
    let count = (top / step - 1e-9).ceil().max(1.0) as u32;
    (0..=count).map(|i| f64::from(i) * step).collect()
}

/// Returns the largest power of ten that is not above the value. It uses a loop, because a logarithm would load the
/// math library at every start of the tool.
fn power_of_ten(value: f64) -> f64 {
    let value = value.clamp(f64::MIN_POSITIVE, f64::MAX);
    let mut exponent = 0;
    while 10_f64.powi(exponent + 1) <= value {
        exponent += 1;
    }
    while 10_f64.powi(exponent) > value {
        exponent -= 1;
    }
    10_f64.powi(exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_ten_are_not_above_their_value() {
        for (value, power) in [(0.07, 0.01), (0.1, 0.1), (1.0, 1.0), (9.99, 1.0), (10.0, 10.0), (1e9, 1e9)] {
            assert!((power_of_ten(value) / power - 1.0).abs() < 1e-9, "{value}: {}", power_of_ten(value));
        }
        assert!(power_of_ten(f64::INFINITY) >= 1e308);
        assert!(power_of_ten(0.0) <= f64::MIN_POSITIVE);
    }

    #[test]
    fn marks_are_round_and_reach_the_top() {
        assert_eq!(marks(35.0, 4, true), [0.0, 10.0, 20.0, 30.0, 40.0]);
        assert_eq!(marks(1.0, 4, true), [0.0, 1.0]);
        assert_eq!(marks(0.0, 4, true), [0.0, 1.0]);
        assert_eq!(marks(4.0, 4, true), [0.0, 1.0, 2.0, 3.0, 4.0]);
        for top in [0.3, 7.0, 11.0, 999.0, 1e9, 1.8e19] {
            let marks = marks(top, 4, false);
            assert!(marks.len() <= 6 && *marks.last().unwrap() >= top * 0.999_999, "{top}: {marks:?}");
        }
    }

    #[test]
    fn time_steps_are_round_and_few() {
        const SECOND: u64 = 1_000_000_000;
        assert_eq!(time_step(5 * SECOND, 8), SECOND);
        assert_eq!(time_step(3 * 3600 * SECOND, 8), 1800 * SECOND);
        for span in [0, 1, 7, 999, 123_456_789, 60 * SECOND, 86_400 * SECOND, 400 * 86_400 * SECOND, u64::MAX]
        {
            let step = time_step(span, 8);
            assert!(step > 0 && span / step <= 8, "{span}: {step}");
        }
    }
}
