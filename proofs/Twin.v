(* The C of at_row.h and at_math.h written over Flocq's IEEE numbers, operation for operation, for
   extraction to OCaml: check-twin.sh runs it against the C and wants the same bits.
   Ieee.v proves about the same program; the bit tricks (power from the low bits of k) are here.
   SPDX-License-Identifier: MIT *)
From Coq Require Import ZArith List Lia Extraction ExtrOcamlBasic.
From Flocq Require Import Core BinarySingleNaN Bits.
From Flocq Require IEEE754.Binary.
From Gappa Require Import Gappa_library.
Require Import Constants Ieee.
Import ListNotations.
Local Open Scope Z_scope.

Section Twin.
Variables prec emax : Z.
Context (Hp : Prec_gt_0 prec) (He : Prec_lt_emax prec emax).
Notation bf := (binary_float prec emax).
Notation sub := (bsub prec emax Hp He).
Notation mul := (bmul prec emax Hp He).
Notation fma := (bfma prec emax Hp He).
Definition number (m e : Z) : bf := binary_normalize prec emax Hp He mode_NE m e false.
Definition zero : bf := B754_zero false.
Definition power (e : Z) : bf := number 1 e.
Definition less (x y : bf) := match Bcompare x y with Some Lt => true | _ => false end.
Definition same (x y : bf) := match Bcompare x y with Some Eq => true | _ => false end.

(* k is n + shift, shift = 1.5 2^(prec-1) + s: its low bits are n + s, so shifted to the exponent
   field they are the number 2^(n + s - bias).  NaN goes the same way: its low bits are 0. *)
Definition whole (k : bf) : Z := match k with
  | B754_finite s m e _ => let a := Zpos m * 2 ^ e in if s then - a else a
  | _ => 0
  end.

Section Exp.
Variables (l2e nhi nlo shift least back : Z * Z) (first : Z * Z) (rest : list (Z * Z)).
Notation num c := (number (fst c) (snd c)).
Definition horner (r : bf) : bf := fold_left (fun q c => fma q r (num c)) rest (num first).
Definition exp (x : bf) : bf :=
  let x := if less x (num least) then num least else x in
  let k := fma x (num l2e) (num shift) in
  let n := sub k (num shift) in
  let r := fma n (num nlo) (fma n (num nhi) x) in
  let y := fma (fma (horner r) r (number 1 0)) r (number 1 0) in
  match k with
  | B754_nan => B754_nan
  | _ => mul (mul y (power (whole k - whole (num shift) - snd back))) (power (snd back))
  end.
End Exp.
End Twin.

Definition p24 : Prec_gt_0 24 := eq_refl.
Definition p128 : Prec_lt_emax 24 128 := eq_refl.
Definition p53 : Prec_gt_0 53 := eq_refl.
Definition p1024 : Prec_lt_emax 53 1024 := eq_refl.
#[local] Existing Instances p24 p128 p53 p1024.
Definition pair (f : float2) := (Fnum f, Fexp f).
Definition exp32 := exp 24 128 p24 p128 (pair L2E_32) (pair NHI_32) (pair NLO_32) (pair SHIFT_32)
  (pair LEAST_32) (pair BACK_32) (pair c6_32) (map pair [c5_32; c4_32; c3_32; c2_32]).
Definition exp64 := exp 53 1024 p53 p1024 (pair L2E_64) (pair NHI_64) (pair NLO_64) (pair SHIFT_64)
  (pair LEAST_64) (pair BACK_64) (pair c13_64) (map pair [c12_64; c11_64; c10_64; c9_64; c8_64;
  c7_64; c6_64; c5_64; c4_64; c3_64; c2_64]).

Section Row.
Variables prec emax : Z.
Context (Hp : Prec_gt_0 prec) (He : Prec_lt_emax prec emax).
Notation bf := (binary_float prec emax).
Variable exp : bf -> bf.
Notation fma := (bfma prec emax Hp He).
Notation div := (bdiv prec emax Hp He).
Notation larger := (blarger prec emax).
Notation clean := (bclean prec emax Hp He).
Notation worth := (bworth prec emax Hp He exp).
Notation take := (btake prec emax Hp He).
Definition row := (bf * bf * bf)%type.
(* at_row_push: a tile of one key. *)
Definition push (x : row) (s v : bf) : row := let '(mx, lx, ux) := x in
  let m := clean (larger mx s) in let a := worth mx m in let p := bweight prec emax Hp He exp s m in
  (m, take a lx p, take a ux (fma p v (B754_zero false))).
(* at_row_add then at_row_take: a tile of two keys. *)
Definition take2 (x : row) (s v s' v' : bf) : row := let '(mx, lx, ux) := x in
  let m := clean (larger (larger mx s) s') in
  let t := btile prec emax Hp He exp m [(s, v); (s', v')] in
  let a := worth mx m in (m, take a lx (fst t), take a ux (snd t)).
(* at_row_merge: an empty side is chosen away. *)
Definition merge (x y : row) : row :=
  let '(mx, lx, ux) := x in let '(my, ly, uy) := y in
  if same prec emax ly (B754_zero false) then x
  else if same prec emax lx (B754_zero false) then y
  else brow_merge prec emax Hp He exp x y.
(* at_out with gain 1. *)
Definition finish (x : row) : bf := let '(m, l, u) := x in
  if same prec emax l (B754_zero false) then B754_zero false else clean (div u l).
End Row.
Definition push32 := push 24 128 p24 p128 exp32.
Definition take32 := take2 24 128 p24 p128 exp32.
Definition merge32 := merge 24 128 p24 p128 exp32.
Definition finish32 := finish 24 128 p24 p128.
Definition push64 := push 53 1024 p53 p1024 exp64.
Definition take64 := take2 53 1024 p53 p1024 exp64.
Definition merge64 := merge 53 1024 p53 p1024 exp64.
Definition finish64 := finish 53 1024 p53 p1024.
Definition of_bits32 (z : Z) : binary_float 24 128 := Binary.B2BSN 24 128 (b32_of_bits z).
Definition of_bits64 (z : Z) : binary_float 53 1024 := Binary.B2BSN 53 1024 (b64_of_bits z).
(* The bits of a number; -1 for NaN, whose bits are not compared. *)
Definition bits_of (mw ew : Z) (prec emax : Z) (x : binary_float prec emax) : Z :=
  match x with
  | B754_zero s => if s then 2 ^ (mw + ew) else 0
  | B754_infinity s => (if s then 2 ^ (mw + ew) else 0) + (2 ^ ew - 1) * 2 ^ mw
  | B754_nan => -1
  | B754_finite s m e _ => (if s then 2 ^ (mw + ew) else 0) +
      (if Zpos m <? 2 ^ mw then Zpos m else (e - (3 - emax - prec) + 1) * 2 ^ mw + (Zpos m - 2 ^ mw))
  end.
Definition bits32 := bits_of 23 8 24 128.
Definition bits64 := bits_of 52 11 53 1024.
(* A row that has seen nothing weighs nothing; the largest score has weight exactly 1. *)
Theorem nothing_weighs_nothing :
  bits32 (exp32 (B754_infinity true)) = 0 /\ bits64 (exp64 (B754_infinity true)) = 0.
Proof. vm_compute. auto. Qed.
Theorem largest_weighs_one : bits32 (exp32 (B754_zero false)) = 0x3f800000 /\
  bits64 (exp64 (B754_zero false)) = 0x3ff0000000000000.
Proof. vm_compute. auto. Qed.
Extraction "twin.ml" of_bits32 of_bits64 bits32 bits64 exp32 exp64 push32 take32 merge32 finish32
  push64 take64 merge64 finish64.
