(* The twin's exponential on IEEE binary32 numbers is exp32: finite, and the same value.  So the
   capstone of Binary32.v holds for the program itself.
   SPDX-License-Identifier: MIT *)
From Coq Require Import Reals ZArith List Lra Lia Psatz.
From Flocq Require Import Core BinarySingleNaN.
From Gappa Require Import Gappa_library Gappa_tactic.
Require Import Sums Formats Range Ieee ExpScale Constants Exp32 Binary32.
Require Twin.
Import ListNotations.
Local Open Scope R_scope.

Notation is := (is 24 128).
Notation number := (Twin.number 24 128 Twin.p24 Twin.p128).
Notation fma := (bfma 24 128 Twin.p24 Twin.p128).

Lemma F_small m e : (Z.abs m < 2 ^ 24)%Z -> (-149 <= e)%Z -> F (IZR m * bpow radix2 e).
Proof. intros Hm He. apply generic_format_FLT. exists (Defs.Float radix2 m e); simpl; auto. Qed.
Lemma is_number m e : (Z.abs m < 2 ^ 24)%Z -> (-149 <= e <= 103)%Z ->
  is (number m e) (IZR m * bpow radix2 e).
Proof.
  intros Hm He.
  pose proof (binary_normalize_correct 24 128 Twin.p24 Twin.p128 mode_NE m e false) as C.
  cbv zeta in C. change (SpecFloat.fexp 24 128) with (FLT_exp (-149) 24) in C.
  change (Defs.F2R (Defs.Float radix2 m e)) with (IZR m * bpow radix2 e) in C.
  rewrite (round_generic radix2 (FLT_exp (-149) 24) (round_mode mode_NE)) in C
    by (apply F_small; auto; lia).
  rewrite Rlt_bool_true in C.
  - destruct C as (C1 & C2 & _). split; auto.
  - rewrite Rabs_mult, (Rabs_pos_eq (bpow _ _)) by apply bpow_ge_0.
    apply Rlt_le_trans with (bpow radix2 24 * bpow radix2 e).
    + apply Rmult_lt_compat_r; [apply bpow_gt_0|]. rewrite <- abs_IZR.
      apply IZR_lt in Hm. exact Hm.
    + rewrite <- bpow_plus. apply bpow_le. lia.
Qed.
Lemma is_const (c : float2) : (Z.abs (Fnum c) < 2 ^ 24)%Z -> (-149 <= Fexp c <= 103)%Z ->
  is (number (fst (Twin.pair c)) (snd (Twin.pair c))) (float2R c).
Proof. intros. now apply is_number. Qed.
Lemma is_one1 : is (number 1 0) 1.
Proof. replace 1 with (IZR 1 * bpow radix2 0) by (simpl; lra). apply is_number; simpl; lia. Qed.

Lemma fits_small r k : (0 <= k < 128)%Z -> Rabs r <= bpow radix2 k -> fits 128 r.
Proof. intros Hk Hr. exists k. auto. Qed.
Lemma is_fma32 x y z a b c k : is x a -> is y b -> is z c -> (0 <= k < 128)%Z ->
  Rabs (a * b + c) <= bpow radix2 k -> is (fma x y z) (rnd (a * b + c)).
Proof.
  intros. apply (is_fma 24 128 Twin.p24 Twin.p128); auto. now apply (fits_small _ k).
Qed.

(* One Horner step keeps its size. *)
Lemma F_4 : F 4.
Proof. replace 4 with (IZR 1 * bpow radix2 2) by (simpl; lra). apply F_small; simpl; lia. Qed.
Lemma step q r c a b d : is q a -> Rabs a <= 4 -> is r b -> Rabs b <= / 2 -> is c d -> Rabs d <= 1 ->
  is (fma q r c) (rnd (a * b + d)) /\ Rabs (rnd (a * b + d)) <= 4.
Proof.
  intros Hq Ha Hr Hb Hc Hd. assert (H : Rabs (a * b + d) <= 3).
  { apply Rle_trans with (4 * / 2 + 1); [|lra]. apply Rabs_plus_le; auto. now apply Rabs_mult_le. }
  split.
  - apply (is_fma32 _ _ _ _ _ _ 2); auto; [lia|]. simpl. lra.
  - apply (abs_fl_le (-149) 24 (fun x => negb (Z.even x)) eq_refl); [exact F_4|lra].
Qed.
Lemma is_y r b : is r b -> Rabs b <= / 2 ->
  is (fma (fma (Twin.horner 24 128 Twin.p24 Twin.p128 (Twin.pair c6_32)
    (map Twin.pair [c5_32; c4_32; c3_32; c2_32]) r) r (number 1 0)) r (number 1 0)) (y_of b) /\
  Rabs (y_of b) <= 4.
Proof.
  intros Hr Hb. unfold Twin.horner. cbn [map fold_left].
  assert (C : Rabs 1 <= 1) by (rewrite Rabs_R1; lra).
  unfold y_of. cbv zeta.
  destruct (step _ _ _ _ _ _ (is_const c6_32 ltac:(simpl; lia) ltac:(simpl; lia))
    ltac:(rewrite f2R; apply Rabs_le; simpl; lra) Hr Hb
    (is_const c5_32 ltac:(simpl; lia) ltac:(simpl; lia)) ltac:(rewrite f2R; apply Rabs_le; simpl; lra)) as [q5 b5].
  destruct (step _ _ _ _ _ _ q5 b5 Hr Hb
    (is_const c4_32 ltac:(simpl; lia) ltac:(simpl; lia)) ltac:(rewrite f2R; apply Rabs_le; simpl; lra)) as [q4 b4].
  destruct (step _ _ _ _ _ _ q4 b4 Hr Hb
    (is_const c3_32 ltac:(simpl; lia) ltac:(simpl; lia)) ltac:(rewrite f2R; apply Rabs_le; simpl; lra)) as [q3 b3].
  destruct (step _ _ _ _ _ _ q3 b3 Hr Hb
    (is_const c2_32 ltac:(simpl; lia) ltac:(simpl; lia)) ltac:(rewrite f2R; apply Rabs_le; simpl; lra)) as [q2 b2].
  destruct (step _ _ _ _ _ _ q2 b2 Hr Hb is_one1 C) as [q1 b1].
  destruct (step _ _ _ _ _ _ q1 b1 Hr Hb is_one1 C) as [q0 b0]. split; [exact q0|exact b0].
Qed.

(* ---- n, from the low bits of k ---- *)
Lemma k_range x : -104 <= x <= 0 -> 12582950 <= k_of x <= 12583103.
Proof. intros Hx. unfold k_of. rewrite f2R. simpl Fnum. gappa. Qed.
Lemma whole_is k r : is k r -> bpow radix2 23 <= r < bpow radix2 24 -> r = IZR (Twin.whole 24 128 k).
Proof.
  intros [Hf Hv] Hr. assert (0 < bpow radix2 23) by apply bpow_gt_0.
  destruct k as [s|s| |s m e Hb]; try discriminate; [simpl in Hv; lra|].
  pose proof (canonical_bounded 24 128 s m e Hb) as C. unfold canonical in C. simpl Defs.Fexp in C.
  change (Defs.F2R (Defs.Float radix2 (SpecFloat.cond_Zopp s (Zpos m)) e)) with (B2R (B754_finite s m e Hb : b32)) in C.
  rewrite Hv in C. unfold cexp in C. change (SpecFloat.fexp 24 128) with (FLT_exp (-149) 24) in C.
  rewrite (mag_unique_pos radix2 r 24) in C by (simpl (24 - 1)%Z; auto).
  assert (E : e = 0%Z) by (rewrite C; reflexivity). subst e. rewrite <- Hv.
  cbn [B2R Twin.whole]. unfold Defs.F2R. cbn [Defs.Fnum Defs.Fexp bpow]. rewrite Rmult_1_r. f_equal.
  destruct s; cbn [SpecFloat.cond_Zopp]; rewrite Z.pow_0_r, Z.mul_1_r; reflexivity.
Qed.
Lemma whole_shift : Twin.whole 24 128 (number 12583103 0) = 12583103%Z.
Proof. vm_compute. reflexivity. Qed.
Lemma n_whole x k z : is k (k_of x) -> -104 <= x <= 0 -> n_of x = IZR z ->
  (Twin.whole 24 128 k - Twin.whole 24 128 (number 12583103 0) = z)%Z.
Proof.
  intros Hk Hx En. pose proof (k_range x Hx) as Hr.
  assert (Ek : k_of x = IZR (Twin.whole 24 128 k)) by (apply (whole_is k); auto; simpl; lra).
  rewrite whole_shift. apply eq_IZR. rewrite <- En. unfold n_of. rewrite Ek in *. simpl Fnum.
  rewrite <- minus_IZR. symmetry. apply id_F.
  rewrite <- (Rmult_1_r (IZR _)). change 1 with (bpow radix2 0). apply F_small; [|lia].
  destruct Hr as [h1 h2]. apply le_IZR in h1, h2. lia.
Qed.

Definition k_twin (x : b32) := fma x (number (fst (Twin.pair L2E_32)) (snd (Twin.pair L2E_32)))
  (number (fst (Twin.pair SHIFT_32)) (snd (Twin.pair SHIFT_32))).
Definition n_twin (x : b32) := bsub 24 128 Twin.p24 Twin.p128 (k_twin x)
  (number (fst (Twin.pair SHIFT_32)) (snd (Twin.pair SHIFT_32))).
Definition r_twin (x : b32) := fma (n_twin x) (number (fst (Twin.pair NLO_32)) (snd (Twin.pair NLO_32)))
  (fma (n_twin x) (number (fst (Twin.pair NHI_32)) (snd (Twin.pair NHI_32))) x).
Lemma parts_is x v : is x v -> -104 <= v <= 0 -> is (k_twin x) (k_of v) /\ is (r_twin x) (r_of v).
Proof.
  intros Hx Hv. assert (Fv : F v) by (apply (is_F 24 128 x); auto).
  set (k := k_twin x). set (n := n_twin x). set (r := r_twin x).
  assert (Hs : is (number 12583103 0) (IZR (Fnum SHIFT_32))).
  { replace (IZR (Fnum SHIFT_32)) with (IZR 12583103 * bpow radix2 0) by (simpl; lra).
    apply is_number; simpl; lia. }
  assert (Hl : is (number 12102203 (-23)) L2E) by (apply is_number; simpl; lia).
  assert (Hk : is k (k_of v)).
  { apply (is_fma32 _ _ _ _ _ _ 24); auto; [lia|]. rewrite f2R. simpl. apply Rabs_le. lra. }
  pose proof (k_range v Hv) as Kr.
  assert (Hn : is n (n_of v)).
  { apply (is_sub 24 128 Twin.p24 Twin.p128); auto. apply (fits_small _ 8); [lia|].
    simpl. apply Rabs_le. lra. }
  destruct (red_spec v Fv Hv) as (z & En & Hz & Hr & _).
  assert (Bz : -151 <= IZR z <= 0) by (split; apply IZR_le; lia).
  assert (Hi : is (fma n (number (fst (Twin.pair NHI_32)) (snd (Twin.pair NHI_32))) x) (rnd (n_of v * NHI + v))).
  { apply (is_fma32 _ _ _ _ _ _ 9); auto; [apply is_number; simpl; lia|lia|].
    rewrite En, f2R. simpl. apply Rabs_le. nra. }
  assert (Bi : Rabs (rnd (n_of v * NHI + v)) <= 512).
  { apply (abs_fl_le (-149) 24 (fun x => negb (Z.even x)) eq_refl).
    - replace 512 with (IZR 1 * bpow radix2 9) by (simpl; lra). apply F_small; simpl; lia.
    - rewrite En, f2R. simpl. apply Rabs_le. nra. }
  assert (Hr' : is r (r_of v)).
  { apply (is_fma32 _ _ _ _ _ _ 10); auto; [apply is_number; simpl; lia|lia|].
    apply Rabs_rng in Bi. rewrite En at 1. rewrite f2R. simpl (bpow radix2 10). apply Rabs_le.
    set (q := rnd (n_of v * NHI + v)) in *. simpl. nra. }
  split; auto.
Qed.
Lemma core_is x v : is x v -> -104 <= v <= 0 -> forall y, is y (y_of (r_of v)) ->
  Rabs (y_of (r_of v)) <= 4 ->
  is (bmul 24 128 Twin.p24 Twin.p128 (bmul 24 128 Twin.p24 Twin.p128 y
    (Twin.power 24 128 Twin.p24 Twin.p128
      (Twin.whole 24 128 (k_twin x) - Twin.whole 24 128 (number 12583103 0) - -64)))
    (Twin.power 24 128 Twin.p24 Twin.p128 (-64))) (core v).
Proof.
  intros Hx Hv y Hy By. assert (Fv : F v) by (apply (is_F 24 128 x); auto).
  destruct (parts_is x v Hx Hv) as [Hk _].
  destruct (red_spec v Fv Hv) as (z & En & Hz & _).
  rewrite (n_whole v (k_twin x) z Hk Hv En). unfold core. rewrite En, Ztrunc_IZR. simpl Fexp.
  set (w := y_of (r_of v)) in *.
  assert (Hp : is (Twin.power 24 128 Twin.p24 Twin.p128 (z - -64)) (bpow radix2 (z - -64))).
  { rewrite <- (Rmult_1_l (bpow radix2 (z - -64))). apply is_number; simpl; lia. }
  assert (Hb : is (Twin.power 24 128 Twin.p24 Twin.p128 (-64)) (bpow radix2 (-64))).
  { rewrite <- (Rmult_1_l (bpow radix2 (-64))). apply is_number; simpl; lia. }
  assert (B1 : Rabs (w * bpow radix2 (z - -64)) <= bpow radix2 66).
  { change (bpow radix2 66) with (bpow radix2 (2 + 64)). rewrite bpow_plus.
    apply Rabs_mult_le; [exact By|]. rewrite Rabs_pos_eq by apply bpow_ge_0. apply bpow_le. lia. }
  assert (B2 : Rabs (rnd (w * bpow radix2 (z - -64))) <= bpow radix2 66).
  { apply (abs_fl_le (-149) 24 (fun x => negb (Z.even x)) eq_refl); auto.
    rewrite <- (Rmult_1_l (bpow radix2 66)). apply (F_small 1 66); simpl; lia. }
  apply (is_mul 24 128 Twin.p24 Twin.p128); auto.
  - apply (is_mul 24 128 Twin.p24 Twin.p128); auto. apply (fits_small _ 66); auto. lia.
  - apply (fits_small _ 2); [lia|]. change (bpow radix2 2) with (bpow radix2 (66 + -64)).
    rewrite bpow_plus. apply Rabs_mult_le; auto. rewrite Rabs_pos_eq by apply bpow_ge_0. lra.
Qed.

(* The twin's exponential, on every finite x <= 0. *)
Theorem twin_exp32 (x : b32) : is_finite x = true -> B2R x <= 0 ->
  is_finite (Twin.exp32 x) = true /\ B2R (Twin.exp32 x) = exp32 (B2R x).
Proof.
  intros Hf Hx. unfold Twin.exp32, Twin.exp, exp32.
  assert (Hle : is (number (fst (Twin.pair LEAST_32)) (snd (Twin.pair LEAST_32))) (float2R LEAST_32))
    by (apply is_number; simpl; lia).
  set (x' := if Twin.less _ _ x _ then _ else x).
  set (v' := if Rlt_dec (B2R x) (float2R LEAST_32) then float2R LEAST_32 else B2R x).
  assert (H : is x' v' /\ -104 <= v' <= 0).
  { unfold x', v', Twin.less. destruct Hle as [h1 h2].
    rewrite (Bcompare_correct 24 128 x _ Hf h1), h2. pose proof least_is as Le.
    destruct (Rcompare_spec (B2R x) (float2R LEAST_32)) as [C|C|C]; destruct Rlt_dec; try (exfalso; lra).
    - split; [split; [exact h1|exact h2]|rewrite least_is; lra].
    - split; [split; auto|lra].
    - split; [split; auto|lra]. }
  destruct H as [Hx' Hv'].
  assert (Fv : F v') by (apply (is_F 24 128 x'); auto).
  destruct (red_spec v' Fv Hv') as (_ & _ & _ & Hr & _).
  assert (Hr2 : Rabs (r_of v') <= / 2) by lra.
  destruct (parts_is x' v' Hx' Hv') as [Hk Hr3].
  destruct (is_y _ _ Hr3 Hr2) as [Hy By].
  pose proof (core_is x' v' Hx' Hv' _ Hy By) as C. cbv zeta.
  destruct Hk as [Fk _]. unfold r_twin, n_twin, k_twin, Twin.pair in *. cbn [fst snd] in *.
  revert C Fk. match goal with |- _ -> is_finite ?k = true -> _ =>
    destruct k; intros C Fk; try discriminate; exact C end.
Qed.
(* The capstone for the program itself: nothing is asked of the exponential. *)
Theorem attention_binary32_shipped (x : bprog 24 128) V :
  okrow 24 128 126 100 x ->
  (forall e, In e (keys (rprog 24 128 x)) -> Rabs (snd e) <= V) -> 0 <= V ->
  (Z.of_nat (budget (rprog 24 128 x)) <= 320)%Z ->
  (Z.of_nat (worst_c (rprog 24 128 x)) <= 128)%Z ->
  (Z.of_nat (products (rprog 24 128 x)) <= 4194304)%Z ->
  (Z.of_nat (length (keys (rprog 24 128 x))) <= 1048576)%Z ->
  let L := keys (rprog 24 128 x) in let o := bout 24 128 p24 p128 Twin.exp32 x in
  is_finite o = true /\
  Rabs (B2R o - sumf (fun e : elt => exp (fst e) * snd e) L / sumf (fun e : elt => exp (fst e)) L)
    <= 7 / 100000 * V + / 10 ^ 36.
Proof. apply attention_binary32. exact twin_exp32. Qed.
