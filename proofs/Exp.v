(* The exponential of at_math.h at any width: one argument for at_exp32 and at_exp64, whose files
   prove what is asked here of their constants.

       computed x = e^x (1 + e) + h,   |e| <= 23/16 eps,   |h| <= half the least subnormal,

   for x <= 0; h = 0 where nothing underflows, and then less than one unit in the last place;
   between 0 and 1, and 1 at 0.  SPDX-License-Identifier: MIT *)
From Coq Require Import Reals ZArith List Lra Lia Psatz.
From Flocq Require Import Core Relative Mult_error.
From Interval Require Import Tactic.
From Gappa Require Import Gappa_library.
Require Import Sums ExpScale.
Local Open Scope R_scope.

Lemma exp_rng t : -0.34671 <= t <= 0.34671 -> 0.7 <= exp t <= 1.4145.
Proof. intros H. split; interval with (i_prec 64). Qed.
Lemma exp_38 : exp (-3/8) < 0.7. Proof. interval with (i_prec 64). Qed.

Section Exp.
Variables emin prec : Z.
Hypothesis Hprec : (24 <= prec)%Z.
Hypothesis Hemin : (emin <= 0)%Z.
Lemma prec_pos : (0 < prec)%Z. Proof. lia. Qed.
Local Instance prec_ok : Prec_gt_0 prec := prec_pos.
Notation F := (generic_format radix2 (FLT_exp emin prec)).
Notation rnd := (round radix2 (FLT_exp emin prec) rndNE).
Notation id_F := (id_F emin prec).
Notation F_rnd := (F_rnd emin prec prec_pos).
Notation eps := (bpow radix2 (- prec)).

(* ---- the program: every rnd is one operation, fma where a product and a sum share one ---- *)
Variables (l2e nhi nlo shift least first : R) (rest : list R) (back : Z).
Definition k_of x := rnd (x * l2e + shift).
Definition n_of x := rnd (k_of x - shift).
Definition r_of x := rnd (n_of x * nlo + rnd (n_of x * nhi + x)).
Definition q_of r := fold_left (fun q c => rnd (q * r + c)) rest first.
Definition y_of r := rnd (rnd (q_of r * r + 1) * r + 1).
Definition core x :=
  rnd (rnd (y_of (r_of x) * bpow radix2 (Ztrunc (n_of x) + back)) * bpow radix2 (- back)).
Definition computed x := core (if Rlt_dec x least then least else x).

(* ---- what is asked of the constants ---- *)
Variables (low : Z) (normal d near : R).   (* n >= low; normal: no underflow; d, near: of the reduction *)
Hypothesis d_small : 0 <= d <= / 1000000.
Hypothesis near_of : forall t, Rabs t <= d -> Rabs (exp t - 1) <= near.
Hypothesis red_far : forall x, F x -> least <= x <= -5/16 ->
  IZR low <= n_of x <= 0 /\ (exists z, n_of x = IZR z) /\ Rabs (r_of x) <= 0.3467 /\
  Rabs (r_of x - (x - n_of x * ln 2)) <= d.
Hypothesis k_near : forall x, F x -> -5/16 <= x <= 0 -> k_of x = shift.
Hypothesis y_neg : forall r ER, F r -> -0.3467 <= r <= d -> 0 < ER -> Rabs (exp r / ER - 1) <= near ->
  Rabs (y_of r - ER) <= 31 * bpow radix2 (- prec - 5) /\
  exists e, Rabs e <= 23 * bpow radix2 (- prec - 4) /\ y_of r = ER * (1 + e).
Hypothesis y_pos : forall r ER, F r -> - d <= r <= 0.3467 -> 0 < ER -> Rabs (exp r / ER - 1) <= near ->
  Rabs (y_of r - ER) <= 15 * bpow radix2 (- prec - 3) /\
  exists e, Rabs e <= 23 * bpow radix2 (- prec - 4) /\ y_of r = ER * (1 + e).
Hypothesis q1_pos : forall r, -3/8 <= r <= 0 -> 0 <= rnd (q_of r * r + 1).
Hypothesis low_rng : (low <= 0 /\ emin + prec <= low + back)%Z.
Hypothesis F_least : F least.
Hypothesis least_rng : least <= -5/16 /\ least <= normal.
Hypothesis least_ok : exp least * (1 + 1 / 10000000) < bpow radix2 (emin - 1).
Hypothesis normal_ok : 1.4145 * bpow radix2 (emin + prec - 1) < exp normal.

Lemma eps_rng : 0 < eps <= / 16777216.
Proof.
  split; [apply bpow_gt_0|]. replace (/ 16777216) with (bpow radix2 (-24)) by (simpl; lra).
  apply bpow_le. lia.
Qed.
Lemma eps_3 : bpow radix2 (- prec - 3) = eps / 8.
Proof. change (- prec - 3)%Z with (- prec + -3)%Z. rewrite bpow_plus. simpl (bpow radix2 (-3)). lra. Qed.
Lemma eps_4 : bpow radix2 (- prec - 4) = eps / 16.
Proof. change (- prec - 4)%Z with (- prec + -4)%Z. rewrite bpow_plus. simpl (bpow radix2 (-4)). lra. Qed.
Lemma eps_5 : bpow radix2 (- prec - 5) = eps / 32.
Proof. change (- prec - 5)%Z with (- prec + -5)%Z. rewrite bpow_plus. simpl (bpow radix2 (-5)). lra. Qed.
Lemma small_e e : Rabs e <= 23 * bpow radix2 (- prec - 4) -> - / 10000000 <= e <= / 10000000.
Proof.
  intros H. apply Rabs_rng in H. rewrite eps_4 in H. pose proof eps_rng. lra.
Qed.
Lemma F_0 : F 0. Proof. apply generic_format_0. Qed.
Lemma F_1 : F 1.
Proof.
  apply generic_format_FLT. exists (Defs.Float radix2 1 0); simpl; try lia.
  - unfold Defs.F2R; simpl; lra.
  - apply Z.lt_le_trans with (2 ^ 24)%Z; [lia|]. apply Z.pow_le_mono_r; lia.
Qed.

(* ---- reduction: n is whole, r is small, and e^x = 2^n e^(x - n ln 2) with r near its exponent ---- *)
Lemma red_near x : F x -> -5/16 <= x <= 0 -> n_of x = 0 /\ r_of x = x.
Proof.
  intros Fx Hx. assert (E : n_of x = 0).
  { unfold n_of. rewrite (k_near x Fx Hx), Rminus_diag_eq by reflexivity. apply (id_F 0 F_0). }
  split; auto. unfold r_of. rewrite E, !Rmult_0_l, !Rplus_0_l. now rewrite !(id_F x Fx).
Qed.
Lemma red_spec x : F x -> least <= x <= 0 -> exists z : Z, n_of x = IZR z /\ (low <= z <= 0)%Z /\
  Rabs (r_of x) <= 0.3467 /\ Rabs (r_of x - (x - IZR z * ln 2)) <= d /\
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

(* ---- the whole ---- *)
(* Everything that is known of core x: x - z ln 2 the exact reduced argument, z the exponent. *)
Lemma core_spec x : F x -> least <= x <= 0 -> exists z y, let ER := exp (x - IZR z * ln 2) in
  (low <= z <= 0)%Z /\ core x = rnd (y * bpow radix2 z) /\ F y /\ / 2 <= y <= 2 /\
  (z = 0%Z -> y = y_of x) /\ exp x = ER * bpow radix2 z /\ 0.7 <= ER <= 1.4145 /\
  (exists e, Rabs e <= 23 * bpow radix2 (- prec - 4) /\ y = ER * (1 + e)) /\
  (ER <= 1 -> Rabs (y - ER) <= 31 * bpow radix2 (- prec - 5)) /\
  (1 <= ER -> Rabs (y - ER) <= 15 * bpow radix2 (- prec - 3)).
Proof.
  intros Fx Hx. destruct (red_spec x Fx Hx) as (z & En & Hz & Hr & Hd & H0).
  set (R := x - IZR z * ln 2) in *. exists z, (y_of (r_of x)). intros ER.
  assert (Fr : F (r_of x)) by (unfold r_of; apply F_rnd).
  pose proof (exp_pos R) as PR. fold ER in PR.
  assert (EX : exp x = ER * bpow radix2 z).
  { unfold ER. rewrite bpow_exp, <- exp_plus. f_equal. unfold R. simpl. ring. }
  assert (Rel : Rabs (exp (r_of x) / ER - 1) <= near).
  { unfold ER, Rdiv. rewrite <- exp_Ropp, <- exp_plus. now apply near_of. }
  pose proof (Rabs_rng _ _ Hr) as Hr'. pose proof (Rabs_rng _ _ Hd) as Hd'.
  assert (HR : -0.34671 <= R <= 0.34671) by lra.
  assert (HER : 0.7 <= ER <= 1.4145) by now apply exp_rng.
  assert (Y : (exists e, Rabs e <= 23 * bpow radix2 (- prec - 4) /\ y_of (r_of x) = ER * (1 + e)) /\
    (ER <= 1 -> Rabs (y_of (r_of x) - ER) <= 31 * bpow radix2 (- prec - 5)) /\
    (1 <= ER -> Rabs (y_of (r_of x) - ER) <= 15 * bpow radix2 (- prec - 3))).
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
  assert (Hy : / 2 <= y_of (r_of x) <= 2) by (rewrite Ee; apply small_e in He; nra).
  split; [auto|]. split; [|split; [auto|split; [auto|split; [|split; [auto|split; [auto|split; [|auto]]]]]]].
  - unfold core. rewrite En, Ztrunc_IZR.
    exact (two_steps emin prec (y_of (r_of x)) z back Fy Hy ltac:(lia)).
  - intros E. now rewrite (H0 E).
  - exists e; auto.
Qed.
(* Above normal the result has a normal number's exponent. *)
Lemma z_normal x z : normal <= x -> exp x = exp (x - IZR z * ln 2) * bpow radix2 z ->
  exp (x - IZR z * ln 2) <= 1.4145 -> (emin + prec <= z)%Z.
Proof.
  intros Hx EX HER. destruct (Z_le_gt_dec (emin + prec) z) as [|C]; auto. exfalso.
  assert (B : bpow radix2 z <= bpow radix2 (emin + prec - 1)) by (apply bpow_le; lia).
  assert (exp normal <= exp x) by now apply exp_le.
  pose proof (bpow_gt_0 radix2 z). pose proof (exp_pos (x - IZR z * ln 2)). rewrite EX in *. nra.
Qed.
Lemma core_error x : F x -> least <= x <= 0 -> exists e h, core x = exp x * (1 + e) + h /\
  Rabs e <= 23 * bpow radix2 (- prec - 4) /\ Rabs h <= bpow radix2 (emin - 1) /\ (normal <= x -> h = 0).
Proof.
  intros Fx Hx.
  destruct (core_spec x Fx Hx) as (z & y & Hz & -> & Fy & Hy & _ & EX & HER & (e & He & Ee) & _).
  destruct (scale_error emin prec prec_pos y z Fy Hy) as (h & -> & Hh & H0).
  exists e, h. split; [rewrite Ee, EX; ring|]. split; [auto|split; [exact Hh|]].
  intros Hn. apply H0, (z_normal x); auto. lra.
Qed.
(* The least argument already gives 0. *)
Lemma core_least : core least = 0.
Proof.
  destruct (core_spec least F_least ltac:(lra))
    as (z & y & Hz & -> & Fy & Hy & _ & EX & HER & (e & He & Ee) & _).
  pose proof (bpow_gt_0 radix2 z) as Pz. set (v := y * bpow radix2 z).
  assert (Hv : 0 < v < bpow radix2 (emin - 1)).
  { split; [apply Rmult_lt_0_compat; lra|].
    replace v with (exp least * (1 + e)) by (unfold v; rewrite Ee, EX; ring).
    apply small_e in He. eapply Rle_lt_trans; [|exact least_ok].
    apply Rmult_le_compat_l; [left; apply exp_pos|lra]. }
  apply (round_N_small_pos radix2 (FLT_exp emin prec) (fun x => negb (Z.even x)) v (mag radix2 v)).
  - destruct (mag radix2 v) as (m & Hm). simpl. rewrite (Rabs_pos_eq v) in Hm by lra. apply Hm. lra.
  - assert (mag radix2 v <= emin - 1)%Z; [|unfold FLT_exp; lia].
    apply mag_le_bpow; [lra|]. rewrite Rabs_pos_eq; lra.
Qed.

(* The contract that Formats.v asks of exp, for every argument. *)
Theorem computed_error x : F x -> x <= 0 -> exists e h, Rabs e <= 23 * bpow radix2 (- prec - 4) /\
  Rabs h <= bpow radix2 (emin - 1) /\ computed x = exp x * (1 + e) + h.
Proof.
  intros Fx Hx. unfold computed. destruct Rlt_dec as [H|H].
  - exists 0, (- exp x). rewrite core_least, Rabs_R0, Rabs_Ropp, Rabs_pos_eq by (left; apply exp_pos).
    pose proof (bpow_gt_0 radix2 (- prec - 4)). split; [lra|split; [|ring]].
    apply Rle_trans with (exp least); [apply exp_le; lra|]. pose proof (exp_pos least). lra.
  - destruct (core_error x Fx ltac:(lra)) as (e & h & h1 & h2 & h3 & _). exists e, h; auto.
Qed.
(* Where nothing underflows the error is relative, and less than one unit in the last place. *)
Theorem computed_relative x : F x -> normal <= x <= 0 -> exists e,
  Rabs e <= 23 * bpow radix2 (- prec - 4) /\ computed x = exp x * (1 + e).
Proof.
  intros Fx Hx. unfold computed. destruct Rlt_dec as [H|H]; [lra|].
  destruct (core_error x Fx ltac:(lra)) as (e & h & h1 & h2 & h3 & h4).
  exists e. split; auto. rewrite h1, h4 by lra. ring.
Qed.
Theorem computed_ulp x : F x -> normal <= x <= 0 ->
  Rabs (computed x - exp x) <= 31 / 32 * ulp radix2 (FLT_exp emin prec) (exp x).
Proof.
  intros Fx Hx. unfold computed. destruct Rlt_dec as [H|H]; [lra|].
  destruct (core_spec x Fx ltac:(lra))
    as (z & y & Hz & -> & Fy & Hy & _ & EX & HER & (e & He & Ee) & Y1 & Y2).
  destruct (scale_error emin prec prec_pos y z Fy Hy) as (h & -> & Hh & H0).
  assert (Hz' : (emin + prec <= z)%Z) by (apply (z_normal x); auto; lra).
  rewrite H0 by lia. set (ER := exp (x - IZR z * ln 2)) in *. rewrite Rplus_0_r, EX.
  pose proof (bpow_gt_0 radix2 z) as Pz. pose proof eps_rng as Pe.
  replace (y * bpow radix2 z - ER * bpow radix2 z) with ((y - ER) * bpow radix2 z) by ring.
  rewrite Rabs_mult, (Rabs_pos_eq (bpow radix2 z)) by lra.
  rewrite ulp_neq_0 by nra. unfold cexp.
  assert (M : forall k, bpow radix2 k <= ER * bpow radix2 z < bpow radix2 (k + 1) ->
    mag radix2 (ER * bpow radix2 z) = (k + 1)%Z :> Z).
  { intros k Hk. apply mag_unique_pos. replace (k + 1 - 1)%Z with k by lia. exact Hk. }
  rewrite eps_5 in Y1. rewrite eps_3 in Y2.
  destruct (Rlt_dec ER 1) as [C|C].
  - rewrite (M (z - 1)%Z).
    2:{ split; [|replace (z - 1 + 1)%Z with z by lia; nra].
        change (z - 1)%Z with (z + -1)%Z. rewrite bpow_plus. simpl. nra. }
    replace (FLT_exp emin prec (z - 1 + 1)) with (z + - prec)%Z by (unfold FLT_exp; lia).
    rewrite bpow_plus. specialize (Y1 ltac:(lra)). nra.
  - rewrite (M z).
    2:{ split; [nra|]. rewrite bpow_plus. simpl. nra. }
    replace (FLT_exp emin prec (z + 1)) with (z + (1 + - prec))%Z by (unfold FLT_exp; lia).
    rewrite !bpow_plus. specialize (Y2 ltac:(lra)). simpl (bpow radix2 1). nra.
Qed.
Theorem computed_F x : F (computed x). Proof. apply F_rnd. Qed.
Theorem computed_0 : computed 0 = 1.
Proof.
  unfold computed. destruct Rlt_dec; [lra|]. unfold core.
  destruct (red_near 0 F_0 ltac:(lra)) as [-> ->]. rewrite (Ztrunc_IZR 0).
  assert (E : y_of 0 = 1) by (unfold y_of; rewrite !Rmult_0_r, !Rplus_0_l; apply (id_F 1 F_1)).
  rewrite E. rewrite (two_steps emin prec 1 0 back F_1 ltac:(lra) ltac:(lia)).
  simpl. rewrite Rmult_1_r. apply id_F, F_1.
Qed.

(* ---- between 0 and 1 ---- *)
Lemma y_le_1 r : F r -> -3/8 <= r <= 0 -> y_of r <= 1.
Proof.
  intros Fr Hr. pose proof (q1_pos r Hr) as Q. unfold y_of.
  apply Rle_trans with (rnd 1); [|rewrite (id_F 1 F_1); lra].
  apply round_le; try typeclasses eauto. nra.
Qed.
Theorem computed_01 x : F x -> x <= 0 -> 0 <= computed x <= 1.
Proof.
  intros Fx Hx. unfold computed. destruct Rlt_dec as [H|H].
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
      assert (exp x <= exp (-3/8)) by (apply exp_le; lra). pose proof exp_38. lra.
    + assert (bpow radix2 z <= bpow radix2 (-1)) by (apply bpow_le; lia). simpl in *. nra.
Qed.
Definition shared := conj red_spec (conj computed_error (conj computed_relative (conj computed_ulp
  (conj computed_F (conj computed_0 computed_01))))).
End Exp.
