(* One concrete number.  binary32 with the shipped exponential, IEEE semantics: any row of at_row.h
   whose keys meet at most 320 roundings and 128 exponentials (8192 keys in tiles of 64), up to
   2^20 keys: the output is finite and within 7e-5 V + 1e-36 of the exact average, whatever the
   spread of the scores.  SPDX-License-Identifier: MIT *)
From Coq Require Import Reals Lra Lia List Arith ZArith Psatz.
From Flocq Require Import Core BinarySingleNaN Relative.
From Interval Require Import Tactic.
Require Import Sums Rounding RangeFree Formats Range Exp32 Ieee.
Import ListNotations.
Local Open Scope R_scope.

Notation rne := (fun x => negb (Z.even x)).
Notation same := (fun p : R => p).
Notation fm32 := (fm (-149) 24 rne exp32 same).
Notation l32 := (fl_l (-149) 24 rne exp32 same).
Notation u32 := (fl_u (-149) 24 rne exp32 same).
Notation fl32 := (fl (-149) 24 rne).
Definition epse32 := 23 * bpow radix2 (-28).

(* What c exponentials lose by underflow is at most c losses. *)
Lemma dust_linear e h c : 0 <= e -> 0 <= h -> dust e h c <= INR c * h * up (e + h) c.
Proof.
  intros He Hh. unfold dust. induction c as [|c IH]; [unfold up; simpl; lra|].
  rewrite S_INR. unfold up in *. simpl.
  set (A := (1 + (e + h)) ^ c) in *. set (B := (1 + e) ^ c) in *.
  assert (B <= A) by (apply pow_incr; lra). assert (1 <= A) by (apply pow_R1_Rle; lra).
  assert (0 <= INR c * h * A) by (apply Rmult_le_pos; [apply Rmult_le_pos; auto using pos_INR|lra]).
  replace ((1 + (e + h)) * A - (1 + e) * B) with ((1 + e) * (A - B) + h * A) by ring.
  assert ((1 + e) * (A - B) <= (1 + e) * (INR c * h * A)) by (apply Rmult_le_compat_l; lra).
  assert (0 <= h * (INR c * h * A)) by (apply Rmult_le_pos; lra).
  assert (0 <= e * (h * A)) by (apply Rmult_le_pos; [|apply Rmult_le_pos]; lra).
  assert (0 <= h * (h * A)) by (apply Rmult_le_pos; [|apply Rmult_le_pos]; lra). lra.
Qed.
Lemma eps24 : eps 24 = / 16777216. Proof. unfold eps, u_ro. simpl. lra. Qed.
Lemma INR_le_IZR n z : (Z.of_nat n <= z)%Z -> INR n <= IZR z.
Proof. intros H. rewrite INR_IZR_INZ. now apply IZR_le. Qed.
Lemma up_small e c z q : 0 <= e -> (Z.of_nat c <= z)%Z -> e * IZR z <= q -> up e c <= exp q.
Proof.
  intros He Hc Hq. eapply Rle_trans; [now apply up_exp|]. apply exp_le.
  eapply Rle_trans; [|exact Hq]. apply Rmult_le_compat_l; auto. now apply INR_le_IZR.
Qed.

Section Row.
Variable x : prog.
Variable V : R.
Hypothesis HF : inF (-149) 24 V (keys x).
Hypothesis V_pos : 0 <= V.
Hypothesis Hb : (Z.of_nat (budget x) <= 320)%Z.
Hypothesis Hc : (Z.of_nat (worst_c x) <= 128)%Z.
Hypothesis HN : (Z.of_nat (products x) <= 4194304)%Z.
Hypothesis Hn : (Z.of_nat (length (keys x)) <= 1048576)%Z.
Notation n := (length (keys x)).
Lemma epse32_rng : 0 <= epse32 < 1. Proof. unfold epse32. simpl. lra. Qed.
Lemma tiny_rng : 0 <= tiny <= / 10 ^ 45. Proof. unfold tiny. split; [apply bpow_ge_0|simpl; lra]. Qed.
Lemma some_key : (1 <= n)%nat.
Proof.
  destruct (fm_attained (-149) 24 rne exp32 same x) as (e & He & _).
  destruct (keys x); simpl in *; [tauto|lia].
Qed.
Lemma ln_n : 0 <= ln (INR n) <= 14.
Proof.
  assert (1 <= INR n) by (change 1 with (INR 1); apply le_INR, some_key).
  pose proof (INR_le_IZR _ _ Hn). split; [now apply ln_nonneg|].
  apply Rle_trans with (ln 1048576); [|interval with (i_prec 64)].
  destruct H0 as [H0|H0]; [left; apply ln_increasing; lra|rewrite H0; lra].
Qed.
Lemma kappa_small k : (k <= 1)%nat ->
  0 <= kappa (eps 24) (eps 24) epse32 0 (budget x) k (worst_c x) n <= 32 / 1000000.
Proof.
  intros Hk. pose proof epse32_rng. pose proof ln_n. pose proof (INR_le_IZR _ _ Hb).
  pose proof (INR_le_IZR _ _ Hc). rewrite eps24. split.
  - unfold kappa. pose proof (Hi_ge1 (/ 16777216) epse32 0 ltac:(lra) ltac:(lra) ltac:(lra)
      (budget x) k (worst_c x)) as H3.
    pose proof (exp_ge_1x (/ 16777216 * ln (INR n))). nra.
  - eapply Rle_trans; [apply kappa_le; lra|].
    apply Rle_trans with (exp (/ 16777216 * 320 + 23 / 268435456 * 128 + / 16777216 * 14) - 1);
      [|interval with (i_prec 64)].
    apply Rplus_le_compat_r, exp_le. unfold epse32. simpl (bpow radix2 (-28)). nra.
Qed.
Lemma amp_small : 1 <= amp (eps 24) epse32 tiny (budget x) (worst_c x) <= 2.
Proof.
  pose proof epse32_rng. pose proof tiny_rng. rewrite eps24. split.
  - apply amp_ge1; lra.
  - unfold amp. apply Rle_trans with (exp (/ 10000) * exp (/ 10000)); [|interval with (i_prec 64)].
    pose proof (up_ge1 (/ 16777216) (budget x) ltac:(lra)).
    pose proof (up_ge1 (epse32 + tiny) (worst_c x) ltac:(lra)).
    apply Rmult_le_compat; try lra.
    + apply (up_small _ _ 320); auto; lra.
    + apply (up_small _ _ 128); auto; [lra|]. unfold epse32. simpl (bpow radix2 (-28)). simpl in *. lra.
Qed.
Lemma dust_small : 0 <= dust epse32 tiny (worst_c x) <= / 10 ^ 42 / 4.
Proof.
  pose proof epse32_rng. pose proof tiny_rng. pose proof (INR_le_IZR _ _ Hc).
  split; [apply dust_pos; lra|]. eapply Rle_trans; [apply dust_linear; lra|].
  pose proof amp_small as A. unfold amp in A.
  pose proof (up_ge1 (eps 24) (budget x) ltac:(rewrite eps24; lra)).
  pose proof (up_ge1 (epse32 + tiny) (worst_c x) ltac:(lra)).
  assert (up (epse32 + tiny) (worst_c x) <= 1001 / 1000).
  { eapply Rle_trans; [apply (up_small _ _ 128 (/ 10000)); auto; [lra|]|interval with (i_prec 64)].
    unfold epse32. simpl (bpow radix2 (-28)). simpl in *. lra. }
  apply Rle_trans with (128 * / 10 ^ 45 * (1001 / 1000)).
  - pose proof (pos_INR (worst_c x)). apply Rmult_le_compat; try lra; [apply Rmult_le_pos; lra|].
    apply Rmult_le_compat; lra.
  - simpl. lra.
Qed.
Lemma lost_small : 0 <= lost_l (-149) 24 epse32 tiny x <= / 10 ^ 38.
Proof.
  pose proof amp_small. pose proof (INR_le_IZR _ _ HN). pose proof (pos_INR (products x)).
  unfold lost_l. assert (Q : 0 <= eta (-149) <= / 10 ^ 45) by (unfold eta; simpl; lra).
  split; [apply Rmult_le_pos; [apply Rmult_le_pos|]; lra|].
  apply Rle_trans with (4194304 * / 10 ^ 45 * 2); [|simpl; lra].
  apply Rmult_le_compat; try lra; [apply Rmult_le_pos; lra|]. apply Rmult_le_compat; lra.
Qed.

Theorem attention_row32 : let o := TT (fm32 x) (keys x) / SS (fm32 x) (keys x) in
  Rabs (fl32 (u32 x / l32 x) - o) <= 7 / 100000 * V + / 10 ^ 36.
Proof.
  intros o.
  pose proof (attention_FLT (-149) 24 rne eq_refl exp32 same V epse32 tiny) as T.
  specialize (T epse32_rng (proj1 tiny_rng) exp32_F exp32_0).
  assert (XE : forall y, Exp32.F y -> y <= 0 -> exists e h, Rabs e <= epse32 /\ Rabs h <= tiny /\
    exp32 y = exp y * (1 + e) + h) by exact exp32_error.
  specialize (T XE 0 0 ltac:(lra) ltac:(lra) V_pos eq_refl).
  assert (NE : forall y, Exp32.F y -> exists e h, Rabs e <= 0 /\ Rabs h <= 0 /\ y = y * (1 + e) + h).
  { intros y _. exists 0, 0. rewrite Rabs_R0. repeat split; lra. }
  specialize (T NE x HF).
  pose proof (kappa_small 0 ltac:(lia)) as K0. pose proof (kappa_small 1 ltac:(lia)) as K1.
  pose proof dust_small as HD. pose proof lost_small as HL.
  pose proof (INR_le_IZR _ _ Hn) as Hn'. pose proof (pos_INR n).
  assert (LU : lost_u (-149) 24 V epse32 tiny 0 x = lost_l (-149) 24 epse32 tiny x).
  { unfold lost_u, lost_l, etau. now rewrite Rmult_0_l, Rmult_0_l, Rplus_0_r. }
  assert (U1 : up 0 1 = 1) by (unfold up; simpl; ring).
  cbv zeta in T. rewrite LU, U1, Rmult_1_r in T.
  assert (UB : 1 <= up (eps 24) (budget x) <= 1001 / 1000).
  { split; [apply up_ge1; rewrite eps24; lra|].
    eapply Rle_trans; [apply (up_small _ _ 320 (/ 10000)); auto; rewrite eps24; lra|].
    interval with (i_prec 64). }
  set (Kl := kappa (eps 24) (eps 24) epse32 0 (budget x) 0 (worst_c x) n) in *.
  set (Ku := kappa (eps 24) (eps 24) epse32 0 (budget x) 1 (worst_c x) n) in *.
  set (du := INR n * (dust epse32 tiny (worst_c x) * up (eps 24) (budget x))) in *.
  set (ls := lost_l (-149) 24 epse32 tiny x) in *.
  assert (Du : 0 <= du <= / 10 ^ 36 / 3).
  { unfold du. split; [apply Rmult_le_pos; [lra|apply Rmult_le_pos; lra]|].
    apply Rle_trans with (1048576 * (/ 10 ^ 42 / 4 * (1001 / 1000))); [|simpl; lra].
    apply Rmult_le_compat; try lra; [apply Rmult_le_pos; lra|]. apply Rmult_le_compat; lra. }
  destruct T as (_ & _ & T); [simpl in *; lra|].
  fold o in T. set (E := ((Kl + Ku) * V + V * (du + ls) + (V * du + ls)) / (1 - Kl - (du + ls))) in *.
  assert (HE : E <= 65 / 1000000 * V + / 10 ^ 37).
  { unfold E. apply le_div_l; [simpl in *; lra|].
    assert (0 <= Ku * V) by (apply Rmult_le_pos; lra). assert (0 <= Kl * V) by (apply Rmult_le_pos; lra).
    assert ((Kl + Ku) * V <= 64 / 1000000 * V) by (apply Rmult_le_compat_r; lra).
    assert (V * (du + ls + du) <= V * / 10 ^ 20) by (apply Rmult_le_compat_l; simpl in *; lra).
    assert (Z0 : 1 - Kl - (du + ls) >= 999 / 1000) by (simpl in *; lra).
    assert ((65 / 1000000 * V + / 10 ^ 37) * (1 - 33 / 1000000)
      <= (65 / 1000000 * V + / 10 ^ 37) * (1 - Kl - (du + ls))).
    { apply Rmult_le_compat_l; [simpl in *; lra|]. simpl in *. lra. }
    simpl in *. lra. }
  assert (Q : eta (-149) <= / 10 ^ 45) by (unfold eta; simpl; lra).
  rewrite eps24 in T. eapply Rle_trans; [exact T|].
  assert (E * (1 + / 16777216) <= (65 / 1000000 * V + / 10 ^ 37) * (1 + / 16777216))
    by (apply Rmult_le_compat_r; lra).
  simpl in *. lra.
Qed.
End Row.

Local Instance p24 : Prec_gt_0 24 := eq_refl.
Local Instance p128 : Prec_lt_emax 24 128 := eq_refl.
Notation b32 := (binary_float 24 128).

(* The capstone: IEEE binary32, any float function that computes the shipped exponential. *)
Theorem attention_binary32 (bexp : b32 -> b32) (x : bprog 24 128) V :
  (forall y, is_finite y = true -> B2R y <= 0 ->
     is_finite (bexp y) = true /\ B2R (bexp y) = exp32 (B2R y)) ->
  okrow 24 128 126 100 x ->
  (forall e, In e (keys (rprog 24 128 x)) -> Rabs (snd e) <= V) -> 0 <= V ->
  (Z.of_nat (budget (rprog 24 128 x)) <= 320)%Z ->
  (Z.of_nat (worst_c (rprog 24 128 x)) <= 128)%Z ->
  (Z.of_nat (products (rprog 24 128 x)) <= 4194304)%Z ->
  (Z.of_nat (length (keys (rprog 24 128 x))) <= 1048576)%Z ->
  let L := keys (rprog 24 128 x) in let o := bout 24 128 p24 p128 bexp x in
  is_finite o = true /\
  Rabs (B2R o - sumf (fun e : elt => exp (fst e) * snd e) L / sumf (fun e : elt => exp (fst e)) L)
    <= 7 / 100000 * V + / 10 ^ 36.
Proof.
  intros HE HO HV V0 Hb Hc HN Hn L o.
  assert (Hn' : INR (length L) <= bpow radix2 24)
    by (eapply Rle_trans; [apply (INR_le_IZR _ _ Hn)|]; simpl; lra).
  destruct (out_is 24 128 p24 p128 bexp exp32 HE exp32_F exp32_0 exp32_01 126 100
    ltac:(lia) ltac:(lia) x HO Hn') as [O1 O2].
  split; [exact O1|]. unfold o. rewrite O2.
  assert (HL : L <> []).
  { destruct (fm_attained (-149) 24 rne exp32 same (rprog 24 128 x)) as (e & He & _).
    fold L in He. intros E. now rewrite E in He. }
  rewrite <- (softmax_ratio (fm32 (rprog 24 128 x)) L HL).
  apply (attention_row32 (rprog 24 128 x) V); auto.
  intros e He. destruct (okrow_ok 24 128 126 100 x HO) as [H1 _].
  destruct (H1 e He) as (h1 & h2 & _). auto.
Qed.
