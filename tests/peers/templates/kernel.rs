// A kernel as a shared object in Rust, to start from: plain fp32 attention, every key visible or causal.
//     rustc -O -C panic=abort --crate-type cdylib -o my.so kernel.rs && attest check ./my.so CASE --arith fp32
// The structs are those of include/attest.h, in its order. SPDX-License-Identifier: MIT
use std::ffi::{c_char, c_void};
use std::slice::{from_raw_parts, from_raw_parts_mut};

#[repr(C)]
pub struct View { data: *mut f32, dtype: i32, dim: [i64; 4], stride: [i64; 4] }
#[repr(C)]
pub struct Score { scale: f64, softcap: f64, views: [View; 7], left: i64, right: i64, lists: [*const i64; 5], sequences: i64 }
#[repr(C)]
pub struct Dropout { p: f64, seed: u64, offset: u64, keep: View }
#[repr(C)]
pub struct Attention { q: View, k: View, v: View, score: Score, dropout: Dropout, table: *const i32 }
#[repr(C)]
pub struct Answer { out: View, lse: View }
type Forward = extern "C" fn(*const Attention, *const Answer) -> i32;
#[repr(C)]
pub struct Engine { name: *const c_char, arith: *const c_void, attend: [*const c_void; 2], forward: Option<Forward>, workspace: *const c_void }
unsafe impl Sync for Engine {}

const F32: i32 = 2; // AT_F32
const UNSUPPORTED: i32 = 15; // AT_ERR_UNSUPPORTED

unsafe fn at(x: &View, b: i64, h: i64, s: i64) -> &mut [f32] {
    let place = b * x.stride[0] + h * x.stride[1] + s * x.stride[2];
    from_raw_parts_mut(x.data.offset(place as isize), x.dim[3] as usize)
}

unsafe fn row(a: &Attention, b: i64, h: i64, i: i64, to: &Answer) {
    let (group, q, u) = (a.q.dim[1] / a.k.dim[1], at(&a.q, b, h, i), at(&to.out, b, h, i));
    let (mut m, mut l) = (f32::NEG_INFINITY, 0f32);
    let offset = if a.score.lists[0].is_null() { 0 } else { from_raw_parts(a.score.lists[0], b as usize + 1)[b as usize] };
    u.fill(0.0);
    for j in 0..a.k.dim[2] {
        if a.score.right >= 0 && j > i + offset + a.score.right { break; }
        let s = q.iter().zip(at(&a.k, b, h / group, j)).map(|(x, y)| x * *y).sum::<f32>() * a.score.scale as f32;
        let to = m.max(s);
        let (old, p) = (if l > 0.0 { (m - to).exp() } else { 0.0 }, (s - to).exp());
        for (x, y) in u.iter_mut().zip(at(&a.v, b, h / group, j)) { *x = old * *x + p * *y; }
        (m, l) = (to, old * l + p);
    }
    for x in u { *x = if l > 0.0 { *x / l } else { 0.0 }; }
    at(&to.lse, b, h, i)[0] = m + l.ln();
}

extern "C" fn forward(a: *const Attention, to: *const Answer) -> i32 {
    let (a, to) = unsafe { (&*a, &*to) };
    let other = a.score.views.iter().any(|x| !x.data.is_null()) || a.score.lists[1..].iter().any(|x| !x.is_null());
    let narrow = [&a.q, &a.k, &a.v, &to.lse].iter().any(|x| x.dtype != F32);
    if other || narrow || a.score.softcap > 0.0 || a.score.left >= 0 || a.dropout.p > 0.0
        || !a.dropout.keep.data.is_null() || !a.table.is_null() { return UNSUPPORTED; }
    for b in 0..a.q.dim[0] { for h in 0..a.q.dim[1] { for i in 0..a.q.dim[2] { unsafe { row(a, b, h, i, to) } } } }
    0
}

static MINE: Engine = Engine { name: b"mine\0".as_ptr() as *const c_char, arith: std::ptr::null(), attend: [std::ptr::null(); 2],
    forward: Some(forward), workspace: std::ptr::null() };

#[no_mangle]
pub extern "C" fn attest_abi() -> i32 { 1 }
#[no_mangle]
pub extern "C" fn attest_engine() -> *const Engine { &MINE }
