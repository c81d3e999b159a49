(* One concrete number, for every IEEE format of 24 bits or more: any row of at_row.h with an
   exponential of the shipped quality, whose keys meet at most 320 roundings and 128 exponentials
   (8192 keys in tiles of 64), up to 2^20 keys, is finite and within 1100 eps V + 2^24 of the least
   subnormal of the exact average, whatever the spread of the scores.
   SPDX-License-Identifier: MIT *)
From Coq Require Import Reals Lra Lia List Arith ZArith Psatz.
From Flocq Require Import Core BinarySingleNaN Relative.
Require Import Sums Rounding RangeFree Formats Range Ieee.
Import ListNotations.
Local Open Scope R_scope.

Notation rne := (fun x => negb (Z.even x)).
Notation same := (fun p : R => p).

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
Lemma INR_le_IZR n z : (Z.of_nat n <= z)%Z -> INR n <= IZR z.
Proof. intros H. rewrite INR_IZR_INZ. now apply IZR_le. Qed.
Lemma up_small e c z : 0 <= e -> (Z.of_nat c <= z)%Z -> e * IZR z <= / 1000 -> up e c <= 1002 / 1000.
Proof.
  intros He Hc Hq. eapply Rle_trans; [now apply up_exp|].
  assert (H : e * INR c <= / 1000).
  { eapply Rle_trans; [|exact Hq]. apply Rmult_le_compat_l; auto. now apply INR_le_IZR. }
  pose proof (exp_le _ _ H). pose proof (expm1_le (/ 1000) ltac:(lra)). lra.
Qed.
Lemma exp_15 : 1048576 <= exp 15.
Proof.
  assert (H : 1048576 <= exp (/ 100) ^ 1500).
  { eapply Rle_trans; [|apply (pow_incr (101 / 100)); pose proof (exp_ge_1x (/ 100)); lra].
    replace 1500%nat with (100 * 15)%nat by lia. rewrite pow_mult.
    eapply Rle_trans; [|apply (pow_incr (27 / 10)); split; [lra|simpl; lra]]. simpl. lra. }
  eapply Rle_trans; [exact H|right].
  assert (E : forall n, exp (/ 100) ^ n = exp (INR n * / 100)).
  { induction n as [|n IH]; [simpl; rewrite Rmult_0_l, exp_0; auto|].
    rewrite S_INR, Rmult_plus_distr_r, Rmult_1_l, exp_plus, <- IH. simpl. ring. }
  rewrite E. f_equal. rewrite INR_IZR_INZ. simpl. lra.
Qed.

Section Capstone.
Variables prec emin : Z.
Hypothesis Hprec : (24 <= prec)%Z.
Hypothesis Hemin : (emin <= -149 /\ emin + prec + 30 <= 0)%Z.
Lemma prec_gt0 : (0 < prec)%Z. Proof. lia. Qed.
Notation F := (generic_format radix2 (FLT_exp emin prec)).
Notation eps := (bpow radix2 (- prec)).
Notation tiny := (bpow radix2 (emin - 1)).
Notation epse := (23 * bpow radix2 (- prec - 4)).
Variable fexp : R -> R.
Hypothesis fexp_F : forall x, F (fexp x).
Hypothesis fexp_0 : fexp 0 = 1.
Hypothesis fexp_error : forall x, F x -> x <= 0 -> exists e h, Rabs e <= epse /\ Rabs h <= tiny /\
  fexp x = exp x * (1 + e) + h.
Notation fl := (fl emin prec rne).
Notation fm := (fm emin prec rne fexp same).
Notation fl_l := (fl_l emin prec rne fexp same).
Notation fl_u := (fl_u emin prec rne fexp same).
Lemma eps_is : Formats.eps prec = eps.
Proof.
  unfold Formats.eps, u_ro. rewrite bpow_plus. simpl (bpow radix2 1). lra.
Qed.
Lemma tiny_is : eta emin = tiny.
Proof.
  unfold eta. change (emin - 1)%Z with (emin + -1)%Z. rewrite bpow_plus. simpl (bpow radix2 (-1)). lra.
Qed.
Lemma epse_is : epse = 23 / 16 * eps.
Proof.
  change (- prec - 4)%Z with (- prec + -4)%Z. rewrite bpow_plus. simpl (bpow radix2 (-4)). lra.
Qed.
Lemma eps_rng : 0 < eps <= / 16777216.
Proof.
  split; [apply bpow_gt_0|]. replace (/ 16777216) with (bpow radix2 (-24)) by (simpl; lra).
  apply bpow_le. lia.
Qed.
Lemma tiny_rng : 0 < tiny /\ 1073741824 * tiny <= eps /\ tiny <= / 10 ^ 45.
Proof.
  split; [apply bpow_gt_0|split].
  - replace 1073741824 with (bpow radix2 30) by (simpl; lra). rewrite <- bpow_plus. apply bpow_le. lia.
  - apply Rle_trans with (bpow radix2 (-150)); [apply bpow_le; lia|simpl; lra].
Qed.

Section Row.
Variable x : prog.
Variable V : R.
Hypothesis HF : inF emin prec V (keys x).
Hypothesis V_pos : 0 <= V.
Hypothesis Hb : (Z.of_nat (budget x) <= 320)%Z.
Hypothesis Hc : (Z.of_nat (worst_c x) <= 128)%Z.
Hypothesis HN : (Z.of_nat (products x) <= 4194304)%Z.
Hypothesis Hn : (Z.of_nat (length (keys x)) <= 1048576)%Z.
Notation n := (length (keys x)).
Notation kappa_of k := (kappa eps eps epse 0 (budget x) k (worst_c x) n).
Lemma some_key : (1 <= n)%nat.
Proof.
  destruct (fm_attained emin prec rne fexp same x) as (e & He & _).
  destruct (keys x); simpl in *; [tauto|lia].
Qed.
Lemma ln_n : 0 <= ln (INR n) <= 15.
Proof.
  assert (1 <= INR n) by (change 1 with (INR 1); apply le_INR, some_key).
  pose proof (INR_le_IZR _ _ Hn). split; [now apply ln_nonneg|].
  rewrite <- (ln_exp 15). assert (L : INR n <= exp 15) by (pose proof exp_15; lra).
  destruct L as [L|L]; [left; apply ln_increasing; lra|rewrite L; lra].
Qed.
Lemma kappa_small k : 0 <= kappa_of k <= 521 * eps.
Proof.
  pose proof eps_rng. pose proof epse_is. pose proof ln_n. pose proof (INR_le_IZR _ _ Hb).
  pose proof (INR_le_IZR _ _ Hc). pose proof (pos_INR (budget x)). pose proof (pos_INR (worst_c x)).
  split.
  - unfold kappa. pose proof (Hi_ge1 eps epse 0 ltac:(lra) ltac:(lra) ltac:(lra)
      (budget x) k (worst_c x)) as H6.
    pose proof (exp_ge_1x (eps * ln (INR n))).
    assert (0 <= eps * ln (INR n)) by (apply Rmult_le_pos; lra).
    rewrite <- (Rmult_1_l 1) at 1. apply Rle_0_minus, Rmult_le_compat; lra.
  - eapply Rle_trans; [apply (kappa_le_g eps eps epse 0) with (g := 520 * eps); try lra|].
    + rewrite H0. nra.
    + apply le_div_l; nra.
Qed.
Lemma up_eps : 1 <= up eps (budget x) <= 1002 / 1000.
Proof.
  pose proof eps_rng. split; [apply up_ge1; lra|apply (up_small _ _ 320); auto; lra].
Qed.
Lemma up_exps : 1 <= up (epse + tiny) (worst_c x) <= 1002 / 1000.
Proof.
  pose proof eps_rng. pose proof tiny_rng. pose proof epse_is.
  split; [apply up_ge1; lra|apply (up_small _ _ 128); auto; lra].
Qed.
Lemma dust_small : 0 <= dust epse tiny (worst_c x) <= 129 * tiny.
Proof.
  pose proof eps_rng. pose proof tiny_rng. pose proof epse_is. pose proof (INR_le_IZR _ _ Hc).
  split; [apply dust_pos; lra|]. eapply Rle_trans; [apply dust_linear; lra|].
  pose proof up_exps. pose proof (pos_INR (worst_c x)).
  apply Rle_trans with (128 * tiny * (1002 / 1000)); [|lra].
  apply Rmult_le_compat; try lra; [apply Rmult_le_pos; lra|]. apply Rmult_le_compat; lra.
Qed.
Lemma lost_small : 0 <= lost_l emin prec epse tiny x <= 5000000 * tiny.
Proof.
  pose proof up_eps. pose proof up_exps. pose proof (INR_le_IZR _ _ HN). pose proof (pos_INR (products x)).
  pose proof tiny_rng. unfold lost_l. rewrite tiny_is, eps_is. unfold amp.
  set (a := up eps (budget x) * up (epse + tiny) (worst_c x)).
  assert (A : 1 <= a <= 1005 / 1000) by (unfold a; nra).
  split; [apply Rmult_le_pos; [apply Rmult_le_pos|]; lra|].
  apply Rle_trans with (4194304 * tiny * (1005 / 1000)); [|lra].
  apply Rmult_le_compat; try lra; [apply Rmult_le_pos; lra|]. apply Rmult_le_compat; lra.
Qed.
Lemma dust_row : 0 <= INR n * (dust epse tiny (worst_c x) * up eps (budget x)) <= 140000000 * tiny.
Proof.
  pose proof dust_small. pose proof up_eps. pose proof (INR_le_IZR _ _ Hn). pose proof (pos_INR n).
  pose proof tiny_rng. split; [apply Rmult_le_pos; [lra|apply Rmult_le_pos; lra]|].
  apply Rle_trans with (1048576 * (129 * tiny * (1002 / 1000))); [|lra].
  apply Rmult_le_compat; try lra; [apply Rmult_le_pos; lra|]. apply Rmult_le_compat; lra.
Qed.

Theorem attention_row : let o := TT (fm x) (keys x) / SS (fm x) (keys x) in
  Rabs (fl (fl_u x / fl_l x) - o) <= 1100 * eps * V + bpow radix2 (emin + 24).
Proof.
  intros o. pose proof eps_rng as HE. pose proof tiny_rng as HT. pose proof epse_is as Hee.
  pose proof (attention_FLT emin prec rne prec_gt0 fexp same V epse tiny) as T.
  specialize (T ltac:(lra) ltac:(lra) fexp_F fexp_0 fexp_error 0 0 ltac:(lra) ltac:(lra) V_pos eq_refl).
  assert (NE : forall y, F y -> exists e h, Rabs e <= 0 /\ Rabs h <= 0 /\ y = y * (1 + e) + h).
  { intros y _. exists 0, 0. rewrite Rabs_R0. repeat split; lra. }
  specialize (T NE x HF).
  assert (LU : lost_u emin prec V epse tiny 0 x = lost_l emin prec epse tiny x).
  { unfold lost_u, lost_l, etau. now rewrite Rmult_0_l, Rmult_0_l, Rplus_0_r. }
  assert (U1 : up 0 1 = 1) by (unfold up; simpl; ring).
  cbv zeta in T. rewrite LU, U1, Rmult_1_r, eps_is, tiny_is in T.
  pose proof (kappa_small 0) as K0. pose proof (kappa_small 1) as K1.
  pose proof dust_row as HD. pose proof lost_small as HL.
  set (Kl := kappa_of 0%nat) in *. set (Ku := kappa_of 1%nat) in *.
  set (du := INR n * (dust epse tiny (worst_c x) * up eps (budget x))) in *.
  set (ls := lost_l emin prec epse tiny x) in *. set (e := eps) in *. set (t := tiny) in *.
  destruct T as (_ & _ & T); [lra|]. fold o in T.
  set (E := ((Kl + Ku) * V + V * (du + ls) + (V * du + ls)) / (1 - Kl - (du + ls))) in *.
  assert (HEb : E <= 1050 * e * V + 6000000 * t).
  { unfold E. apply le_div_l; [lra|].
    assert (A1 : (Kl + Ku) * V <= 1042 * e * V) by (apply Rmult_le_compat_r; lra).
    assert (A2 : (du + ls + du) * V <= e * V) by (apply Rmult_le_compat_r; lra).
    assert (A3 : 0 <= e * V) by (apply Rmult_le_pos; lra).
    assert ((1050 * e * V + 6000000 * t) * (9999 / 10000)
      <= (1050 * e * V + 6000000 * t) * (1 - Kl - (du + ls))) by (apply Rmult_le_compat_l; lra).
    lra. }
  replace (bpow radix2 (emin + 24)) with (33554432 * t).
  2:{ unfold t. replace 33554432 with (bpow radix2 25) by (simpl; lra). rewrite <- bpow_plus. f_equal. lia. }
  assert (A3 : 0 <= e * V) by (apply Rmult_le_pos; lra).
  assert (E * (1 + e) <= (1050 * e * V + 6000000 * t) * (1 + / 16777216)).
  { apply Rle_trans with ((1050 * e * V + 6000000 * t) * (1 + e));
      [apply Rmult_le_compat_r|apply Rmult_le_compat_l]; lra. }
  lra.
Qed.
End Row.
End Capstone.

(* IEEE numbers, any float function that computes such an exponential. *)
Section Ieee.
Variables prec emax : Z.
Context (Hp : Prec_gt_0 prec) (He : Prec_lt_emax prec emax).
Notation emin := (3 - emax - prec)%Z.
Notation bf := (binary_float prec emax).
Notation F := (generic_format radix2 (FLT_exp emin prec)).
Hypothesis Hprec : (24 <= prec)%Z.
Hypothesis Hemax : (prec + 104 <= emax)%Z.
Variables (bexp : bf -> bf) (fexp : R -> R).
Hypothesis fexp_F : forall x, F (fexp x).
Hypothesis fexp_0 : fexp 0 = 1.
Hypothesis fexp_01 : forall x, F x -> x <= 0 -> 0 <= fexp x <= 1.
Hypothesis fexp_error : forall x, F x -> x <= 0 -> exists e h,
  Rabs e <= 23 * bpow radix2 (- prec - 4) /\ Rabs h <= bpow radix2 (emin - 1) /\
  fexp x = exp x * (1 + e) + h.
Hypothesis bexp_is : forall y, is_finite y = true -> B2R y <= 0 ->
  is_finite (bexp y) = true /\ B2R (bexp y) = fexp (B2R y).
Theorem attention_ieee (x : bprog prec emax) V :
  okrow prec emax (emax - 2) (emax - prec - 4) x ->
  (forall e, In e (keys (rprog prec emax x)) -> Rabs (snd e) <= V) -> 0 <= V ->
  (Z.of_nat (budget (rprog prec emax x)) <= 320)%Z ->
  (Z.of_nat (worst_c (rprog prec emax x)) <= 128)%Z ->
  (Z.of_nat (products (rprog prec emax x)) <= 4194304)%Z ->
  (Z.of_nat (length (keys (rprog prec emax x))) <= 1048576)%Z ->
  let L := keys (rprog prec emax x) in let o := bout prec emax Hp He bexp x in
  is_finite o = true /\
  Rabs (B2R o - sumf (fun e : elt => exp (fst e) * snd e) L / sumf (fun e : elt => exp (fst e)) L)
    <= 1100 * bpow radix2 (- prec) * V + bpow radix2 (emin + 24).
Proof.
  intros HO HV V0 Hb Hc HN Hn L o.
  assert (Hn' : INR (length L) <= bpow radix2 prec).
  { eapply Rle_trans; [apply (INR_le_IZR _ _ Hn)|].
    apply Rle_trans with (bpow radix2 24); [simpl; lra|apply bpow_le; lia]. }
  destruct (out_is prec emax Hp He bexp fexp bexp_is fexp_F fexp_0 fexp_01 (emax - 2) (emax - prec - 4)
    ltac:(lia) ltac:(lia) x HO Hn') as [O1 O2].
  split; [exact O1|]. unfold o. rewrite O2.
  assert (HL : L <> []).
  { destruct (fm_attained emin prec rne fexp same (rprog prec emax x)) as (e & Hin & _).
    fold L in Hin. intros E. now rewrite E in Hin. }
  rewrite <- (softmax_ratio (fm emin prec rne fexp same (rprog prec emax x)) L HL).
  apply (attention_row prec emin Hprec ltac:(lia) fexp fexp_F fexp_0 fexp_error (rprog prec emax x) V); auto.
  intros e Hin. destruct (okrow_ok prec emax (emax - 2) (emax - prec - 4) x HO) as [H1 _].
  destruct (H1 e Hin) as (h1 & h2 & _). auto.
Qed.
End Ieee.
