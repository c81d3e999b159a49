(* The bound of ref/bound.c holds for whatever run returned: Lemmas 1, 3 and 4 of docs/bounds.md
   supply E, R, S and what underflows, key by key, and Bound.v does the rest.  Computed scores may
   differ from the exact ones; the average is the exact one.
   Standard library only.  SPDX-License-Identifier: MIT *)
From Coq Require Import Reals Lra Lia List Arith.
Require Import Sums Rounding RangeFree Bound.
Import ListNotations.
Local Open Scope R_scope.

Section Row.
Variables eps epsa epse etae epsp etal etau : R.
Hypothesis eps_rng : 0 <= eps < 1.
Hypothesis epsa_rng : 0 <= epsa < 1.
Hypothesis epse_rng : 0 <= epse < 1.
Hypothesis etae_pos : 0 <= etae.
Hypothesis epsp_rng : 0 <= epsp < 1.
Hypothesis etal_pos : 0 <= etal.
Hypothesis etau_pos : 0 <= etau.
Notation good := (good eps epsa epse etae epsp).
Notation run := (run eps epsa epse etae epsp etal etau).
Notation amp := (amp eps epse etae).

(* A key with what it met, its exact score, and how far the computed score may be from it. *)
Record judged := Judged { of : path; exact : R; dev : R }.
Definition v_of z := snd (key (of z)).
Definition one_exp := - ln (1 - epse).
(* Lemma 3: shared.  A key whose weight is exactly 1 and was never rescaled has its score's error
   alone. *)
Definition E_of M z := dev z
  + match exps (of z) with O => 0 | S _ => epsa * (M - exact z + dev z) end
  + INR (exps (of z)) * one_exp.
(* Lemma 4: private. *)
Definition R_of z := up eps (adds (of z) + rescales (of z)) - 1.
Definition S_of z := up eps (adds (of z) + rescales (of z) + own (of z)) * up epsp (own (of z)) - 1.
Definition D_of z := dust epse etae (exps (of z)).
Definition p_of m z := exp (exact z - m).

Lemma within_dist n x : within eps n x -> Rabs (x - 1) <= up eps n - 1.
Proof.
  intros [h1 h2]. destruct (balance eps n 1 1 eps_rng ltac:(lra) ltac:(lra)) as [_ H].
  apply Rabs_le. lra.
Qed.
Lemma within_dist2 n k y z : within eps n y -> within epsp k z ->
  Rabs (y * z - 1) <= up eps n * up epsp k - 1.
Proof.
  intros Hy Hz. destruct (balance eps n 1 1 eps_rng ltac:(lra) ltac:(lra)) as [H0 H1].
  destruct (balance epsp k _ _ epsp_rng H0 H1) as [_ H].
  pose proof (within_two eps epsp eps_rng epsp_rng n k y z Hy Hz).
  rewrite !Rmult_1_l in H. apply Rabs_le. lra.
Qed.

Lemma down_is_exp c : down epse c = exp (- (INR c * one_exp)).
Proof.
  unfold one_exp. induction c as [|c IH].
  - unfold down; simpl. rewrite Rmult_0_l, Ropp_0, exp_0. reflexivity.
  - rewrite S_INR. replace (- ((INR c + 1) * - ln (1 - epse)))
      with (ln (1 - epse) + - (INR c * - ln (1 - epse))) by ring.
    rewrite exp_plus, exp_ln, <- IH by lra. unfold down; simpl. ring.
Qed.
Lemma up_le_exp c : up epse c <= exp (INR c * one_exp).
Proof.
  replace (INR c * one_exp) with (- - (INR c * one_exp)) by ring.
  rewrite exp_Ropp, <- down_is_exp. induction c as [|c IH]; unfold up, down in *; simpl; [lra|].
  pose proof (pow_lt (1 - epse) c ltac:(lra)) as P.
  rewrite Rinv_mult. apply Rmult_le_compat; try lra; [apply pow_le; lra|].
  apply (Rmult_le_reg_r (1 - epse)); [lra|]. rewrite Rinv_l by lra. nra.
Qed.

(* Lemma 3: the computed weight of a key against its exact one. *)
Theorem shared_error z m M f : m <= M -> fst (key (of z)) <= m ->
  Rabs (fst (key (of z)) - exact z) <= dev z ->
  (exps (of z) = O -> fst (key (of z)) = m) ->
  shape epsa epse (exps (of z)) m (fst (key (of z))) f ->
  p_of m z * exp (- E_of M z) <= f <= p_of m z * exp (E_of M z).
Proof.
  intros HM Hs Hd Htop [h1 h2]. set (s := fst (key (of z))) in *. apply Rabs_rng in Hd.
  set (g := match exps (of z) with O => 0 | S _ => epsa * (M - exact z + dev z) end).
  assert (G : epsa * (m - s) <= g).
  { unfold g. destruct (exps (of z)); [rewrite Htop by auto; lra|].
    apply Rmult_le_compat_l; lra. }
  unfold p_of. rewrite <- !exp_plus. unfold E_of. fold g.
  rewrite down_is_exp, <- exp_plus in h1. split.
  - eapply Rle_trans; [|exact h1]. apply exp_le. lra.
  - eapply Rle_trans; [exact h2|].
    apply Rle_trans with (exp (INR (exps (of z)) * one_exp) * exp ((1 - epsa) * (s - m))).
    + apply Rmult_le_compat_r; [left; apply exp_pos|apply up_le_exp].
    + rewrite <- exp_plus. apply exp_le. lra.
Qed.

(* A weight that is exactly 1 belongs to a largest score. *)
Lemma run_top t m l u P N n c : run t m l u P N n c ->
  Forall (fun p => fst (key p) <= m /\ (exps p = O -> fst (key p) = m)) P.
Proof.
  induction 1 as [s v m p pv k Hs F _|x y mA lA uA mB lB uB m l u PA PB NA NB aA aB cA cB kA kB
    _ IHx _ IHy (LA & LB & fA & fB & pA & pB & rA & rB & F1 & F2 & _)].
  - constructor; [|constructor]. simpl. split; auto. unfold exps; simpl.
    intros ->. inversion F; auto.
  - apply Forall_app; split; apply Forall_map; eapply Forall_impl;
      [|exact IHx| |exact IHy]; simpl; intros p [H1 H2]; split; try lra; unfold exps in *; simpl;
      intros E.
    + rewrite H2 by lia. replace kA with 0%nat in F1 by lia. inversion F1; auto.
    + rewrite H2 by lia. replace kB with 0%nat in F2 by lia. inversion F2; auto.
Qed.

(* Terms beside the judged keys, with the weight before underflow. *)
Definition item := (judged * term * R)%type.
Definition zj (y : item) := fst (fst y).
Definition tm (y : item) := snd (fst y).
Lemma pick m W : forall Z, map on W = map of Z -> Forall (good m) W ->
  exists Y : list item, map zj Y = Z /\ map tm Y = W /\
    Forall (fun y => on (tm y) = of (zj y) /\ good m (tm y) /\
      shape epsa epse (exps (on (tm y))) m (score (tm y)) (snd y) /\
      Rabs (w (tm y) - snd y) <= dust epse etae (exps (on (tm y)))) Y.
Proof.
  induction W as [|t W IH]; intros [|z Z] HZ HG; try discriminate.
  - exists []. auto.
  - simpl in HZ. injection HZ as E1 E2. inversion HG as [|? ? G1 G2]; subst.
    destruct (IH Z E2 G2) as (Y & <- & <- & HY). pose proof G1 as (_ & (f & Hf & Hw) & _).
    exists ((z, t, f) :: Y). repeat split; auto.
Qed.

Section Run.
Variables (t : tree) (m l u : R) (P : list path) (N n c : nat) (Z : list judged) (M : R).
Hypothesis HRun : run t m l u P N n c.
Hypothesis HZ : map of Z = P.
Hypothesis Hdev : forall z, In z Z -> Rabs (fst (key (of z)) - exact z) <= dev z.
Hypothesis HM : m <= M.
Let p := p_of m.
Let E := E_of M.
Let El := INR N * etal * amp n c.
Let Eu := INR N * etau * amp n c.

Lemma items : exists Y : list item, map zj Y = Z /\
  (forall y, In y Y -> p (zj y) * exp (- E (zj y)) <= snd y <= p (zj y) * exp (E (zj y))) /\
  (forall y, In y Y -> Rabs (w (tm y) - snd y) <= D_of (zj y)) /\
  (forall y, In y Y -> Rabs (a (tm y) - 1) <= R_of (zj y)) /\
  (forall y, In y Y -> Rabs (b (tm y) - 1) <= S_of (zj y)) /\
  Rabs (l - sumf (fun y => (snd y + (w (tm y) - snd y)) * a (tm y)) Y) <= El /\
  Rabs (u - sumf (fun y => (snd y + (w (tm y) - snd y)) * b (tm y) * v_of (zj y)) Y) <= Eu.
Proof.
  pose proof (run_top _ _ _ _ _ _ _ _ HRun) as HT.
  assert (HR := HRun). apply run_Rep in HR; auto. destruct HR as (W & HW & HG & Hl & Hu).
  destruct (pick m W Z ltac:(congruence) HG) as (Y & HY & HYW & HF).
  assert (F : forall y, In y Y -> In (zj y) Z /\ on (tm y) = of (zj y) /\ good m (tm y) /\
      shape epsa epse (exps (on (tm y))) m (score (tm y)) (snd y) /\
      Rabs (w (tm y) - snd y) <= dust epse etae (exps (on (tm y)))).
  { intros y Hy. split; [rewrite <- HY; now apply in_map|].
    exact (proj1 (Forall_forall _ _) HF y Hy). }
  exists Y. split; [auto|]. repeat split.
  1,2: destruct (F y H) as (Hz & E1 & _ & Hs & _); unfold score in Hs; rewrite E1 in Hs;
    assert (Hp : In (of (zj y)) P) by (rewrite <- HZ; now apply in_map);
    destruct (proj1 (Forall_forall _ _) HT _ Hp) as [T1 T2];
    apply (shared_error (zj y) m M (snd y)); auto.
  - intros y Hy. destruct (F y Hy) as (_ & E1 & _ & _ & Hd). unfold D_of. now rewrite <- E1.
  - intros y Hy. destruct (F y Hy) as (_ & E1 & (_ & _ & Ha & _) & _). unfold R_of.
    rewrite <- E1. now apply within_dist.
  - intros y Hy. destruct (F y Hy) as (_ & E1 & (_ & _ & _ & g & h & -> & Hg & Hh) & _).
    unfold S_of. rewrite <- E1. now apply within_dist2.
  - replace (sumf _ Y) with (lsum W); [exact Hl|]. unfold lsum. rewrite <- HYW, sumf_map.
    apply sumf_ext. intros y _. ring.
  - replace (sumf _ Y) with (usum W); [exact Hu|]. unfold usum. rewrite <- HYW, sumf_map.
    apply sumf_ext. intros y Hy. destruct (F y Hy) as (_ & E1 & _).
    unfold value, v_of. rewrite <- E1. ring.
Qed.

Lemma to_Z f Y : map zj Y = Z -> sumf (fun y : item => f (zj y)) Y = sumf f Z.
Proof. intros <-. symmetry. apply sumf_map. Qed.

Let o := sumf (fun z => p z * v_of z) Z / sumf p Z.
Hypothesis some : Z <> [].
Lemma sum_p_pos : 0 < sumf p Z.
Proof.
  destruct Z as [|z Z']; [tauto|]. apply Rplus_lt_le_0_compat; [apply exp_pos|].
  apply sumf_nonneg. intros; left; apply exp_pos.
Qed.
Lemma o_centre : sumf (fun z => p z * (v_of z - o)) Z = 0.
Proof.
  pose proof sum_p_pos. replace (sumf (fun z => p z * (v_of z - o)) Z)
    with (sumf (fun z => p z * v_of z) Z - o * sumf p Z); [unfold o; field; lra|].
  rewrite <- sumf_scal, <- sumf_minus. apply sumf_ext. intros; ring.
Qed.
Hypothesis R_le1 : forall z, In z Z -> R_of z <= 1.
Lemma in_Z (Y : list item) y : map zj Y = Z -> In y Y -> In (zj y) Z.
Proof. intros <-. apply in_map. Qed.

(* Theorem A for a computed row. *)
Theorem row_theorem_A :
  let den := sumf (fun z => p z * exp (- E z) * (1 - R_of z)) Z
    - sumf (fun z => D_of z * (1 + R_of z)) Z - El in
  let num := sumf (fun z => p z * (exp (E z) - 1) * Rabs (v_of z - o)) Z
    + sumf (fun z => (p z * exp (E z) + D_of z) * S_of z * Rabs (v_of z)) Z
    + Rabs o * sumf (fun z => (p z * exp (E z) + D_of z) * R_of z) Z
    + sumf (fun z => D_of z * Rabs (v_of z - o)) Z + Eu + Rabs o * El in
  0 < den -> Rabs (u / l - o) <= num / den.
Proof.
  intros den num Hd. destruct items as (Y & HY & h1 & h2 & h3 & h4 & h5 & h6).
  pose proof (theorem_A Y (fun y => p (zj y)) snd (fun y => w (tm y) - snd y) (fun y => E (zj y))
    (fun y => R_of (zj y)) (fun y => S_of (zj y)) (fun y => D_of (zj y)) (fun y => v_of (zj y))
    (fun y => a (tm y)) (fun y => b (tm y)) l u El Eu) as T.
  specialize (T (fun _ _ => Rlt_le _ _ (exp_pos _)) h1 h2 h3 h4 h5 h6 o).
  unfold num_A, den_A in T.
  rewrite (to_Z (fun z => p z * (v_of z - o)) Y HY) in T.
  rewrite (to_Z (fun z => p z * exp (- E z) * (1 - R_of z)) Y HY) in T.
  rewrite (to_Z (fun z => D_of z * (1 + R_of z)) Y HY) in T.
  rewrite (to_Z (fun z => p z * (exp (E z) - 1) * Rabs (v_of z - o)) Y HY) in T.
  rewrite (to_Z (fun z => (p z * exp (E z) + D_of z) * S_of z * Rabs (v_of z)) Y HY) in T.
  rewrite (to_Z (fun z => (p z * exp (E z) + D_of z) * R_of z) Y HY) in T.
  rewrite (to_Z (fun z => D_of z * Rabs (v_of z - o)) Y HY) in T.
  apply T; auto using o_centre. intros y Hy. eauto using in_Z.
Qed.

(* Theorem A* for a computed row: W0 is W- = sum p e^-E, x certifies R+ (or, of -v, -R-), and each
   private part is the smaller of its two estimates.  One side of it, for v or -v. *)
Let W0 := sumf (fun z => p z * exp (- E z)) Z.
Let Tu := Rmin (sumf (fun z => p z * exp (E z) * (S_of z * Rabs (v_of z))) Z / W0).
Let Tl := Rmin (sumf (fun z => p z * exp (E z) * R_of z) Z / W0).
Let U := sumf (fun z => D_of z * S_of z * Rabs (v_of z)) Z
  + Rabs o * sumf (fun z => D_of z * R_of z) Z
  + sumf (fun z => D_of z * Rabs (v_of z - o)) Z + Eu + Rabs o * El.
Let Ul := sumf (fun z => D_of z * (1 + R_of z)) Z + El.
Section Side.
Variables (side : judged -> R) (u' o' : R).
Hypothesis side_v : forall z, Rabs (side z) = Rabs (v_of z).
Hypothesis side_y : forall z, Rabs (side z - o') = Rabs (v_of z - o).
Hypothesis side_o : Rabs o' = Rabs o.
Hypothesis side_u : forall (Y : list item) f, Rabs (u - sumf (fun y => f y * v_of (zj y)) Y) <= Eu ->
  Rabs (u' - sumf (fun y => f y * side (zj y)) Y) <= Eu.
Lemma one_side x Rm Sm :
  (forall z, In z Z -> R_of z <= Rm) -> (forall z, In z Z -> S_of z * Rabs (v_of z) <= Sm) ->
  o' <= x ->
  sumf (fun z => p z * (if Rlt_dec x (side z) then exp (E z) else exp (- E z)) * (side z - x)) Z <= 0 ->
  Ul / W0 < 1 - Rm ->
  u' / l - o' <= (x - o' + Tu Sm + Rabs o * Tl Rm + U / W0) / (1 - Rm - Ul / W0).
Proof.
  intros HRm HSm Hx Hcert HU.
  destruct items as (Y & HY & h1 & h2 & h3 & h4 & h5 & h6).
  assert (w0 : 0 < W0).
  { unfold W0. destruct Z as [|z Z']; [tauto|]. apply Rplus_lt_le_0_compat.
    - apply Rmult_lt_0_compat; apply exp_pos.
    - apply sumf_nonneg. intros; left; apply Rmult_lt_0_compat; apply exp_pos. }
  assert (S0 : forall y, In y Y -> 0 <= S_of (zj y))
    by (intros y Hy; eapply Rle_trans; [apply Rabs_pos|apply (h4 y Hy)]).
  assert (R0 : forall y, In y Y -> 0 <= R_of (zj y))
    by (intros y Hy; eapply Rle_trans; [apply Rabs_pos|apply (h3 y Hy)]).
  assert (Ex : exists y, In y Y).
  { destruct Y as [|y Y']; [simpl in HY; congruence|exists y; left; auto]. }
  destruct Ex as (y0 & Hy0).
  assert (ppos : forall y, In y Y -> 0 <= p (zj y)) by (intros; left; apply exp_pos).
  assert (wY : sumf (fun y => p (zj y) * exp (- E (zj y))) Y = W0)
    by exact (to_Z (fun z => p z * exp (- E z)) Y HY).
  assert (TuY : sumf (fun y => snd y * (S_of (zj y) * Rabs (v_of (zj y)))) Y <= Tu Sm * sumf snd Y).
  { unfold Tu, Rmin. destruct Rle_dec.
    - pose proof (mean_by_weights Y (fun y => p (zj y)) snd (fun y => E (zj y)) ppos h1
        (fun y => S_of (zj y) * Rabs (v_of (zj y)))) as Q.
      cbv beta in Q. rewrite wY in Q.
      rewrite (to_Z (fun z => p z * exp (E z) * (S_of z * Rabs (v_of z))) Y HY) in Q.
      apply Q; auto. intros y Hy. apply Rmult_le_pos; auto using Rabs_pos.
    - apply (mean_by_max Y (fun y => p (zj y)) snd (fun y => E (zj y)) ppos h1).
      intros y Hy. apply HSm. eauto using in_Z. }
  assert (TlY : sumf (fun y => snd y * R_of (zj y)) Y <= Tl Rm * sumf snd Y).
  { unfold Tl, Rmin. destruct Rle_dec.
    - pose proof (mean_by_weights Y (fun y => p (zj y)) snd (fun y => E (zj y)) ppos h1
        (fun y => R_of (zj y))) as Q.
      cbv beta in Q. rewrite wY in Q.
      rewrite (to_Z (fun z => p z * exp (E z) * R_of z) Y HY) in Q. apply Q; auto.
    - apply (mean_by_max Y (fun y => p (zj y)) snd (fun y => E (zj y)) ppos h1).
      intros y Hy. apply HRm. eauto using in_Z. }
  assert (Q0 : forall f, (forall y, In y Y -> 0 <= f (zj y)) ->
      0 <= sumf (fun z => p z * exp (E z) * f z) Z / W0).
  { intros f Hf. apply le_div_r; auto. rewrite Rmult_0_l.
    rewrite <- (to_Z (fun z => p z * exp (E z) * f z) Y HY). apply sumf_nonneg. intros y Hy.
    apply Rmult_le_pos; auto. left; apply Rmult_lt_0_compat; apply exp_pos. }
  assert (Tu0 : 0 <= Tu Sm).
  { apply Rmin_glb; [apply (Q0 (fun z => S_of z * Rabs (v_of z)))|].
    - intros y Hy. apply Rmult_le_pos; auto using Rabs_pos.
    - eapply Rle_trans; [|apply (HSm (zj y0)); eauto using in_Z].
      apply Rmult_le_pos; auto using Rabs_pos. }
  assert (Tl0 : 0 <= Tl Rm).
  { apply Rmin_glb; [now apply (Q0 R_of)|]. eapply Rle_trans; [apply (R0 y0 Hy0)|].
    apply HRm. eauto using in_Z. }
  apply side_u in h6.
  assert (TuY' : sumf (fun y => snd y * (S_of (zj y) * Rabs (side (zj y)))) Y <= Tu Sm * sumf snd Y).
  { rewrite (sumf_ext _ (fun y => snd y * (S_of (zj y) * Rabs (v_of (zj y))))); auto.
    intros y _. now rewrite side_v. }
  pose proof (theorem_A_star Y (fun y => p (zj y)) snd (fun y => w (tm y) - snd y)
    (fun y => E (zj y)) (fun y => R_of (zj y)) (fun y => S_of (zj y)) (fun y => D_of (zj y))
    (fun y => side (zj y)) (fun y => a (tm y)) (fun y => b (tm y)) l u' El Eu
    ppos h1 h2 h3 h4 h5 h6 o') as T.
  specialize (T ltac:(intros y Hy; apply R_le1; eauto using in_Z) (Tu Sm) (Tl Rm) Rm TuY' TlY
    ltac:(intros y Hy; apply HRm; eauto using in_Z) Tu0 Tl0 x W0 Hx).
  cbv beta in T.
  rewrite (sumf_ext (fun y => D_of (zj y) * S_of (zj y) * Rabs (side (zj y)))
    (fun y => D_of (zj y) * S_of (zj y) * Rabs (v_of (zj y)))) in T by (intros y _; now rewrite side_v).
  rewrite (sumf_ext (fun y => D_of (zj y) * Rabs (side (zj y) - o')) (fun y => D_of (zj y) * Rabs (v_of (zj y) - o)))
    in T by (intros y _; now rewrite side_y).
  rewrite side_o in T.
  rewrite (to_Z (fun z => D_of z * S_of z * Rabs (v_of z)) Y HY) in T.
  rewrite (to_Z (fun z => D_of z * R_of z) Y HY) in T.
  rewrite (to_Z (fun z => D_of z * Rabs (v_of z - o)) Y HY) in T.
  rewrite (to_Z (fun z => D_of z * (1 + R_of z)) Y HY) in T.
  rewrite (to_Z (fun z => p z * (if Rlt_dec x (side z) then exp (E z) else exp (- E z))
    * (side z - x)) Y HY) in T.
  apply T; auto. rewrite wY. lra.
Qed.
End Side.
Theorem row_theorem_A_star x Rm Sm :
  (forall z, In z Z -> R_of z <= Rm) -> (forall z, In z Z -> S_of z * Rabs (v_of z) <= Sm) ->
  o <= x ->
  sumf (fun z => p z * (if Rlt_dec x (v_of z) then exp (E z) else exp (- E z)) * (v_of z - x)) Z <= 0 ->
  Ul / W0 < 1 - Rm ->
  u / l - o <= (x - o + Tu Sm + Rabs o * Tl Rm + U / W0) / (1 - Rm - Ul / W0).
Proof.
  intros. apply (one_side v_of u o); auto.
Qed.
Theorem row_theorem_A_star_lower x Rm Sm :
  (forall z, In z Z -> R_of z <= Rm) -> (forall z, In z Z -> S_of z * Rabs (v_of z) <= Sm) ->
  x <= o ->
  sumf (fun z => p z * (if Rlt_dec (v_of z) x then exp (E z) else exp (- E z)) * (x - v_of z)) Z <= 0 ->
  Ul / W0 < 1 - Rm ->
  o - u / l <= (o - x + Tu Sm + Rabs o * Tl Rm + U / W0) / (1 - Rm - Ul / W0).
Proof.
  intros HRm HSm Hx Hcert HU.
  replace (o - u / l) with (- u / l - - o) by (unfold Rdiv; ring).
  replace (o - x) with (- x - - o) by ring.
  apply (one_side (fun z => - v_of z) (- u) (- o)) with (x := - x); auto; try lra.
  - intros z. apply Rabs_Ropp.
  - intros z. replace (- v_of z - - o) with (- (v_of z - o)) by ring. apply Rabs_Ropp.
  - apply Rabs_Ropp.
  - intros Y f H. rewrite <- Rabs_Ropp. erewrite sumf_ext; [|intros y _; symmetry; apply Ropp_mult_distr_r].
    replace (- (- u - sumf (fun y => - (f y * v_of (zj y))) Y)) with (u - sumf (fun y => f y * v_of (zj y)) Y); auto.
    replace (sumf (fun y => - (f y * v_of (zj y))) Y) with (-1 * sumf (fun y => f y * v_of (zj y)) Y); [ring|].
    rewrite <- sumf_scal. apply sumf_ext. intros; ring.
  - eapply Rle_trans; [|exact Hcert]. right. apply sumf_ext. intros z _.
    replace (- v_of z - - x) with (x - v_of z) by ring.
    destruct (Rlt_dec (- x) (- v_of z)), (Rlt_dec (v_of z) x); auto; exfalso; lra.
Qed.

(* The same for the lse, before its log and its addition are rounded (lse_rounded). *)
Theorem row_lse :
  let lo := (sumf (fun z => p z * exp (- E z) * (1 - R_of z)) Z
             - sumf (fun z => D_of z * (1 + R_of z)) Z - El) / sumf p Z in
  let hi := (sumf (fun z => (p z * exp (E z) + D_of z) * (1 + R_of z)) Z + El) / sumf p Z in
  0 < lo -> ln lo <= m + ln l - ln (sumf (fun z => exp (exact z)) Z) <= ln hi.
Proof.
  intros lo hi Hlo. destruct items as (Y & HY & h1 & h2 & h3 & h4 & h5 & h6).
  assert (ppos : forall y, In y Y -> 0 <= p (zj y)) by (intros; left; apply exp_pos).
  pose proof (lse_error Y (fun y => p (zj y)) snd (fun y => w (tm y) - snd y)
    (fun y => E (zj y)) (fun y => R_of (zj y)) (fun y => D_of (zj y)) (fun y => a (tm y))
    l El ppos h1 h2 h3 h5 m (ln (sumf (fun z => exp (exact z)) Z))
    ltac:(intros y Hy; apply R_le1; eauto using in_Z)) as T.
  cbv beta in T. rewrite (to_Z p Y HY) in T.
  rewrite (to_Z (fun z => p z * exp (- E z) * (1 - R_of z)) Y HY) in T.
  rewrite (to_Z (fun z => D_of z * (1 + R_of z)) Y HY) in T.
  rewrite (to_Z (fun z => (p z * exp (E z) + D_of z) * (1 + R_of z)) Y HY) in T.
  apply T; auto using sum_p_pos.
  pose proof sum_p_pos as P0.
  assert (Es : sumf (fun z => exp (exact z)) Z = exp m * sumf p Z).
  { rewrite <- sumf_scal. apply sumf_ext. intros z _. unfold p, p_of.
    rewrite <- exp_plus. f_equal. ring. }
  rewrite Es, ln_mult, ln_exp; auto using exp_pos.
Qed.
End Run.
End Row.
