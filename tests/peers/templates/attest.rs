// include/attest.h and at_plugin.h for a kernel in Rust: the structs in their order, the rows of a
// plain fp32 problem, and what a shared object exports. SPDX-License-Identifier: MIT
use std::ffi::c_void;
use std::slice::{from_raw_parts, from_raw_parts_mut};

pub const OK: i32 = 0;
pub const UNSUPPORTED: i32 = 15; // AT_ERR_UNSUPPORTED
pub const ABI: i32 = 1; // AT_ABI
const F32: i32 = 2; // AT_F32

#[repr(C)]
pub struct View { data: *mut f32, dtype: i32, dim: [i64; 4], stride: [i64; 4] }
#[repr(C)]
pub struct Score {
    scale: f64,
    softcap: f64,
    views: [View; 7], // bias, mask, alibi, sink, qscale, kscale, vscale
    left: i64,
    right: i64,
    lists: [*const i64; 5], // offset, q_len, kv_len, q_start, kv_start
    sequences: i64,
}
#[repr(C)]
pub struct Dropout { p: f64, seed: u64, offset: u64, keep: View }
#[repr(C)]
pub struct Pages { table: *const i32, indptr: *const i32, width: i64 }
#[repr(C)]
pub struct Plan { compute: i32 } // and more, which a kernel may ignore
#[repr(C)]
pub struct Attention { q: View, k: View, v: View, score: Score, dropout: Dropout, pages: Pages, plan: Plan }
#[repr(C)]
pub struct Answer { out: View, lse: View }
#[repr(C)]
pub struct Arith { pub name: *const u8, pub zero: [u64; 21] }
#[repr(C)]
pub struct Engine {
    pub name: *const u8,
    pub arith: extern "C" fn(*const Attention) -> Arith,
    pub attend: [*const c_void; 2],
    pub forward: unsafe extern "C" fn(*const Attention, *const Answer) -> i32,
    pub workspace: *const c_void,
}
unsafe impl Sync for Engine {}

/// A query row, and key and value of each key that length, window and causality leave to it.
pub struct Line<'a> {
    pub q: &'a [f32],
    pub keys: Vec<(&'a [f32], &'a [f32])>,
    pub out: &'a mut [f32],
    pub lse: &'a mut f32,
    pub scale: f32,
}

unsafe fn place(x: &View, b: i64, h: i64, s: i64) -> *mut f32 {
    x.data.offset((b * x.stride[0] + h * x.stride[1] + s * x.stride[2]) as isize)
}

unsafe fn at<'a>(x: &View, b: i64, h: i64, s: i64) -> &'a [f32] { from_raw_parts(place(x, b, h, s), x.dim[3] as usize) }

unsafe fn line<'a>(a: &Attention, to: &Answer, b: i64, h: i64, i: i64) -> Line<'a> {
    let list = |n: usize, absent: i64| if a.score.lists[n].is_null() { absent } else { *a.score.lists[n].offset(b as isize) };
    let (s, g, p) = (&a.score, h / (a.q.dim[1] / a.k.dim[1]), i + list(0, 0));
    let mut hi = if i < list(1, i64::MAX) { list(2, a.k.dim[2]).min(a.k.dim[2]) } else { 0 };
    if s.right >= 0 && s.right < hi - p { hi = p + s.right + 1; }
    let lo = if s.left >= 0 && s.left < p { p - s.left } else { 0 };
    Line {
        q: at(&a.q, b, h, i),
        keys: (lo..hi).map(|j| (at(&a.k, b, g, j), at(&a.v, b, g, j))).collect(),
        out: from_raw_parts_mut(place(&to.out, b, h, i), to.out.dim[3] as usize),
        lse: &mut *place(&to.lse, b, h, i),
        scale: s.scale as f32,
    }
}

/// The rows of a problem that has nothing else, every tensor dense and fp32.
pub fn lines<'a>(a: &'a Attention, to: &'a Answer) -> Option<impl Iterator<Item = Line<'a>>> {
    let (s, [batch, heads, rows, _]) = (&a.score, a.q.dim);
    let more = s.views.iter().chain([&a.dropout.keep]).any(|x| !x.data.is_null()) || s.softcap > 0.0 || a.dropout.p > 0.0
        || s.lists[3..].iter().any(|x| !x.is_null()) || !a.pages.table.is_null();
    if more || a.plan.compute != F32 || [&a.q, &a.k, &a.v].iter().any(|x| x.dtype != F32) { return None; }
    Some((0..batch * heads * rows).map(move |t| unsafe { line(a, to, t / (heads * rows), t / rows % heads, t % rows) }))
}

#[macro_export]
macro_rules! plugin {
    ($name:literal, $arith:literal, $forward:ident) => {
        extern "C" fn stated(_: *const Attention) -> attest::Arith { attest::Arith { name: $arith.as_ptr(), zero: [0; 21] } }
        unsafe extern "C" fn entered(a: *const Attention, to: *const Answer) -> i32 { $forward(&*a, &*to) }
        static MINE: attest::Engine = attest::Engine {
            name: $name.as_ptr(), arith: stated, attend: [std::ptr::null(); 2], forward: entered, workspace: std::ptr::null(),
        };
        #[no_mangle]
        pub extern "C" fn attest_abi() -> i32 { attest::ABI }
        #[no_mangle]
        pub extern "C" fn attest_engine() -> *const attest::Engine { &MINE }
    };
}
