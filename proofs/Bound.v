(* The a-posteriori bound that ref/bound.c computes: Theorems A, A* and the bound of the lse of
   docs/bounds.md, first as algebra on sums, then for whatever run returned.

   Shared errors (score, exponent, exponentials) move a weight within e^-E .. e^E and are weighted
   by |v - o|; private ones, R of l and S of u, by |o| and |v|; what underflows is added.
   Standard library only.  SPDX-License-Identifier: MIT *)
From Coq Require Import Reals Lra Lia List Arith.
Require Import Sums Rounding.
Import ListNotations.
Local Open Scope R_scope.

(* ---- algebra ---- *)
Section Algebra.
Context {A : Type}.
Variables (W : list A) (p q r E Rj Sj D v al be : A -> R) (l u El Eu : R).
(* p: exact weights;  q: computed ones, within e^E;  r: what underflow added to them. *)
Hypothesis p_pos : forall x, In x W -> 0 <= p x.
Hypothesis q_rng : forall x, In x W -> p x * exp (- E x) <= q x <= p x * exp (E x).
Hypothesis r_rng : forall x, In x W -> Rabs (r x) <= D x.
Hypothesis al_rng : forall x, In x W -> Rabs (al x - 1) <= Rj x.
Hypothesis be_rng : forall x, In x W -> Rabs (be x - 1) <= Sj x.
Hypothesis l_is : Rabs (l - sumf (fun x => (q x + r x) * al x) W) <= El.
Hypothesis u_is : Rabs (u - sumf (fun x => (q x + r x) * be x * v x) W) <= Eu.

Lemma q_pos x : In x W -> 0 <= q x.
Proof.
  intros H. eapply Rle_trans; [|apply (q_rng x H)].
  apply Rmult_le_pos; [auto|left; apply exp_pos].
Qed.
Lemma shift_abs x : In x W -> Rabs (q x - p x) <= p x * (exp (E x) - 1).
Proof.
  intros H. pose proof (p_pos x H). destruct (q_rng x H) as [h1 h2].
  pose proof (exp_ge_1x (E x)). pose proof (exp_ge_1x (- E x)).
  assert (2 <= exp (E x) + exp (- E x)) by lra.
  apply Rabs_le. split; nra.
Qed.
Lemma al_abs x : In x W -> Rabs (al x) <= 1 + Rj x.
Proof.
  intros H. replace (al x) with (1 + (al x - 1)) by ring. apply Rabs_plus_le; auto.
  rewrite Rabs_R1; lra.
Qed.

(* The computed numerator minus o times the computed denominator, split by cause. *)
Lemma split_by_cause o : u - o * l
  = sumf (fun x => q x * (v x - o)) W + sumf (fun x => (q x + r x) * (be x - 1) * v x) W
    + - o * sumf (fun x => (q x + r x) * (al x - 1)) W + sumf (fun x => r x * (v x - o)) W
    + (u - sumf (fun x => (q x + r x) * be x * v x) W)
    + - o * (l - sumf (fun x => (q x + r x) * al x) W).
Proof.
  assert (H : sumf (fun x => (q x + r x) * be x * v x) W
    - o * sumf (fun x => (q x + r x) * al x) W
    = sumf (fun x => q x * (v x - o)) W + sumf (fun x => (q x + r x) * (be x - 1) * v x) W
    + - o * sumf (fun x => (q x + r x) * (al x - 1)) W + sumf (fun x => r x * (v x - o)) W).
  { rewrite <- !sumf_scal, <- !sumf_plus, <- sumf_minus.
    apply sumf_ext. intros; ring. }
  lra.
Qed.
Lemma private_u : Rabs (sumf (fun x => (q x + r x) * (be x - 1) * v x) W)
  <= sumf (fun x => (q x + D x) * Sj x * Rabs (v x)) W.
Proof.
  apply sumf_abs_le. intros x H. pose proof (q_pos x H).
  repeat apply Rabs_mult_le; auto; [|lra]. apply Rabs_plus_le; auto. rewrite Rabs_pos_eq; lra.
Qed.
Lemma private_l : Rabs (sumf (fun x => (q x + r x) * (al x - 1)) W)
  <= sumf (fun x => (q x + D x) * Rj x) W.
Proof.
  apply sumf_abs_le. intros x H. pose proof (q_pos x H).
  apply Rabs_mult_le; auto. apply Rabs_plus_le; auto. rewrite Rabs_pos_eq; lra.
Qed.
Lemma lost_u o : Rabs (sumf (fun x => r x * (v x - o)) W) <= sumf (fun x => D x * Rabs (v x - o)) W.
Proof. apply sumf_abs_le. intros x H. apply Rabs_mult_le; auto; lra. Qed.

(* l is at least what the weights keep. *)
Lemma l_ge : (forall x, In x W -> Rj x <= 1) ->
  sumf (fun x => q x * (1 - Rj x)) W - sumf (fun x => D x * (1 + Rj x)) W - El <= l.
Proof.
  intros HR. pose proof (Rabs_rng _ _ l_is).
  assert (sumf (fun x => q x * (1 - Rj x) - D x * (1 + Rj x)) W
    <= sumf (fun x => (q x + r x) * al x) W).
  { apply sumf_le. intros x Hx. rewrite Rmult_plus_distr_r.
    pose proof (q_pos x Hx). pose proof (Rabs_rng _ _ (al_rng x Hx)).
    pose proof (Rabs_rng _ _ (Rabs_mult_le _ _ _ _ (r_rng x Hx) (al_abs x Hx))). nra. }
  rewrite sumf_minus in *. lra.
Qed.

Section Row.
Variable o : R.
Hypothesis o_is : sumf (fun x => p x * (v x - o)) W = 0.
Hypothesis R_le1 : forall x, In x W -> Rj x <= 1.

Lemma S_pos x : In x W -> 0 <= Sj x.
Proof. intros H. eapply Rle_trans; [apply Rabs_pos|apply (be_rng x H)]. Qed.
Lemma R_pos x : In x W -> 0 <= Rj x.
Proof. intros H. eapply Rle_trans; [apply Rabs_pos|apply (al_rng x H)]. Qed.
Lemma D_pos x : In x W -> 0 <= D x.
Proof. intros H. eapply Rle_trans; [apply Rabs_pos|apply (r_rng x H)]. Qed.
Lemma shared_abs : Rabs (sumf (fun x => q x * (v x - o)) W)
  <= sumf (fun x => p x * (exp (E x) - 1) * Rabs (v x - o)) W.
Proof.
  replace (sumf (fun x => q x * (v x - o)) W) with (sumf (fun x => (q x - p x) * (v x - o)) W).
  - apply sumf_abs_le. intros x H. apply Rabs_mult_le; [now apply shift_abs|lra].
  - rewrite <- (Rminus_0_r (sumf (fun x => q x * (v x - o)) W)), <- o_is, <- sumf_minus.
    apply sumf_ext. intros; ring.
Qed.

Definition num_A :=
  sumf (fun x => p x * (exp (E x) - 1) * Rabs (v x - o)) W
  + sumf (fun x => (p x * exp (E x) + D x) * Sj x * Rabs (v x)) W
  + Rabs o * sumf (fun x => (p x * exp (E x) + D x) * Rj x) W
  + sumf (fun x => D x * Rabs (v x - o)) W + Eu + Rabs o * El.
Definition den_A :=
  sumf (fun x => p x * exp (- E x) * (1 - Rj x)) W - sumf (fun x => D x * (1 + Rj x)) W - El.

Lemma numerator_A : Rabs (u - o * l) <= num_A.
Proof.
  rewrite (split_by_cause o). unfold num_A.
  assert (Pu : sumf (fun x => (q x + D x) * Sj x * Rabs (v x)) W
    <= sumf (fun x => (p x * exp (E x) + D x) * Sj x * Rabs (v x)) W).
  { apply sumf_le. intros x H. apply Rmult_le_compat_r; [apply Rabs_pos|].
    apply Rmult_le_compat_r; [now apply S_pos|]. pose proof (q_rng x H). lra. }
  assert (Pl : sumf (fun x => (q x + D x) * Rj x) W
    <= sumf (fun x => (p x * exp (E x) + D x) * Rj x) W).
  { apply sumf_le. intros x H. apply Rmult_le_compat_r; [now apply R_pos|].
    pose proof (q_rng x H). lra. }
  pose proof private_u. pose proof private_l.
  repeat apply Rabs_plus_le; auto using shared_abs, lost_u; try lra.
  - apply Rabs_mult_le; [rewrite Rabs_Ropp; lra|lra].
  - apply Rabs_mult_le; [rewrite Rabs_Ropp; lra|auto].
Qed.
(* Theorem A: the error of the output, cause by cause. *)
Theorem theorem_A : 0 < den_A -> Rabs (u / l - o) <= num_A / den_A.
Proof.
  intros Hd. assert (Hl : den_A <= l).
  { eapply Rle_trans; [|apply l_ge; auto]. unfold den_A.
    apply Rplus_le_compat_r, Rplus_le_compat_r, sumf_le. intros x H.
    pose proof (R_le1 x H). pose proof (q_rng x H). nra. }
  replace (u / l - o) with ((u - o * l) / l) by (field; lra).
  unfold Rdiv. rewrite Rabs_mult, (Rabs_pos_eq (/ l)) by (left; apply Rinv_0_lt_compat; lra).
  apply Rmult_le_compat; [apply Rabs_pos|left; apply Rinv_0_lt_compat; lra| |].
  - exact numerator_A.
  - now apply Rinv_le_contravar.
Qed.

(* ---- A*: the shared part in its exact range ---- *)
(* If the weights that pull most towards t still do not reach it, no admissible weights do. *)
Theorem shared_range t :
  sumf (fun x => p x * (if Rlt_dec t (v x) then exp (E x) else exp (- E x)) * (v x - t)) W <= 0 ->
  sumf (fun x => q x * v x) W <= t * sumf q W.
Proof.
  intros H. assert (G : sumf (fun x => q x * (v x - t)) W <= 0).
  { eapply Rle_trans; [|exact H]. apply sumf_le. intros x Hx. pose proof (q_rng x Hx).
    destruct (Rlt_dec t (v x)); nra. }
  replace (sumf (fun x => q x * (v x - t)) W)
    with (sumf (fun x => q x * v x) W - t * sumf q W) in G; [lra|].
  rewrite <- sumf_scal, <- sumf_minus. apply sumf_ext. intros; ring.
Qed.
(* A weighted mean is at most the largest of its terms, or the largest weights over the least. *)
Lemma mean_by_max f T : (forall x, In x W -> f x <= T) ->
  sumf (fun x => q x * f x) W <= T * sumf q W.
Proof.
  intros H. rewrite <- sumf_scal. apply sumf_le. intros x Hx. pose proof (q_pos x Hx).
  pose proof (H x Hx). nra.
Qed.
Lemma sum_q_ge : sumf (fun x => p x * exp (- E x)) W <= sumf q W.
Proof. apply sumf_le. intros x H. apply (q_rng x H). Qed.
Lemma mean_by_weights f : (forall x, In x W -> 0 <= f x) ->
  0 < sumf (fun x => p x * exp (- E x)) W ->
  sumf (fun x => q x * f x) W
  <= sumf (fun x => p x * exp (E x) * f x) W / sumf (fun x => p x * exp (- E x)) W * sumf q W.
Proof.
  intros Hf Hw. pose proof sum_q_ge. set (w := sumf (fun x => p x * exp (- E x)) W) in *.
  set (B := sumf (fun x => p x * exp (E x) * f x) W).
  assert (sumf (fun x => q x * f x) W <= B).
  { apply sumf_le. intros x Hx. pose proof (q_rng x Hx). pose proof (Hf x Hx). nra. }
  assert (0 <= B).
  { apply sumf_nonneg. intros x Hx. apply Rmult_le_pos; [|auto].
    apply Rmult_le_pos; [auto|left; apply exp_pos]. }
  eapply Rle_trans; [eassumption|].
  replace (B / w * sumf q W) with (B * (sumf q W / w)) by (field; lra).
  rewrite <- (Rmult_1_r B) at 1. apply Rmult_le_compat_l; auto. apply le_div_r; lra.
Qed.

(* The two private parts as means Tu, Tl, the two losses U, Ul, and the largest R. *)
Variables (Tu Tl Rm : R).
Let U := sumf (fun x => D x * Sj x * Rabs (v x)) W + Rabs o * sumf (fun x => D x * Rj x) W
  + sumf (fun x => D x * Rabs (v x - o)) W + Eu + Rabs o * El.
Let Ul := sumf (fun x => D x * (1 + Rj x)) W + El.
Hypothesis Tu_is : sumf (fun x => q x * (Sj x * Rabs (v x))) W <= Tu * sumf q W.
Hypothesis Tl_is : sumf (fun x => q x * Rj x) W <= Tl * sumf q W.
Hypothesis Rm_is : forall x, In x W -> Rj x <= Rm.
Hypothesis Tu_pos : 0 <= Tu.
Hypothesis Tl_pos : 0 <= Tl.

Lemma U_pos : 0 <= U.
Proof.
  assert (0 <= El) by (eapply Rle_trans; [apply Rabs_pos|exact l_is]).
  assert (0 <= Eu) by (eapply Rle_trans; [apply Rabs_pos|exact u_is]).
  pose proof (Rabs_pos o). unfold U.
  repeat apply Rplus_le_le_0_compat; auto; try (apply Rmult_le_pos; auto);
    apply sumf_nonneg; intros x Hx; repeat apply Rmult_le_pos;
    auto using D_pos, S_pos, R_pos, Rabs_pos.
Qed.
Lemma numerator_star t : sumf (fun x => q x * v x) W <= t * sumf q W ->
  u - o * l <= (t - o + Tu + Rabs o * Tl) * sumf q W + U.
Proof.
  intros Ht. rewrite (split_by_cause o). unfold U.
  assert (E1 : sumf (fun x => q x * (v x - o)) W = sumf (fun x => q x * v x) W - o * sumf q W).
  { rewrite <- sumf_scal, <- sumf_minus. apply sumf_ext. intros; ring. }
  assert (E2 : sumf (fun x => (q x + D x) * Sj x * Rabs (v x)) W
    = sumf (fun x => q x * (Sj x * Rabs (v x))) W + sumf (fun x => D x * Sj x * Rabs (v x)) W).
  { rewrite <- sumf_plus. apply sumf_ext. intros; ring. }
  assert (E3 : sumf (fun x => (q x + D x) * Rj x) W
    = sumf (fun x => q x * Rj x) W + sumf (fun x => D x * Rj x) W).
  { rewrite <- sumf_plus. apply sumf_ext. intros; ring. }
  pose proof (Rabs_rng _ _ private_u) as H1. rewrite E2 in H1.
  pose proof private_l as H2. rewrite E3 in H2.
  assert (H3 : Rabs (- o * sumf (fun x => (q x + r x) * (al x - 1)) W)
    <= Rabs o * (Tl * sumf q W + sumf (fun x => D x * Rj x) W)).
  { apply Rabs_mult_le; [rewrite Rabs_Ropp|]; lra. }
  assert (H4 : Rabs (- o * (l - sumf (fun x => (q x + r x) * al x) W)) <= Rabs o * El).
  { apply Rabs_mult_le; [rewrite Rabs_Ropp; lra|auto]. }
  apply Rabs_rng in H3. apply Rabs_rng in H4.
  pose proof (Rabs_rng _ _ (lost_u o)). pose proof (Rabs_rng _ _ u_is). lra.
Qed.
(* Theorem A*: u/l stays below o by no more than the range of the shared part allows. *)
Theorem theorem_A_star t w : o <= t ->
  sumf (fun x => p x * (if Rlt_dec t (v x) then exp (E x) else exp (- E x)) * (v x - t)) W <= 0 ->
  0 < w <= sumf (fun x => p x * exp (- E x)) W -> Ul / w < 1 - Rm ->
  u / l - o <= (t - o + Tu + Rabs o * Tl + U / w) / (1 - Rm - Ul / w).
Proof.
  intros Ho Ht Hw HU. pose proof sum_q_ge as Hq. set (Q := sumf q W) in *.
  assert (Ul0 : 0 <= Ul).
  { assert (0 <= El) by (eapply Rle_trans; [apply Rabs_pos|exact l_is]). unfold Ul.
    apply Rplus_le_le_0_compat; auto. apply sumf_nonneg. intros x Hx.
    pose proof (D_pos x Hx). pose proof (R_pos x Hx). nra. }
  set (X := t - o + Tu + Rabs o * Tl).
  assert (X0 : 0 <= X) by (unfold X; pose proof (Rabs_pos o); nra).
  pose proof U_pos as U0.
  assert (Ew : Ul = Ul / w * w) by (field; lra). assert (Ew' : U = U / w * w) by (field; lra).
  assert (Z1 : 0 <= Ul / w) by (apply le_div_r; lra). assert (Z2 : 0 <= U / w) by (apply le_div_r; lra).
  assert (Hl : (1 - Rm - Ul / w) * Q <= l).
  { eapply Rle_trans; [|apply l_ge; auto].
    assert ((1 - Rm) * Q <= sumf (fun x => q x * (1 - Rj x)) W).
    { unfold Q. rewrite <- sumf_scal. apply sumf_le. intros x H.
      pose proof (q_pos x H). pose proof (Rm_is x H). nra. }
    unfold Ul in *. nra. }
  assert (Q0 : 0 < Q) by lra. assert (l0 : 0 < l) by nra.
  pose proof (numerator_star t (shared_range t Ht)) as N. fold Q X in N.
  replace (u / l - o) with ((u - o * l) / l) by (field; lra).
  apply le_div_l; auto.
  apply Rle_trans with ((X + U / w) * Q); [nra|].
  unfold Rdiv at 2. rewrite Rmult_assoc, (Rmult_comm (/ _)).
  fold (Rdiv l (1 - Rm - Ul / w)).
  apply Rmult_le_compat_l; [lra|]. apply le_div_r; lra.
Qed.
End Row.

(* ---- the sum itself, for the log-sum-exp ---- *)
Lemma l_le : l <= sumf (fun x => (p x * exp (E x) + D x) * (1 + Rj x)) W + El.
Proof.
  pose proof (Rabs_rng _ _ l_is).
  assert (sumf (fun x => (q x + r x) * al x) W
    <= sumf (fun x => (p x * exp (E x) + D x) * (1 + Rj x)) W); [|lra].
  apply sumf_le. intros x H'. pose proof (q_pos x H'). pose proof (q_rng x H').
  eapply Rle_trans; [apply Rle_abs|]. apply Rabs_mult_le; [|now apply al_abs].
  apply Rabs_plus_le; [rewrite Rabs_pos_eq; lra|auto].
Qed.
(* m + ln l against the exact lse, where the exact weights are relative to m. *)
Theorem lse_error m lse : (forall x, In x W -> Rj x <= 1) -> 0 < sumf p W ->
  lse = m + ln (sumf p W) ->
  let lo := (sumf (fun x => p x * exp (- E x) * (1 - Rj x)) W
             - sumf (fun x => D x * (1 + Rj x)) W - El) / sumf p W in
  let hi := (sumf (fun x => (p x * exp (E x) + D x) * (1 + Rj x)) W + El) / sumf p W in
  0 < lo -> ln lo <= m + ln l - lse <= ln hi.
Proof.
  intros HR Hp -> lo hi Hlo.
  assert (L1 : lo * sumf p W <= l).
  { unfold lo, Rdiv. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
    eapply Rle_trans; [|apply l_ge; auto].
    apply Rplus_le_compat_r, Rplus_le_compat_r, sumf_le. intros x H.
    pose proof (HR x H). pose proof (q_rng x H). nra. }
  assert (L2 : l <= hi * sumf p W).
  { unfold hi, Rdiv. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra. exact l_le. }
  assert (l0 : 0 < l) by nra. assert (h0 : 0 < hi) by nra.
  replace (m + ln l - (m + ln (sumf p W))) with (ln l - ln (sumf p W)) by ring.
  assert (M : forall x y, 0 < x -> x <= y -> ln x <= ln y).
  { intros x y Hx [H| ->]; [left; now apply ln_increasing|lra]. }
  pose proof (M (lo * sumf p W) l ltac:(nra) L1) as H1. rewrite ln_mult in H1 by lra.
  pose proof (M l (hi * sumf p W) l0 L2) as H2. rewrite ln_mult in H2 by lra. lra.
Qed.
End Algebra.

(* The lse as computed: a log and an addition, each rounded. *)
Theorem lse_rounded m L lse off eps e d : Rabs (m + L - lse) <= off -> Rabs d <= eps ->
  Rabs ((m + L * (1 + e)) * (1 + d) - lse)
  <= off + Rabs e * Rabs L + eps * (Rabs lse + off + Rabs e * Rabs L).
Proof.
  intros H Hd.
  replace ((m + L * (1 + e)) * (1 + d) - lse) with ((m + L - lse) + e * L
    + d * (lse + (m + L - lse) + e * L)) by ring.
  repeat apply Rabs_plus_le; auto; try (apply Rabs_mult_le; lra).
  apply Rabs_mult_le; auto. repeat apply Rabs_plus_le; auto; try lra. apply Rabs_mult_le; lra.
Qed.

(* Scores off by at most d move the output by at most 2 V (e^d - 1) e^d. *)
Theorem score_perturbation (W : list (R * R * R)) V d :
  (forall x, In x W -> Rabs (fst (fst x) - snd (fst x)) <= d /\ Rabs (snd x) <= V) -> W <> [] ->
  let o f := sumf (fun x : R * R * R => exp (f x) * snd x) W / sumf (fun x : R * R * R => exp (f x)) W in
  Rabs (o (fun x => fst (fst x)) - o (fun x => snd (fst x))) <= 2 * V * ((exp d - 1) * exp d).
Proof.
  intros H HW o.
  destruct W as [|x0 W']; [tauto|]. set (W := x0 :: W') in *.
  destruct (H x0 (or_introl eq_refl)) as [h0 h1].
  assert (d0 : 0 <= d) by (eapply Rle_trans; [apply Rabs_pos|exact h0]).
  assert (V0 : 0 <= V) by (eapply Rle_trans; [apply Rabs_pos|exact h1]).
  assert (Pos : forall f, 0 < sumf (fun x : R * R * R => exp (f x)) W).
  { intros f. apply Rplus_lt_le_0_compat; [apply exp_pos|]. apply sumf_nonneg.
    intros; left; apply exp_pos. }
  pose proof (Pos (fun x => snd (fst x))) as P0. pose proof (Pos (fun x => fst (fst x))) as Q0.
  clear Pos. set (P := sumf (fun x : R * R * R => exp (snd (fst x))) W) in *.
  set (Q := sumf (fun x : R * R * R => exp (fst (fst x))) W) in *.
  set (p := fun x : R * R * R => exp (snd (fst x))). set (q := fun x : R * R * R => exp (fst (fst x))).
  set (ob := o (fun x => snd (fst x))).
  assert (Eob : ob = sumf (fun x => p x * snd x) W / P) by reflexivity.
  assert (R1 : forall x, In x W -> p x * exp (- d) <= q x <= p x * exp d).
  { intros x Hx. destruct (H x Hx) as [Hd _]. apply Rabs_rng in Hd. unfold p, q.
    rewrite <- !exp_plus. split; apply exp_le; lra. }
  assert (O1 : sumf (fun x => p x * (snd x - ob)) W = 0).
  { replace (sumf (fun x => p x * (snd x - ob)) W)
      with (sumf (fun x => p x * snd x) W - ob * P).
    - rewrite Eob. field. lra.
    - unfold P. rewrite <- sumf_scal, <- sumf_minus. apply sumf_ext. intros; unfold p; ring. }
  assert (Vo : Rabs ob <= V).
  { rewrite Eob. unfold Rdiv. rewrite Rabs_mult, (Rabs_pos_eq (/ P)) by (left; now apply Rinv_0_lt_compat).
    apply le_div_l; auto. unfold P. rewrite <- sumf_scal. apply sumf_abs_le. intros x Hx.
    rewrite Rmult_comm. apply Rabs_mult_le; [apply (H x Hx)|].
    rewrite Rabs_pos_eq by (left; apply exp_pos). unfold p; lra. }
  pose proof (shared_abs W p q (fun _ => d) snd (fun x _ => Rlt_le _ _ (exp_pos _)) R1 ob O1) as SA.
  assert (Bd : sumf (fun x => p x * (exp d - 1) * Rabs (snd x - ob)) W <= 2 * V * (exp d - 1) * P).
  { unfold P. rewrite <- sumf_scal. apply sumf_le. intros x Hx. destruct (H x Hx) as [_ Hv].
    assert (Rabs (snd x - ob) <= V + V) by (apply Rabs_plus_le; [|rewrite Rabs_Ropp]; auto).
    pose proof (exp_ge_1x d). pose proof (exp_pos (snd (fst x))). unfold p.
    assert (0 <= exp (snd (fst x)) * (exp d - 1)) by (apply Rmult_le_pos; lra). nra. }
  assert (PQ : P <= exp d * Q).
  { unfold P, Q. rewrite <- sumf_scal. apply sumf_le. intros x Hx.
    destruct (H x Hx) as [Hd _]. apply Rabs_rng in Hd. rewrite <- exp_plus. apply exp_le. lra. }
  replace (o (fun x => fst (fst x)) - ob) with (sumf (fun x => q x * (snd x - ob)) W / Q).
  - unfold Rdiv. rewrite Rabs_mult, (Rabs_pos_eq (/ Q)) by (left; now apply Rinv_0_lt_compat).
    apply le_div_l; auto. eapply Rle_trans; [exact SA|]. eapply Rle_trans; [exact Bd|].
    replace (2 * V * ((exp d - 1) * exp d) * Q) with (2 * V * (exp d - 1) * (exp d * Q)) by ring.
    apply Rmult_le_compat_l; auto. pose proof (exp_ge_1x d). apply Rmult_le_pos; lra.
  - replace (sumf (fun x => q x * (snd x - ob)) W)
      with (sumf (fun x => q x * snd x) W - ob * Q).
    + unfold o. change (sumf (fun x => exp (fst (fst x))) W) with Q.
      change (sumf (fun x => exp (fst (fst x)) * snd x) W) with (sumf (fun x => q x * snd x) W).
      field. lra.
    + unfold Q. rewrite <- sumf_scal, <- sumf_minus. apply sumf_ext. intros; unfold q; ring.
Qed.
