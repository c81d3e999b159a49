(* at_exp32 of include/at_math.h, with the constants that stand there (Constants.v): for every
   binary32 x <= 0

       at_exp32(x) = e^x (1 + e) + h,   |e| <= 1.4375 2^-24,   |h| <= 2^-150, 0 for x >= -86,

   below one unit in the last place of e^x, between 0 and 1, and 1 at 0.  The argument is Exp.v's;
   here is what it asks of the constants.  Rounding errors: Gappa (certificates checked by Coq).
   Approximation error: Coq-Interval.  SPDX-License-Identifier: MIT *)
From Coq Require Import Reals ZArith List Lra Lia Psatz Classical.
From Flocq Require Import Core Relative Mult_error.
From Interval Require Import Tactic.
From Gappa Require Import Gappa_library Gappa_tactic.
Require Import Sums ExpScale Constants.
Require Exp exp32_red_gappa exp32_neg_gappa exp32_pos_gappa.
Import ListNotations.
Local Open Scope R_scope.

Notation rnd := (round radix2 (FLT_exp (-149) 24) rndNE).
Notation F := (generic_format radix2 (FLT_exp (-149) 24)).
Local Instance prec24 : Prec_gt_0 24 := eq_refl.
Notation id_F := (id_F (-149) 24).

(* ---- the program, and what the polynomial would be without rounding ---- *)
Notation L2E := (float2R L2E_32).
Notation NHI := (float2R NHI_32).
Notation NLO := (float2R NLO_32).
Notation SHIFT := (IZR (Fnum SHIFT_32)).
Definition rest := [float2R c5_32; float2R c4_32; float2R c3_32; float2R c2_32].
Definition k_of := Exp.k_of (-149) 24 L2E SHIFT.
Definition n_of := Exp.n_of (-149) 24 L2E SHIFT.
Definition r_of := Exp.r_of (-149) 24 L2E NHI NLO SHIFT.
Definition y_of := Exp.y_of (-149) 24 (float2R c6_32) rest.
Definition core := Exp.core (-149) 24 L2E NHI NLO SHIFT (float2R c6_32) rest (- Fexp BACK_32).
Definition exp32 x := core (if Rlt_dec x (float2R LEAST_32) then float2R LEAST_32 else x).
Definition P r := (((((float2R c6_32 * r + float2R c5_32) * r + float2R c4_32) * r + float2R c3_32)
  * r + float2R c2_32) * r + 1) * r + 1.

(* ---- approximation ---- *)
Lemma approx r : Rabs r <= 0.3467 -> Rabs (P r / exp r - 1) <= 3.7e-9.
Proof.
  intros H. unfold P. rewrite !f2R. cbn [bpow].
  interval with (i_bisect r, i_taylor r, i_degree 9, i_prec 60).
Qed.
Lemma exp_near d : Rabs d <= 1.5e-8 -> Rabs (exp d - 1) <= 1.51e-8.
Proof. intros H. interval with (i_bisect d, i_taylor d, i_prec 64). Qed.
Lemma ln2_split : Rabs (ln 2 + NHI + NLO) <= bpow radix2 (-50).
Proof. rewrite !f2R. cbn [bpow]. interval with (i_prec 90). Qed.

(* ---- reduction ---- *)
Lemma least_is : float2R LEAST_32 = -104. Proof. rewrite f2R. simpl. lra. Qed.
Lemma red_far x : F x -> float2R LEAST_32 <= x <= -5/16 ->
  -151 <= n_of x <= 0 /\ (exists z, n_of x = IZR z) /\ Rabs (r_of x) <= 0.3467 /\
  Rabs (r_of x - (x - n_of x * ln 2)) <= 1.5e-8.
Proof.
  rewrite least_is. intros Fx Hx. pose proof ln2_split as HL. apply Rabs_le_inv in HL.
  assert (Nz : L2E <> 0) by (rewrite f2R; simpl; lra).
  assert (G : exp32_red_gappa.s1 x (ln 2) -> False).
  { apply exp32_red_gappa.l1; try ring; change (Float1 1) with 1; field; exact Nz. }
  assert (E : exp32_red_gappa.s2 x (ln 2)).
  { rewrite !f2R in HL. split; unfold BND; intervals; [rewrite (id_F x Fx); simpl|]; lra. }
  apply NNPP. intros N. apply G. split; [exact E|].
  unfold exp32_red_gappa.s3, exp32_red_gappa.s4, exp32_red_gappa.s5, exp32_red_gappa.s6,
    exp32_red_gappa.s7, exp32_red_gappa.s8, exp32_red_gappa.s9.
  rewrite !(id_F x Fx). change (Float1 12583103) with SHIFT.
  change (rnd (rnd (x * L2E + SHIFT) - SHIFT)) with (n_of x).
  change (rnd (n_of x * NLO + rnd (n_of x * NHI + x))) with (r_of x).
  apply NNPP. intros M. apply not_or_and in M. destruct M as [M M4].
  apply not_or_and in M. destruct M as [M M3]. apply not_or_and in M. destruct M as [M1 M2].
  apply NNPP in M1, M2, M3, M4. apply N. clear N. revert M1 M3 M4. unfold BND. intervals.
  simpl. intros M1 M3 M4. split; [lra|split; [now apply FIX_whole|split; lra]].
Qed.
Lemma k_near x : F x -> -5/16 <= x <= 0 -> k_of x = SHIFT.
Proof.
  intros _ Hx. assert (H : 12583103 <= k_of x <= 12583103).
  { unfold k_of, Exp.k_of. rewrite f2R. simpl Fnum. gappa. }
  simpl Fnum. lra.
Qed.

(* ---- polynomial ---- *)
Lemma y_neg r ER : F r -> -0.3467 <= r <= 1.5e-8 -> 0 < ER -> Rabs (exp r / ER - 1) <= 1.51e-8 ->
  Rabs (y_of r - ER) <= 31 * bpow radix2 (- 24 - 5) /\
  exists e, Rabs e <= 23 * bpow radix2 (- 24 - 4) /\ y_of r = ER * (1 + e).
Proof.
  intros Fr Hr HE HER. pose proof (approx r ltac:(apply Rabs_le; lra)) as HA.
  assert (HX : 0.7 <= exp r <= 1.0001) by (split; interval with (i_prec 64)).
  let Y := eval cbv beta iota delta [y_of Exp.y_of Exp.q_of rest fold_left] in (y_of r) in
  certificate exp32_neg_gappa.l1 exp32_neg_gappa.s2 exp32_neg_gappa.s5 exp32_neg_gappa.s6
    exp32_neg_gappa.s7 (id_F r Fr) P y_of Y r ER HA HER.
Qed.
Lemma y_pos r ER : F r -> - (1.5e-8) <= r <= 0.3467 -> 0 < ER -> Rabs (exp r / ER - 1) <= 1.51e-8 ->
  Rabs (y_of r - ER) <= 15 * bpow radix2 (- 24 - 3) /\
  exists e, Rabs e <= 23 * bpow radix2 (- 24 - 4) /\ y_of r = ER * (1 + e).
Proof.
  intros Fr Hr HE HER. pose proof (approx r ltac:(apply Rabs_le; lra)) as HA.
  assert (HX : 0.9999 <= exp r <= 1.4145) by (split; interval with (i_prec 64)).
  let Y := eval cbv beta iota delta [y_of Exp.y_of Exp.q_of rest fold_left] in (y_of r) in
  certificate exp32_pos_gappa.l1 exp32_pos_gappa.s2 exp32_pos_gappa.s5 exp32_pos_gappa.s6
    exp32_pos_gappa.s7 (id_F r Fr) P y_of Y r ER HA HER.
Qed.
Lemma q1_pos r : -3/8 <= r <= 0 ->
  0 <= rnd (Exp.q_of (-149) 24 (float2R c6_32) rest r * r + 1).
Proof.
  intros H. unfold Exp.q_of, rest. cbn [fold_left]. rewrite !f2R.
  match goal with |- 0 <= ?q => assert (0 <= q <= 2) by gappa end. lra.
Qed.

(* ---- the ends of the range ---- *)
Lemma F_least : F (float2R LEAST_32).
Proof.
  apply generic_format_FLT. exists (Defs.Float radix2 (Fnum LEAST_32) (Fexp LEAST_32)); simpl; try lia.
  reflexivity.
Qed.
Lemma least_rng : float2R LEAST_32 <= -5/16 /\ float2R LEAST_32 <= -86.
Proof. rewrite least_is. lra. Qed.
Lemma least_ok : exp (float2R LEAST_32) * (1 + 1 / 10000000) < bpow radix2 (-149 - 1).
Proof. rewrite least_is. cbn [bpow]. interval with (i_prec 80). Qed.
Lemma normal_ok : 1.4145 * bpow radix2 (-149 + 24 - 1) < exp (-86).
Proof. cbn [bpow]. interval with (i_prec 64). Qed.

(* ---- the theorems of Exp.v ---- *)
Definition tiny := bpow radix2 (-149 - 1).
Definition shared := Exp.shared (-149) 24 ltac:(lia) ltac:(lia) L2E NHI NLO SHIFT (float2R LEAST_32)
  (float2R c6_32) rest (- Fexp BACK_32) (-151) (-86) (1.5e-8) (1.51e-8) ltac:(lra) exp_near red_far k_near
  y_neg y_pos q1_pos ltac:(simpl; lia) F_least least_rng least_ok normal_ok.
Lemma red_spec x : F x -> -104 <= x <= 0 -> exists z : Z, n_of x = IZR z /\ (-151 <= z <= 0)%Z /\
  Rabs (r_of x) <= 0.3467 /\ Rabs (r_of x - (x - IZR z * ln 2)) <= 1.5e-8 /\
  (z = 0%Z -> r_of x = x).
Proof. rewrite <- least_is. exact (proj1 shared x). Qed.
(* The contract that Formats.v asks of exp, for every argument. *)
Theorem exp32_error x : F x -> x <= 0 -> exists e h,
  Rabs e <= 23 * bpow radix2 (-28) /\ Rabs h <= tiny /\ exp32 x = exp x * (1 + e) + h.
Proof. exact (proj1 (proj2 shared) x). Qed.
(* Where nothing underflows the error is relative, and less than one unit in the last place. *)
Theorem exp32_relative x : F x -> -86 <= x <= 0 -> exists e,
  Rabs e <= 23 * bpow radix2 (-28) /\ exp32 x = exp x * (1 + e).
Proof. exact (proj1 (proj2 (proj2 shared)) x). Qed.
Theorem exp32_ulp x : F x -> -86 <= x <= 0 ->
  Rabs (exp32 x - exp x) <= 31 / 32 * ulp radix2 (FLT_exp (-149) 24) (exp x).
Proof. exact (proj1 (proj2 (proj2 (proj2 shared))) x). Qed.
Theorem exp32_F x : F (exp32 x). Proof. exact (proj1 (proj2 (proj2 (proj2 (proj2 shared)))) x). Qed.
Theorem exp32_0 : exp32 0 = 1. Proof. exact (proj1 (proj2 (proj2 (proj2 (proj2 (proj2 shared)))))). Qed.
Theorem exp32_01 x : F x -> x <= 0 -> 0 <= exp32 x <= 1.
Proof. exact (proj2 (proj2 (proj2 (proj2 (proj2 (proj2 shared))))) x). Qed.
