(* at_exp32 of include/at_math.h, with the constants that stand there (Constants.v): for every
   binary32 x <= 0

       at_exp32(x) = e^x (1 + e) + h,   |e| <= 1.4375 2^-24,   |h| <= 2^-150, 0 for x >= -86,

   below one unit in the last place of e^x, between 0 and 1, and 1 at 0.
   Rounding errors: Gappa (certificates checked by Coq).  Approximation error: Coq-Interval.
   SPDX-License-Identifier: MIT *)
From Coq Require Import Reals ZArith Lra Lia Psatz Classical.
From Flocq Require Import Core Relative Mult_error.
From Interval Require Import Tactic.
From Gappa Require Import Gappa_library Gappa_tactic.
Require Import Sums ExpScale Constants.
Require exp32_red_gappa exp32_neg_gappa exp32_pos_gappa.
Local Open Scope R_scope.

Notation rnd := (round radix2 (FLT_exp (-149) 24) rndNE).
Notation F := (generic_format radix2 (FLT_exp (-149) 24)).
Local Instance prec24 : Prec_gt_0 24 := eq_refl.
Notation id_F := (id_F (-149) 24).
Notation F_rnd := (F_rnd (-149) 24 eq_refl).

(* ---- the program: every rnd is one operation, fma where a product and a sum share one ---- *)
Notation L2E := (float2R L2E_32).
Notation NHI := (float2R NHI_32).
Notation NLO := (float2R NLO_32).
Definition k_of x := rnd (x * L2E + IZR (Fnum SHIFT_32)).
Definition n_of x := rnd (k_of x - IZR (Fnum SHIFT_32)).
Definition r_of x := rnd (n_of x * NLO + rnd (n_of x * NHI + x)).
Definition y_of r :=
  let q5 := rnd (float2R c6_32 * r + float2R c5_32) in let q4 := rnd (q5 * r + float2R c4_32) in
  let q3 := rnd (q4 * r + float2R c3_32) in let q2 := rnd (q3 * r + float2R c2_32) in
  let q1 := rnd (q2 * r + 1) in rnd (q1 * r + 1).
Definition core x :=
  rnd (rnd (y_of (r_of x) * bpow radix2 (Ztrunc (n_of x) - Fexp BACK_32)) * bpow radix2 (Fexp BACK_32)).
Definition exp32 x := core (if Rlt_dec x (float2R LEAST_32) then float2R LEAST_32 else x).
(* What the polynomial would be without rounding. *)
Definition P r := (((((float2R c6_32 * r + float2R c5_32) * r + float2R c4_32) * r + float2R c3_32) * r
  + float2R c2_32) * r + 1) * r + 1.

(* ---- approximation ---- *)
Lemma approx r : Rabs r <= 0.3467 -> Rabs (P r / exp r - 1) <= 3.7e-9.
Proof.
  intros H. unfold P. rewrite !f2R. cbn [bpow].
  interval with (i_bisect r, i_taylor r, i_degree 9, i_prec 60).
Qed.
Lemma exp_near d : Rabs d <= 1.5e-8 -> Rabs (exp d - 1) <= 1.51e-8.
Proof. intros H. interval with (i_bisect d, i_taylor d, i_prec 64). Qed.
Lemma exp_rng d : -0.34671 <= d <= 0.34671 -> 0.7 <= exp d <= 1.4145.
Proof. intros H. split; interval with (i_prec 64). Qed.
Lemma ln2_split : Rabs (ln 2 + NHI + NLO) <= bpow radix2 (-50).
Proof. rewrite !f2R. cbn [bpow]. interval with (i_prec 90). Qed.

(* ---- reduction ---- *)
Lemma red_far x : F x -> -104 <= x <= -5/16 ->
  -151 <= n_of x <= 0 /\ (exists z, n_of x = IZR z) /\ Rabs (r_of x) <= 0.3467 /\
  Rabs (r_of x - (x - n_of x * ln 2)) <= 1.5e-8.
Proof.
  intros Fx Hx. pose proof ln2_split as HL. apply Rabs_le_inv in HL.
  assert (Nz : L2E <> 0) by (rewrite f2R; simpl; lra).
  assert (G : exp32_red_gappa.s1 x (ln 2) -> False).
  { apply exp32_red_gappa.l1; try ring; change (Float1 1) with 1; field; exact Nz. }
  assert (E : exp32_red_gappa.s2 x (ln 2)).
  { rewrite !f2R in HL. split; unfold BND; intervals; [rewrite (id_F x Fx); simpl|]; lra. }
  apply NNPP. intros N. apply G. split; [exact E|].
  unfold exp32_red_gappa.s3, exp32_red_gappa.s4, exp32_red_gappa.s5, exp32_red_gappa.s6,
    exp32_red_gappa.s7, exp32_red_gappa.s8, exp32_red_gappa.s9.
  rewrite !(id_F x Fx). change (Float1 12583103) with (IZR (Fnum SHIFT_32)).
  fold (k_of x). fold (n_of x). fold (r_of x).
  apply NNPP. intros M. apply not_or_and in M. destruct M as [M M4].
  apply not_or_and in M. destruct M as [M M3]. apply not_or_and in M. destruct M as [M1 M2].
  apply NNPP in M1, M2, M3, M4. apply N. clear N. revert M1 M3 M4. unfold BND. intervals.
  simpl. intros M1 M3 M4. split; [lra|split; [now apply FIX_whole|split; lra]].
Qed.
Lemma k_near x : F x -> -5/16 <= x <= 0 -> 12583103 <= k_of x <= 12583103.
Proof. intros _ Hx. unfold k_of. rewrite f2R. simpl Fnum. gappa. Qed.
Lemma F_0 : F 0. Proof. apply generic_format_0. Qed.
Lemma red_near x : F x -> -5/16 <= x <= 0 -> n_of x = 0 /\ r_of x = x.
Proof.
  intros Fx Hx. pose proof (k_near x Fx Hx) as [h1 h2].
  assert (E : n_of x = 0).
  { unfold n_of. replace (k_of x - IZR (Fnum SHIFT_32)) with 0 by (simpl; lra). apply (id_F 0 F_0). }
  split; auto. unfold r_of. rewrite E, !Rmult_0_l, !Rplus_0_l. now rewrite !(id_F x Fx).
Qed.
(* n is whole, r is small, and e^x = 2^n e^(x - n ln 2) with r near its exponent. *)
Lemma red_spec x : F x -> -104 <= x <= 0 -> exists z : Z, n_of x = IZR z /\ (-151 <= z <= 0)%Z /\
  Rabs (r_of x) <= 0.3467 /\ Rabs (r_of x - (x - IZR z * ln 2)) <= 1.5e-8 /\
  (z = 0%Z -> r_of x = x).
Proof.
  intros Fx Hx. destruct (Rle_dec x (-5/16)) as [C|C].
  - destruct (red_far x Fx ltac:(lra)) as (h1 & (z & Ez) & h2 & h3). exists z.
    rewrite Ez in *. split; auto. split; [split; apply le_IZR; lra|]. repeat split; auto.
    intros ->. unfold r_of. rewrite Ez, !Rmult_0_l, !Rplus_0_l. now rewrite !(id_F x Fx).
  - destruct (red_near x Fx ltac:(lra)) as (h1 & h2). exists 0%Z. rewrite h1, h2.
    split; auto. split; [lia|]. split; [apply Rabs_le; lra|split; auto].
    replace (x - (x - 0 * ln 2)) with 0 by ring. rewrite Rabs_R0. lra.
Qed.

(* ---- polynomial ---- *)
Lemma y_neg r ER : F r -> -0.3467 <= r <= 1.6e-8 -> 0 < ER -> Rabs (exp r / ER - 1) <= 1.51e-8 ->
  Rabs (y_of r - ER) <= 31 * bpow radix2 (-29) /\
  exists e, Rabs e <= 23 * bpow radix2 (-28) /\ y_of r = ER * (1 + e).
Proof.
  intros Fr Hr HE HER. pose proof (approx r ltac:(apply Rabs_le; lra)) as HA.
  assert (HX : 0.7 <= exp r <= 1.0001) by (split; interval with (i_prec 64)).
  apply Rabs_le_inv in HA. apply Rabs_le_inv in HER.
  assert (E : exp32_neg_gappa.s2 r (exp r) ER).
  { split; [split; [split|]|]; rewrite ?(id_F r Fr).
    - unfold BND. intervals. simpl. lra.
    - apply REL_intro; [lra|]. change (Float1 1) with 1. fold (P r). intervals.
      set (z := P r / exp r) in *. simpl. lra.
    - unfold BND. intervals. simpl. lra.
    - apply REL_intro; [lra|]. intervals. simpl. lra. }
  apply NNPP. intros N. apply (exp32_neg_gappa.l1 r (exp r) ER). split; [exact E|].
  unfold exp32_neg_gappa.s5, exp32_neg_gappa.s6, exp32_neg_gappa.s7. rewrite !(id_F r Fr).
  change (Float1 1) with 1. fold (y_of r).
  apply NNPP. intros M. apply not_or_and in M. destruct M as [M1 M2]. apply NNPP in M1, M2.
  apply N. split.
  - revert M1. unfold BND. intervals. simpl. lra.
  - destruct M2 as (e & He & Ee). exists e. split; [|exact Ee].
    revert He. intervals. simpl. intros He. apply Rabs_le. lra.
Qed.
Lemma y_pos r ER : F r -> -1.6e-8 <= r <= 0.3467 -> 0 < ER -> Rabs (exp r / ER - 1) <= 1.51e-8 ->
  Rabs (y_of r - ER) <= 15 * bpow radix2 (-27) /\
  exists e, Rabs e <= 23 * bpow radix2 (-28) /\ y_of r = ER * (1 + e).
Proof.
  intros Fr Hr HE HER. pose proof (approx r ltac:(apply Rabs_le; lra)) as HA.
  assert (HX : 0.9999 <= exp r <= 1.4145) by (split; interval with (i_prec 64)).
  apply Rabs_le_inv in HA. apply Rabs_le_inv in HER.
  assert (E : exp32_pos_gappa.s2 r (exp r) ER).
  { split; [split; [split|]|]; rewrite ?(id_F r Fr).
    - unfold BND. intervals. simpl. lra.
    - apply REL_intro; [lra|]. change (Float1 1) with 1. fold (P r). intervals.
      set (z := P r / exp r) in *. simpl. lra.
    - unfold BND. intervals. simpl. lra.
    - apply REL_intro; [lra|]. intervals. simpl. lra. }
  apply NNPP. intros N. apply (exp32_pos_gappa.l1 r (exp r) ER). split; [exact E|].
  unfold exp32_pos_gappa.s5, exp32_pos_gappa.s6, exp32_pos_gappa.s7. rewrite !(id_F r Fr).
  change (Float1 1) with 1. fold (y_of r).
  apply NNPP. intros M. apply not_or_and in M. destruct M as [M1 M2]. apply NNPP in M1, M2.
  apply N. split.
  - revert M1. unfold BND. intervals. simpl. lra.
  - destruct M2 as (e & He & Ee). exists e. split; [|exact Ee].
    revert He. intervals. simpl. intros He. apply Rabs_le. lra.
Qed.

(* ---- the whole ---- *)
Definition tiny := bpow radix2 (-150).
(* Everything that is known of core x: R the exact reduced argument, z the exponent. *)
Lemma core_spec x : F x -> -104 <= x <= 0 -> exists z y, let ER := exp (x - IZR z * ln 2) in
  (-151 <= z <= 0)%Z /\ core x = rnd (y * bpow radix2 z) /\ F y /\ / 2 <= y <= 2 /\
  (z = 0%Z -> y = y_of x) /\ exp x = ER * bpow radix2 z /\ 0.7 <= ER <= 1.4145 /\
  (exists e, Rabs e <= 23 * bpow radix2 (-28) /\ y = ER * (1 + e)) /\
  (ER <= 1 -> Rabs (y - ER) <= 31 * bpow radix2 (-29)) /\
  (1 <= ER -> Rabs (y - ER) <= 15 * bpow radix2 (-27)).
Proof.
  intros Fx Hx. destruct (red_spec x Fx Hx) as (z & En & Hz & Hr & Hd & H0).
  set (R := x - IZR z * ln 2) in *. exists z, (y_of (r_of x)). intros ER.
  assert (Fr : F (r_of x)) by (unfold r_of; apply F_rnd).
  pose proof (exp_pos R) as PR. fold ER in PR.
  assert (EX : exp x = ER * bpow radix2 z).
  { unfold ER. rewrite bpow_exp, <- exp_plus. f_equal. unfold R. simpl. ring. }
  assert (Rel : Rabs (exp (r_of x) / ER - 1) <= 1.51e-8).
  { unfold ER, Rdiv. rewrite <- exp_Ropp, <- exp_plus. now apply exp_near. }
  pose proof (Rabs_rng _ _ Hr) as Hr'. pose proof (Rabs_rng _ _ Hd) as Hd'.
  assert (HR : -0.34671 <= R <= 0.34671) by lra.
  assert (HER : 0.7 <= ER <= 1.4145) by now apply exp_rng.
  assert (Y : (exists e, Rabs e <= 23 * bpow radix2 (-28) /\ y_of (r_of x) = ER * (1 + e)) /\
    (ER <= 1 -> Rabs (y_of (r_of x) - ER) <= 31 * bpow radix2 (-29)) /\
    (1 <= ER -> Rabs (y_of (r_of x) - ER) <= 15 * bpow radix2 (-27))).
  { assert (S : forall a b, exp a <= exp b -> a <= b).
    { intros a b [H|H]; [left; now apply exp_lt_inv|right; now apply exp_inv]. }
    split; [|split].
    - destruct (Rle_dec (r_of x) 0).
      + apply y_neg; auto; lra.
      + apply y_pos; auto; lra.
    - intros H. assert (R <= 0) by (apply S; rewrite exp_0; exact H). apply y_neg; auto; lra.
    - intros H. assert (0 <= R) by (apply S; rewrite exp_0; exact H). apply y_pos; auto; lra. }
  destruct Y as ((e & He & Ee) & Y1 & Y2).
  assert (Fy : F (y_of (r_of x))) by (unfold y_of; apply F_rnd).
  assert (Hy : / 2 <= y_of (r_of x) <= 2).
  { rewrite Ee. apply Rabs_rng in He. simpl in He. nra. }
  split; [auto|]. split; [|split; [auto|split; [auto|split; [|split; [auto|split; [auto|split; [|auto]]]]]]].
  - unfold core. rewrite En, Ztrunc_IZR. simpl Fexp.
    exact (two_steps (-149) 24 (y_of (r_of x)) z 64 Fy Hy ltac:(lia)).
  - intros E. now rewrite (H0 E).
  - exists e; auto.
Qed.

Lemma tiny_eq : tiny = bpow radix2 (-149 - 1). Proof. reflexivity. Qed.
(* On [-104, 0]. *)
Lemma core_error x : F x -> -104 <= x <= 0 -> exists e h, core x = exp x * (1 + e) + h /\
  Rabs e <= 23 * bpow radix2 (-28) /\ Rabs h <= tiny /\ (-86 <= x -> h = 0).
Proof.
  intros Fx Hx.
  destruct (core_spec x Fx Hx) as (z & y & Hz & -> & Fy & Hy & _ & EX & HER & (e & He & Ee) & _).
  destruct (scale_error (-149) 24 eq_refl y z Fy Hy) as (h & -> & Hh & H0).
  exists e, h. split; [rewrite Ee, EX; ring|]. split; [auto|split; [exact Hh|]].
  intros Hx86. apply H0. destruct (Z_le_gt_dec (-149 + 24) z) as [|C]; auto. exfalso.
  assert (B : bpow radix2 z <= bpow radix2 (-126)) by (apply bpow_le; lia).
  assert (exp (-86) <= exp x) by (apply exp_le; lra).
  assert (1.4145 * bpow radix2 (-126) < exp (-86)) by (cbn [bpow]; interval with (i_prec 64)).
  pose proof (bpow_gt_0 radix2 z). rewrite EX in *. nra.
Qed.
Lemma F_least : F (-104).
Proof.
  apply generic_format_FLT. exists (Defs.Float radix2 (-104) 0); simpl; try lia.
  unfold Defs.F2R; simpl; lra.
Qed.
(* The least argument already gives 0. *)
Lemma core_least : core (-104) = 0.
Proof.
  destruct (core_spec (-104) F_least ltac:(lra))
    as (z & y & Hz & -> & Fy & Hy & _ & EX & HER & (e & He & Ee) & _).
  pose proof (bpow_gt_0 radix2 z) as Pz. set (v := y * bpow radix2 z).
  assert (Hv : 0 < v < bpow radix2 (-150)).
  { split; [apply Rmult_lt_0_compat; lra|].
    replace v with (exp (-104) * (1 + e)) by (unfold v; rewrite Ee, EX; ring).
    apply Rabs_rng in He. simpl in He.
    apply Rle_lt_trans with (exp (-104) * (1 + 1 / 10000000)).
    - apply Rmult_le_compat_l; [left; apply exp_pos|lra].
    - cbn [bpow]. interval with (i_prec 80). }
  apply (round_N_small_pos radix2 (FLT_exp (-149) 24) (fun x => negb (Z.even x)) v (mag radix2 v)).
  - destruct (mag radix2 v) as (m & Hm). simpl. rewrite (Rabs_pos_eq v) in Hm by lra. apply Hm. lra.
  - assert (mag radix2 v <= -150)%Z; [|unfold FLT_exp; lia].
    apply mag_le_bpow; [lra|]. rewrite Rabs_pos_eq; lra.
Qed.
Lemma least_is : float2R LEAST_32 = -104. Proof. rewrite f2R. simpl. lra. Qed.

(* The contract that Formats.v asks of exp, for every argument. *)
Theorem exp32_error x : F x -> x <= 0 -> exists e h,
  Rabs e <= 23 * bpow radix2 (-28) /\ Rabs h <= tiny /\ exp32 x = exp x * (1 + e) + h.
Proof.
  intros Fx Hx. unfold exp32. rewrite least_is. destruct Rlt_dec as [H|H].
  - exists 0, (- exp x). rewrite core_least, Rabs_R0, Rabs_Ropp, Rabs_pos_eq by (left; apply exp_pos).
    split; [simpl; lra|split; [|ring]]. apply Rle_trans with (exp (-104)); [apply exp_le; lra|].
    unfold tiny. cbn [bpow]. interval with (i_prec 64).
  - destruct (core_error x Fx ltac:(lra)) as (e & h & h1 & h2 & h3 & _). exists e, h; auto.
Qed.
(* Where nothing underflows the error is relative, and less than one unit in the last place. *)
Theorem exp32_relative x : F x -> -86 <= x <= 0 -> exists e,
  Rabs e <= 23 * bpow radix2 (-28) /\ exp32 x = exp x * (1 + e).
Proof.
  intros Fx Hx. unfold exp32. rewrite least_is. destruct Rlt_dec as [H|H]; [lra|].
  destruct (core_error x Fx ltac:(lra)) as (e & h & h1 & h2 & h3 & h4).
  exists e. split; auto. rewrite h1, h4 by lra. ring.
Qed.
Theorem exp32_ulp x : F x -> -86 <= x <= 0 ->
  Rabs (exp32 x - exp x) <= 31 / 32 * ulp radix2 (FLT_exp (-149) 24) (exp x).
Proof.
  intros Fx Hx. unfold exp32. rewrite least_is. destruct Rlt_dec as [H|H]; [lra|].
  destruct (core_spec x Fx ltac:(lra))
    as (z & y & Hz & -> & Fy & Hy & _ & EX & HER & (e & He & Ee) & Y1 & Y2).
  destruct (scale_error (-149) 24 eq_refl y z Fy Hy) as (h & -> & Hh & H0).
  assert (Hz' : (-125 <= z)%Z).
  { destruct (Z_le_gt_dec (-125) z) as [|C]; auto. exfalso.
    assert (B : bpow radix2 z <= bpow radix2 (-126)) by (apply bpow_le; lia).
    assert (exp (-86) <= exp x) by (apply exp_le; lra).
    assert (1.4145 * bpow radix2 (-126) < exp (-86)) by (cbn [bpow]; interval with (i_prec 64)).
    pose proof (bpow_gt_0 radix2 z). rewrite EX in *. nra. }
  rewrite H0 by lia. set (ER := exp (x - IZR z * ln 2)) in *. rewrite Rplus_0_r, EX.
  pose proof (bpow_gt_0 radix2 z) as Pz.
  replace (y * bpow radix2 z - ER * bpow radix2 z) with ((y - ER) * bpow radix2 z) by ring.
  rewrite Rabs_mult, (Rabs_pos_eq (bpow radix2 z)) by lra.
  rewrite ulp_neq_0 by nra. unfold cexp.
  assert (M : forall k, bpow radix2 k <= ER * bpow radix2 z < bpow radix2 (k + 1) ->
    mag radix2 (ER * bpow radix2 z) = (k + 1)%Z :> Z).
  { intros k Hk. apply mag_unique_pos. replace (k + 1 - 1)%Z with k by lia. exact Hk. }
  destruct (Rlt_dec ER 1) as [C|C].
  - rewrite (M (z - 1)%Z).
    2:{ split; [|replace (z - 1 + 1)%Z with z by lia; nra].
        change (z - 1)%Z with (z + -1)%Z. rewrite bpow_plus. simpl. nra. }
    replace (FLT_exp (-149) 24 (z - 1 + 1)) with (z + -24)%Z by (unfold FLT_exp; lia).
    rewrite bpow_plus. specialize (Y1 ltac:(lra)). simpl in Y1 |- *. nra.
  - rewrite (M z).
    2:{ split; [nra|]. rewrite bpow_plus. simpl. nra. }
    replace (FLT_exp (-149) 24 (z + 1)) with (z + -23)%Z by (unfold FLT_exp; lia).
    rewrite bpow_plus. specialize (Y2 ltac:(lra)). simpl in Y2 |- *. nra.
Qed.
Theorem exp32_F x : F (exp32 x). Proof. apply F_rnd. Qed.
Lemma F_1 : F 1.
Proof.
  apply generic_format_FLT. exists (Defs.Float radix2 1 0); simpl; try lia.
  unfold Defs.F2R; simpl; lra.
Qed.
Theorem exp32_0 : exp32 0 = 1.
Proof.
  unfold exp32. rewrite least_is. destruct Rlt_dec; [lra|]. unfold core.
  destruct (red_near 0 F_0 ltac:(lra)) as [-> ->]. rewrite (Ztrunc_IZR 0).
  assert (E : y_of 0 = 1).
  { unfold y_of. cbv zeta. rewrite !Rmult_0_r, !Rplus_0_l. apply (id_F 1 F_1). }
  rewrite E. simpl Fexp.
  pose proof (two_steps (-149) 24 1 0 64 F_1 ltac:(lra) ltac:(lia)) as T.
  etransitivity; [exact T|]. simpl. rewrite Rmult_1_r. now apply id_F, F_1.
Qed.

(* ---- between 0 and 1 ---- *)
Lemma q1_pos r : -3/8 <= r <= 0 ->
  0 <= rnd (rnd (rnd (rnd (rnd (float2R c6_32 * r + float2R c5_32) * r + float2R c4_32) * r
     + float2R c3_32) * r + float2R c2_32) * r + 1) <= 2.
Proof. intros H. rewrite !f2R. gappa. Qed.
Lemma y_le_1 r : F r -> -3/8 <= r <= 0 -> y_of r <= 1.
Proof.
  intros Fr Hr. pose proof (q1_pos r Hr) as [Q _]. unfold y_of; cbv zeta.
  apply Rle_trans with (rnd 1); [|rewrite (id_F 1 F_1); lra].
  apply round_le; try typeclasses eauto.
  match type of Q with 0 <= ?q => set (q1 := q) in * end. nra.
Qed.
Theorem exp32_01 x : F x -> x <= 0 -> 0 <= exp32 x <= 1.
Proof.
  intros Fx Hx. unfold exp32. rewrite least_is. destruct Rlt_dec as [H|H].
  { rewrite core_least. lra. }
  destruct (core_spec x Fx ltac:(lra))
    as (z & y & Hz & -> & Fy & Hy & Y0 & EX & HER & (e & He & Ee) & _).
  pose proof (bpow_gt_0 radix2 z) as Pz. split.
  - apply Rle_trans with (rnd 0); [rewrite (id_F 0 F_0); lra|].
    apply round_le; try typeclasses eauto. nra.
  - apply Rle_trans with (rnd 1); [|rewrite (id_F 1 F_1); lra].
    apply round_le; try typeclasses eauto.
    destruct (Z.eq_dec z 0) as [->|Nz].
    + simpl. rewrite Rmult_1_r, Y0 by auto. apply y_le_1; auto.
      replace (x - 0 * ln 2) with x in HER by ring. split; [|lra].
      destruct (Rle_dec (-3/8) x) as [|C]; [auto|]. exfalso.
      assert (exp x <= exp (-3/8)) by (apply exp_le; lra).
      assert (exp (-3/8) < 0.7) by interval with (i_prec 64). lra.
    + assert (bpow radix2 z <= bpow radix2 (-1)) by (apply bpow_le; lia). simpl in *. nra.
Qed.
