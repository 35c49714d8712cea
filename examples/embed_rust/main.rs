//! A polynomial at a thousand points, through the C ABI of a header that poly made.

use std::ffi::{c_char, c_int, CStr};

// What horner.h declares. A status is a C enum, so an int here; bindgen would write the same.
extern "C" {
    fn horner(d: i64, n: i64, coefficients: *const f64, x: *const f64, y: *mut f64) -> c_int;
    fn horner_status_text(status: c_int) -> *const c_char;
}

/// The polynomial with these coefficients, highest power first, at each of `x`.
fn evaluate(coefficients: &[f64], x: &[f64]) -> Result<Vec<f64>, String> {
    let mut y = vec![0.0; x.len()];
    // The lengths come from the slices, and `y` is a new vector: nothing overlaps.
    let status = unsafe {
        let (d, n) = (coefficients.len() as i64, x.len() as i64);
        horner(d, n, coefficients.as_ptr(), x.as_ptr(), y.as_mut_ptr())
    };
    match status {
        0 => Ok(y),
        _ => Err(unsafe { CStr::from_ptr(horner_status_text(status)) }.to_string_lossy().into_owned()),
    }
}

fn main() -> Result<(), String> {
    let x: Vec<f64> = (0..1000).map(|i| f64::from(i) / 1000.0).collect();
    let y = evaluate(&[2.0, -3.0, 0.0, 1.0], &x)?; // 2x^3 - 3x^2 + 1
    let worst = x.iter().zip(&y).map(|(x, y)| (y - (2.0 * x * x * x - 3.0 * x * x + 1.0)).abs()).fold(0.0, f64::max);
    assert!(worst < 1e-12, "wrong by {worst}");
    println!("{} values, from {} down to {:.6}", y.len(), y[0], y[999]);
    Ok(())
}
