(* The twin's exponentials on IEEE numbers are exp32 and exp64: finite, and the same values.  So the
   capstones of Capstone.v hold for the program itself.
   SPDX-License-Identifier: MIT *)
From Coq Require Import Reals ZArith List Lra Lia Psatz.
From Flocq Require Import Core BinarySingleNaN.
From Gappa Require Import Gappa_library Gappa_tactic.
Require Import Sums Formats Range Ieee ExpScale Constants Capstone.
Require Exp Exp32 Exp64 Twin.
Import ListNotations.
Local Open Scope R_scope.

Section Width.
Variables prec emax : Z.
Context (Hp : Prec_gt_0 prec) (He : Prec_lt_emax prec emax).
Notation emin := (3 - emax - prec)%Z.
Notation bf := (binary_float prec emax).
Notation is := (is prec emax).
Notation number := (Twin.number prec emax Hp He).
Notation power := (Twin.power prec emax Hp He).
Notation whole := (Twin.whole prec emax).
Notation fma := (bfma prec emax Hp He).
Notation mul := (bmul prec emax Hp He).
Notation F := (generic_format radix2 (FLT_exp emin prec)).
Notation rnd := (round radix2 (FLT_exp emin prec) rndNE).
Hypothesis Hprec : (24 <= prec)%Z.
Hypothesis Hemax : (prec + 1 < emax)%Z.
Lemma emin_le : (emin <= 0)%Z. Proof. lia. Qed.

(* ---- constants ---- *)
Variables l2e nhi nlo shift least back first : Z * Z.
Variable rest : list (Z * Z).
Notation num c := (number (fst c) (snd c)).
Definition value (c : Z * Z) := IZR (fst c) * bpow radix2 (snd c).
Definition held (c : Z * Z) := (Z.abs (fst c) < 2 ^ prec /\ emin <= snd c <= emax - prec - 1)%Z.
Lemma F_held c : held c -> F (value c).
Proof.
  intros [Hm Hc]. apply generic_format_FLT.
  exists (Defs.Float radix2 (fst c) (snd c)); [reflexivity|exact Hm|exact (proj1 Hc)].
Qed.
Lemma is_held c : held c -> is (num c) (value c).
Proof.
  intros H. pose proof (F_held c H) as Fc. destruct H as [Hm Hc].
  pose proof (binary_normalize_correct prec emax Hp He mode_NE (fst c) (snd c) false) as C.
  cbv zeta in C. change (SpecFloat.fexp prec emax) with (FLT_exp emin prec) in C.
  change (Defs.F2R (Defs.Float radix2 (fst c) (snd c))) with (value c) in C.
  rewrite (round_generic radix2 (FLT_exp emin prec) (round_mode mode_NE)) in C by exact Fc.
  rewrite Rlt_bool_true in C.
  - destruct C as (C1 & C2 & _). split; auto.
  - unfold value. rewrite Rabs_mult, (Rabs_pos_eq (bpow _ _)) by apply bpow_ge_0.
    apply Rlt_le_trans with (bpow radix2 prec * bpow radix2 (snd c)).
    + apply Rmult_lt_compat_r; [apply bpow_gt_0|]. rewrite <- abs_IZR.
      rewrite <- IZR_Zpower by lia. now apply IZR_lt.
    + rewrite <- bpow_plus. apply bpow_le. lia.
Qed.
Lemma held_power e : (emin <= e <= emax - prec - 1)%Z -> held (1, e)%Z.
Proof.
  split; auto. simpl. apply Z.lt_le_trans with (2 ^ 24)%Z; [lia|]. apply Z.pow_le_mono_r; lia.
Qed.
Lemma is_power e : (emin <= e <= emax - prec - 1)%Z -> is (power e) (bpow radix2 e).
Proof.
  intros H. rewrite <- (Rmult_1_l (bpow radix2 e)). exact (is_held (1, e)%Z (held_power e H)).
Qed.
Lemma is_one1 : is (number 1 0) 1. Proof. apply (is_power 0). lia. Qed.
Lemma F_power e : (emin <= e <= emax - prec - 1)%Z -> F (bpow radix2 e).
Proof.
  intros H. rewrite <- (Rmult_1_l (bpow radix2 e)). exact (F_held (1, e)%Z (held_power e H)).
Qed.
Lemma fl_le r e : (emin <= e <= emax - prec - 1)%Z -> Rabs r <= bpow radix2 e ->
  Rabs (rnd r) <= bpow radix2 e.
Proof.
  intros H Hr. apply (abs_fl_le emin prec (fun x => negb (Z.even x)) Hp); auto. now apply F_power.
Qed.
Lemma is_fma1 x y z a b c k : is x a -> is y b -> is z c -> (0 <= k < emax)%Z ->
  Rabs (a * b + c) <= bpow radix2 k -> is (fma x y z) (rnd (a * b + c)).
Proof. intros. apply (is_fma prec emax Hp He); auto. now apply (fits_in emax _ k). Qed.

(* ---- what is asked of the constants, and of the program over the real numbers ---- *)
Variable low : Z.
Hypothesis held_all : held l2e /\ held nhi /\ held nlo /\ held shift /\ held least /\ held first.
Hypothesis held_rest : List.Forall (fun c => held c /\ Rabs (value c) <= 1) rest.
Hypothesis size_first : Rabs (value first) <= 1.
Hypothesis size_red : Rabs (value l2e) <= 2 /\ Rabs (value nhi) <= 1 /\ Rabs (value nlo) <= 1.
Hypothesis whole_shift : snd shift = 0%Z.
Hypothesis least_rng : -1024 <= value least <= 0.
Hypothesis low_rng : (-2048 <= low)%Z.
Hypothesis size_emax : (prec + 14 < emax)%Z.
Hypothesis back_rng : (emin <= snd back <= 0 /\ - snd back + 2 <= emax - prec - 1 /\ emin <= low - snd back)%Z.
Notation SHIFT := (IZR (fst shift)).
Notation k_of := (Exp.k_of emin prec (value l2e) SHIFT).
Notation n_of := (Exp.n_of emin prec (value l2e) SHIFT).
Notation r_of := (Exp.r_of emin prec (value l2e) (value nhi) (value nlo) SHIFT).
Notation y_of := (Exp.y_of emin prec (value first) (map value rest)).
Notation core := (Exp.core emin prec (value l2e) (value nhi) (value nlo) SHIFT (value first)
  (map value rest) (- snd back)).
Notation computed := (Exp.computed emin prec (value l2e) (value nhi) (value nlo) SHIFT (value least)
  (value first) (map value rest) (- snd back)).
Hypothesis reduced : forall x, F x -> value least <= x <= 0 ->
  exists z, n_of x = IZR z /\ (low <= z <= 0)%Z /\ Rabs (r_of x) <= / 2.
Hypothesis k_range : forall x, value least <= x <= 0 ->
  bpow radix2 (prec - 1) <= k_of x < bpow radix2 prec.

(* ---- the polynomial: a Horner step keeps its size ---- *)
Lemma step q r c a b d : is q a -> Rabs a <= 4 -> is r b -> Rabs b <= / 2 -> is c d -> Rabs d <= 1 ->
  is (fma q r c) (rnd (a * b + d)) /\ Rabs (rnd (a * b + d)) <= 4.
Proof.
  intros Hq Ha Hr Hb Hc Hd. assert (H : Rabs (a * b + d) <= 3).
  { apply Rle_trans with (4 * / 2 + 1); [|lra]. apply Rabs_plus_le; auto. now apply Rabs_mult_le. }
  split.
  - apply (is_fma1 _ _ _ _ _ _ 2); auto; [lia|]. simpl. lra.
  - apply (fl_le _ 2); [lia|simpl; lra].
Qed.
Lemma horner_is r b : is r b -> Rabs b <= / 2 -> forall L q a, is q a -> Rabs a <= 4 ->
  List.Forall (fun c => held c /\ Rabs (value c) <= 1) L ->
  let a' := fold_left (fun q c => rnd (q * b + c)) (map value L) a in
  is (fold_left (fun q c => fma q r (num c)) L q) a' /\ Rabs a' <= 4.
Proof.
  intros Hr Hb. induction L as [|c L IH]; intros q a Hq Ha HL; [split; auto|].
  inversion HL as [|? ? [Hc Hc1] HL']; subst.
  destruct (step q r (num c) a b (value c) Hq Ha Hr Hb (is_held c Hc) Hc1) as [Hs Hs4].
  exact (IH _ _ Hs Hs4 HL').
Qed.
Lemma is_y r b : is r b -> Rabs b <= / 2 ->
  is (fma (fma (Twin.horner prec emax Hp He first rest r) r (number 1 0)) r (number 1 0)) (y_of b) /\
  Rabs (y_of b) <= 4.
Proof.
  intros Hr Hb. assert (C : Rabs 1 <= 1) by (rewrite Rabs_R1; lra).
  destruct held_all as (_ & _ & _ & _ & _ & Hf).
  destruct (horner_is r b Hr Hb rest _ _ (is_held first Hf) ltac:(lra) held_rest) as [q2 b2].
  destruct (step _ _ _ _ _ _ q2 b2 Hr Hb is_one1 C) as [q1 b1].
  exact (step _ _ _ _ _ _ q1 b1 Hr Hb is_one1 C).
Qed.

(* ---- n, from the low bits of k ---- *)
Lemma whole_is k r : is k r -> bpow radix2 (prec - 1) <= r < bpow radix2 prec -> r = IZR (whole k).
Proof.
  intros [Hf Hv] Hr. assert (0 < bpow radix2 (prec - 1)) by apply bpow_gt_0.
  destruct k as [s|s| |s m e Hb]; try discriminate; [simpl in Hv; lra|].
  pose proof (canonical_bounded prec emax s m e Hb) as C. unfold canonical in C. simpl Defs.Fexp in C.
  change (Defs.F2R (Defs.Float radix2 (SpecFloat.cond_Zopp s (Zpos m)) e))
    with (B2R (B754_finite s m e Hb : bf)) in C.
  rewrite Hv in C. unfold cexp in C. change (SpecFloat.fexp prec emax) with (FLT_exp emin prec) in C.
  rewrite (mag_unique_pos radix2 r prec) in C by auto.
  assert (E : e = 0%Z) by (rewrite C; unfold FLT_exp; lia). clear C. subst e. rewrite <- Hv.
  cbn [B2R Twin.whole]. unfold Defs.F2R. cbn [Defs.Fnum Defs.Fexp bpow]. rewrite Rmult_1_r. f_equal.
  destruct s; cbn [SpecFloat.cond_Zopp]; rewrite Z.pow_0_r, Z.mul_1_r; reflexivity.
Qed.
Lemma is_shift : is (num shift) SHIFT.
Proof.
  destruct held_all as (_ & _ & _ & Hs & _). pose proof (is_held shift Hs) as H. unfold value in H.
  replace (bpow radix2 (snd shift)) with 1 in H by now rewrite whole_shift.
  now rewrite Rmult_1_r in H.
Qed.
(* At 0 the rounded k is the shift itself. *)
Lemma shift_is : k_of 0 = SHIFT.
Proof.
  unfold Exp.k_of. rewrite Rmult_0_l, Rplus_0_l. apply round_generic; [typeclasses eauto|].
  exact (is_F prec emax _ _ is_shift).
Qed.
Lemma n_whole x k z : is k (k_of x) -> value least <= x <= 0 -> n_of x = IZR z ->
  (whole k - whole (num shift) = z)%Z.
Proof.
  intros Hk Hx En. pose proof (k_range x Hx) as Hr.
  pose proof (whole_is k (k_of x) Hk Hr) as Ek.
  assert (H0 : value least <= 0 <= 0) by lra.
  pose proof (k_range 0 H0) as Hs. rewrite shift_is in Hs.
  pose proof (whole_is (num shift) SHIFT is_shift Hs) as Es.
  apply eq_IZR. rewrite minus_IZR, <- Ek, <- Es, <- En. unfold Exp.n_of. symmetry.
  apply round_generic; [typeclasses eauto|].
  rewrite Ek, Es, <- minus_IZR. apply generic_format_FLT.
  exists (Defs.Float radix2 (whole k - whole (num shift)) 0); cbn [Defs.Fnum Defs.Fexp].
  - unfold Defs.F2R. simpl. ring.
  - apply lt_IZR. rewrite (IZR_Zpower radix2) by lia. rewrite abs_IZR, minus_IZR, <- Ek, <- Es.
    pose proof (bpow_gt_0 radix2 (prec - 1)). apply Rabs_def1; lra.
  - apply emin_le.
Qed.

Definition k_twin (x : bf) := fma x (num l2e) (num shift).
Definition n_twin (x : bf) := bsub prec emax Hp He (k_twin x) (num shift).
Definition r_twin (x : bf) := fma (n_twin x) (num nlo) (fma (n_twin x) (num nhi) x).
Lemma bpow_12 : bpow radix2 12 = 4096. Proof. simpl. lra. Qed.
Lemma bpow_13 : bpow radix2 13 = 8192. Proof. simpl. lra. Qed.
Lemma parts_is x v : is x v -> value least <= v <= 0 ->
  is (k_twin x) (k_of v) /\ is (r_twin x) (r_of v).
Proof.
  intros Hx Hv. assert (Fv : F v) by (apply (is_F prec emax x); auto).
  destruct held_all as (H1 & H2 & H3 & H4 & _). destruct size_red as (s1 & s2 & s3).
  pose proof is_shift as Hs. pose proof (k_range v Hv) as Kr.
  assert (H0 : value least <= 0 <= 0) by lra.
  pose proof (k_range 0 H0) as Sr. rewrite shift_is in Sr.
  assert (P : bpow radix2 13 <= bpow radix2 prec) by (apply bpow_le; lia). rewrite bpow_13 in P.
  assert (P1 : bpow radix2 (prec + 1) = 2 * bpow radix2 prec) by (rewrite bpow_plus; simpl (bpow radix2 1); lra).
  pose proof (bpow_gt_0 radix2 (prec - 1)) as P0.
  assert (Av : Rabs v <= 1024) by (apply Rabs_le; lra).
  assert (Hk : is (k_twin x) (k_of v)).
  { apply (is_fma1 _ _ _ _ _ _ (prec + 1)); auto using is_held; [lia|]. rewrite P1.
    apply Rle_trans with (1024 * 2 + bpow radix2 prec); [|lra].
    apply Rabs_plus_le; [now apply Rabs_mult_le|apply Rabs_le; lra]. }
  assert (Hn : is (n_twin x) (n_of v)).
  { apply (is_sub prec emax Hp He); auto. apply (fits_in emax _ (prec + 1)); [lia|]. rewrite P1.
    apply Rabs_le. lra. }
  destruct (reduced v Fv Hv) as (z & En & Hz & Hr).
  assert (Bz : Rabs (n_of v) <= 2048).
  { assert (-2048 <= IZR z <= 0) by (split; apply IZR_le; lia). rewrite En. apply Rabs_le. lra. }
  assert (Bi : Rabs (n_of v * value nhi + v) <= bpow radix2 12).
  { rewrite bpow_12. apply Rle_trans with (2048 * 1 + 1024); [|lra].
    apply Rabs_plus_le; auto. now apply Rabs_mult_le. }
  assert (Hi : is (fma (n_twin x) (num nhi) x) (rnd (n_of v * value nhi + v))).
  { apply (is_fma1 _ _ _ _ _ _ 12); auto using is_held. lia. }
  assert (Hr' : is (r_twin x) (r_of v)).
  { apply (is_fma1 _ _ _ _ _ _ 13); auto using is_held; [lia|].
    apply Rle_trans with (2048 * 1 + bpow radix2 12); [|rewrite bpow_12, bpow_13; lra].
    apply Rabs_plus_le; [now apply Rabs_mult_le|apply fl_le; auto; lia]. }
  split; auto.
Qed.
Lemma core_is x v : is x v -> value least <= v <= 0 -> forall y, is y (y_of (r_of v)) ->
  Rabs (y_of (r_of v)) <= 4 ->
  is (mul (mul y (power (whole (k_twin x) - whole (num shift) - snd back))) (power (snd back))) (core v).
Proof.
  intros Hx Hv y Hy By. assert (Fv : F v) by (apply (is_F prec emax x); auto).
  destruct (parts_is x v Hx Hv) as [Hk _].
  destruct (reduced v Fv Hv) as (z & En & Hz & _).
  rewrite (n_whole v (k_twin x) z Hk Hv En). unfold Exp.core. rewrite En, Ztrunc_IZR, Z.opp_involutive.
  change (z + - snd back)%Z with (z - snd back)%Z.
  set (w := y_of (r_of v)) in *. set (b := snd back) in *.
  assert (Hq : is (power (z - b)) (bpow radix2 (z - b))) by (apply is_power; lia).
  assert (Hb : is (power b) (bpow radix2 b)) by (apply is_power; lia).
  assert (B1 : Rabs (w * bpow radix2 (z - b)) <= bpow radix2 (2 + - b)).
  { rewrite bpow_plus. apply Rabs_mult_le; [exact By|].
    rewrite Rabs_pos_eq by apply bpow_ge_0. apply bpow_le. lia. }
  assert (B2 : Rabs (rnd (w * bpow radix2 (z - b))) <= bpow radix2 (2 + - b)) by (apply fl_le; auto; lia).
  apply (is_mul prec emax Hp He); auto.
  - apply (is_mul prec emax Hp He); auto. apply (fits_in emax _ (2 + - b)); auto. lia.
  - apply (fits_in emax _ 2); [lia|]. replace (bpow radix2 2) with (bpow radix2 (2 + - b + b)) by (f_equal; lia).
    rewrite bpow_plus. apply Rabs_mult_le; auto. rewrite Rabs_pos_eq by apply bpow_ge_0. lra.
Qed.

(* The twin's exponential, on every finite x <= 0. *)
Theorem twin_is (x : bf) : is_finite x = true -> B2R x <= 0 ->
  is (Twin.exp prec emax Hp He l2e nhi nlo shift least back first rest x) (computed (B2R x)).
Proof.
  intros Hf Hx. unfold Twin.exp, Exp.computed.
  destruct held_all as (_ & _ & _ & _ & Hle & _). apply is_held in Hle.
  set (x' := if Twin.less _ _ x _ then _ else x).
  set (v' := if Rlt_dec (B2R x) (value least) then value least else B2R x).
  assert (H : is x' v' /\ value least <= v' <= 0).
  { unfold x', v', Twin.less. destruct Hle as [h1 h2].
    rewrite (Bcompare_correct prec emax x _ Hf h1), h2.
    destruct (Rcompare_spec (B2R x) (value least)) as [C|C|C]; destruct Rlt_dec; try (exfalso; lra).
    - split; [split; [exact h1|exact h2]|lra].
    - split; [split; auto|lra].
    - split; [split; auto|lra]. }
  destruct H as [Hx' Hv'].
  assert (Fv : F v') by (apply (is_F prec emax x'); auto).
  destruct (reduced v' Fv Hv') as (_ & _ & _ & Hr).
  destruct (parts_is x' v' Hx' Hv') as [Hk Hr3].
  destruct (is_y _ _ Hr3 Hr) as [Hy By].
  pose proof (core_is x' v' Hx' Hv' _ Hy By) as C. cbv zeta.
  destruct Hk as [Fk _]. unfold r_twin, n_twin, k_twin in *.
  revert C Fk. match goal with |- _ -> is_finite ?k = true -> _ =>
    destruct k; intros C Fk; try discriminate; exact C end.
Qed.
End Width.

(* ---- binary32 ---- *)
Notation b32 := (binary_float 24 128).
Lemma k_range32 x : -104 <= x <= 0 -> bpow radix2 23 <= Exp32.k_of x < bpow radix2 24.
Proof.
  intros Hx. assert (12582950 <= Exp32.k_of x <= 12583103); [|simpl; lra].
  unfold Exp32.k_of, Exp.k_of. rewrite f2R. simpl Fnum. gappa.
Qed.
Ltac held_now := repeat apply conj; simpl; lia.
Ltac sized := unfold value; simpl; apply Rabs_le; lra.
(* twin_is at one width: what it asks, from the constants' values, red_spec and k_range. *)
Ltac twin Hp He least_n red_spec k_range :=
  apply (twin_is _ _ Hp He ltac:(lia) ltac:(lia)) with (low := least_n);
  try lia; try reflexivity;
  [ held_now
  | cbn [map]; repeat (apply List.Forall_cons; [split; [held_now|sized]|]); apply List.Forall_nil
  | sized
  | split; [|split]; sized
  | unfold value; simpl; lra
  | simpl; lia
  | intros v Fv Hv; destruct (red_spec v Fv) as (z & h1 & h2 & h3 & _);
    [ revert Hv; unfold value; simpl; lra
    | exists z; split; [exact h1|]; split; [exact h2|]; eapply Rle_trans; [exact h3|lra] ]
  | intros v Hv; apply k_range; revert Hv; unfold value; simpl; lra ].
Theorem twin_exp32 (x : b32) : is_finite x = true -> B2R x <= 0 ->
  is_finite (Twin.exp32 x) = true /\ B2R (Twin.exp32 x) = Exp32.exp32 (B2R x).
Proof. twin Twin.p24 Twin.p128 (-151)%Z Exp32.red_spec k_range32. Qed.

(* ---- binary64 ---- *)
Notation b64 := (binary_float 53 1024).
Lemma k_range64 x : -746 <= x <= 0 -> bpow radix2 52 <= Exp64.k_of x < bpow radix2 53.
Proof.
  intros Hx. assert (6755399441056288 <= Exp64.k_of x <= 6755399441057367); [|simpl; lra].
  unfold Exp64.k_of, Exp.k_of. rewrite f2R. simpl Fnum. gappa.
Qed.
Theorem twin_exp64 (x : b64) : is_finite x = true -> B2R x <= 0 ->
  is_finite (Twin.exp64 x) = true /\ B2R (Twin.exp64 x) = Exp64.exp64 (B2R x).
Proof. twin Twin.p53 Twin.p1024 (-1077)%Z Exp64.red_spec k_range64. Qed.

(* ---- the capstones for the program itself: nothing is asked of the exponential ---- *)
Section Shipped.
Variables (prec emax : Z) (x : bprog prec emax).
Notation L := (keys (rprog prec emax x)).
(* At most 320 roundings and 128 exponentials a key, 2^20 keys. *)
Definition counted := (Z.of_nat (budget (rprog prec emax x)) <= 320)%Z /\
  (Z.of_nat (worst_c (rprog prec emax x)) <= 128)%Z /\
  (Z.of_nat (products (rprog prec emax x)) <= 4194304)%Z /\ (Z.of_nat (length L) <= 1048576)%Z.
Definition average := sumf (fun e : elt => exp (fst e) * snd e) L / sumf (fun e : elt => exp (fst e)) L.
Definition values_within V := forall e, In e L -> Rabs (snd e) <= V.
End Shipped.
Lemma weaker o a b c V b' c' : 0 <= V -> Rabs (o - a) <= b * V + c -> b <= b' -> c <= c' ->
  Rabs (o - a) <= b' * V + c'.
Proof. intros HV H Hb Hc. assert (b * V <= b' * V) by now apply Rmult_le_compat_r. lra. Qed.
Theorem attention_binary32_shipped (x : bprog 24 128) V :
  okrow 24 128 126 100 x -> counted 24 128 x -> values_within 24 128 x V -> 0 <= V ->
  let o := bout 24 128 Twin.p24 Twin.p128 Twin.exp32 x in
  is_finite o = true /\ Rabs (B2R o - average 24 128 x) <= 7 / 100000 * V + / 10 ^ 36.
Proof.
  intros HO (H1 & H2 & H3 & H4) HV V0.
  destruct (attention_ieee 24 128 Twin.p24 Twin.p128 ltac:(lia) ltac:(lia) Twin.exp32 Exp32.exp32
    Exp32.exp32_F Exp32.exp32_0 Exp32.exp32_01 Exp32.exp32_error twin_exp32 x V HO HV V0 H1 H2 H3 H4)
    as [Hf He].
  split; [exact Hf|]. apply (weaker _ _ _ _ _ _ _ V0 He); simpl; lra.
Qed.
Theorem attention_binary64_shipped (x : bprog 53 1024) V :
  okrow 53 1024 1022 967 x -> counted 53 1024 x -> values_within 53 1024 x V -> 0 <= V ->
  let o := bout 53 1024 Twin.p53 Twin.p1024 Twin.exp64 x in
  is_finite o = true /\ Rabs (B2R o - average 53 1024 x) <= 13 / 10 ^ 14 * V + / 10 ^ 300.
Proof.
  intros HO (H1 & H2 & H3 & H4) HV V0.
  destruct (attention_ieee 53 1024 Twin.p53 Twin.p1024 ltac:(lia) ltac:(lia) Twin.exp64 Exp64.exp64
    Exp64.exp64_F Exp64.exp64_0 Exp64.exp64_01 Exp64.exp64_error twin_exp64 x V HO HV V0 H1 H2 H3 H4)
    as [Hf He].
  split; [exact Hf|]. apply (weaker _ _ _ _ _ _ _ V0 He); simpl; lra.
Qed.
