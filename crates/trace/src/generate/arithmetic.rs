//! Logarithm and exponential by addition, multiplication and division alone: those are the same
//! on every machine to the last bit, and the C library's functions are not.

const LN_2: f64 = std::f64::consts::LN_2;

/// The natural logarithm of a positive, normal number, to about 15 digits.
pub fn ln(number: f64) -> f64 {
    let bits = number.to_bits();
    let exponent = ((bits >> 52) & 0x7ff).cast_signed() - 1023;
    let mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    // ln m = 2 artanh y, whose series converges quickly for y up to a third.
    let y = (mantissa - 1.0) / (mantissa + 1.0);
    let square = y * y;
    let mut sum = 0.0;
    for at in (0..24).rev() {
        sum = sum * square + 1.0 / f64::from(2 * at + 1);
    }
    exponent as f64 * LN_2 + 2.0 * y * sum
}

/// e to the power of a number from -700 to 700, to about 15 digits.
pub fn exp(number: f64) -> f64 {
    let power = (number / LN_2 + if number < 0.0 { -0.5 } else { 0.5 }) as i64;
    let rest = number - power as f64 * LN_2;
    let mut sum = 1.0;
    for at in (1..20).rev() {
        sum = 1.0 + sum * rest / f64::from(at);
    }
    sum * f64::from_bits(((power + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_agree_with_the_library() {
        for number in [1e-12_f64, 0.1, 0.5, 1.0, 1.999, 2.0, 3.0, 1e6, 1e18] {
            let difference = ln(number) - number.ln();
            assert!(
                difference.abs() < 1e-13 * (1.0 + number.ln().abs()),
                "ln {number}"
            );
        }
        for number in [-60.0_f64, -1.0, -0.3, 0.0, 0.3, 1.0, 30.0] {
            let ratio = exp(number) / number.exp();
            assert!((ratio - 1.0).abs() < 1e-13, "exp {number}: {ratio}");
        }
    }
}
