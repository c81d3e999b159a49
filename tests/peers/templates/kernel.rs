// A kernel as a shared object in Rust, to start from. SPDX-License-Identifier: MIT
//     rustc -O -C panic=abort --crate-type cdylib -o my.so kernel.rs && attest check ./my.so CASE
#[macro_use]
mod attest;
use attest::{lines, Answer, Attention, OK, UNSUPPORTED};

fn forward(a: &Attention, to: &Answer) -> i32 {
    let rows = match lines(a, to) {
        Some(rows) => rows,
        None => return UNSUPPORTED, // refuse what you do not compute: the case stays undecided
    };
    for x in rows {
        let (mut m, mut l) = (f32::NEG_INFINITY, 0f32);
        x.out.fill(0.0);
        for (k, v) in x.keys {
            let s = x.q.iter().zip(k).map(|(q, k)| q * k).sum::<f32>() * x.scale;
            let most = m.max(s);
            let (old, p) = ((m - most).exp(), (s - most).exp());
            x.out.iter_mut().zip(v).for_each(|(u, v)| *u = old * *u + p * v);
            (m, l) = (most, old * l + p);
        }
        x.out.iter_mut().for_each(|u| *u = if l == 0.0 { 0.0 } else { *u / l });
        *x.lse = m + l.ln();
    }
    OK
}

plugin!("mine\0", "fp32\0", forward); // what it is held to: attest list arith
