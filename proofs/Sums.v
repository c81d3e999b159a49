(* Sums over lists, and how much a sum of n exponentials can change when every exponent is
   stretched by 1 - d or 1 + d: by a factor of n^d, whatever the range of the exponents.
   Standard library only.  SPDX-License-Identifier: MIT *)
From Coq Require Import Reals Lra Lia List Arith.
Import ListNotations.
Local Open Scope R_scope.

Lemma exp_le x y : x <= y -> exp x <= exp y.
Proof. intros [H| ->]; [left; now apply exp_increasing|right; reflexivity]. Qed.
Lemma exp_le_1 x : x <= 0 -> exp x <= 1.
Proof. intros H. rewrite <- exp_0. now apply exp_le. Qed.
Lemma exp_ge_1x x : 1 + x <= exp x.
Proof.
  destruct (Req_dec x 0) as [->|H]; [rewrite exp_0; lra|]. left. now apply exp_ineq1.
Qed.
Lemma ln_nonneg x : 1 <= x -> 0 <= ln x.
Proof. intros [H|<-]; [rewrite <- ln_1; left; apply ln_increasing; lra|rewrite ln_1; lra]. Qed.
Lemma Rabs_rng d r : Rabs d <= r -> - r <= d <= r.
Proof. unfold Rabs; destruct (Rcase_abs d); lra. Qed.
Lemma Rabs_mult_le x y a b : Rabs x <= a -> Rabs y <= b -> Rabs (x * y) <= a * b.
Proof. intros. rewrite Rabs_mult. apply Rmult_le_compat; auto using Rabs_pos. Qed.
Lemma Rabs_plus_le x y a b : Rabs x <= a -> Rabs y <= b -> Rabs (x + y) <= a + b.
Proof. intros. eapply Rle_trans; [apply Rabs_triang|]. lra. Qed.
Lemma le_div_l a b c : 0 < b -> a <= c * b -> a / b <= c.
Proof.
  intros Hb H. apply (Rmult_le_reg_r b); auto. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra.
Qed.
Lemma le_div_r a b c : 0 < b -> a * b <= c -> a <= c / b.
Proof.
  intros Hb H. apply (Rmult_le_reg_r b); auto. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra.
Qed.

(* ---- sums ---- *)
Section Sum.
Context {A : Type}.
Implicit Types (f g : A -> R) (L : list A).
Definition sumf f L : R := fold_right (fun e r => f e + r) 0 L.

Lemma sumf_cons f e L : sumf f (e :: L) = f e + sumf f L. Proof. reflexivity. Qed.
Lemma sumf_app f L L' : sumf f (L ++ L') = sumf f L + sumf f L'.
Proof. induction L as [|e L IH]; simpl; [ring|]. rewrite IH; ring. Qed.
Lemma sumf_le f g L : (forall e, In e L -> f e <= g e) -> sumf f L <= sumf g L.
Proof.
  induction L as [|e L IH]; simpl; intros H; [lra|].
  apply Rplus_le_compat; [apply H; auto|apply IH; auto].
Qed.
Lemma sumf_scal c f L : sumf (fun e => c * f e) L = c * sumf f L.
Proof. induction L as [|e L IH]; simpl; [ring|]. rewrite IH; ring. Qed.
Lemma sumf_plus f g L : sumf (fun e => f e + g e) L = sumf f L + sumf g L.
Proof. induction L as [|e L IH]; simpl; [ring|]. rewrite IH; ring. Qed.
Lemma sumf_minus f g L : sumf (fun e => f e - g e) L = sumf f L - sumf g L.
Proof. induction L as [|e L IH]; simpl; [ring|]. rewrite IH; ring. Qed.
Lemma sumf_const c L : sumf (fun _ => c) L = INR (length L) * c.
Proof.
  induction L as [|e L IH]; [simpl; ring|].
  change (length (e :: L)) with (S (length L)). rewrite S_INR, sumf_cons, IH. ring.
Qed.
Lemma sumf_ext f g L : (forall e, In e L -> f e = g e) -> sumf f L = sumf g L.
Proof.
  induction L as [|e L IH]; simpl; auto. intros H. rewrite IH, H; auto.
Qed.
Lemma sumf_nonneg f L : (forall e, In e L -> 0 <= f e) -> 0 <= sumf f L.
Proof.
  intros H. replace 0 with (sumf (fun _ => 0) L) by (rewrite sumf_const; ring).
  now apply sumf_le.
Qed.
Lemma sumf_ge_in f L e : (forall x, In x L -> 0 <= f x) -> In e L -> f e <= sumf f L.
Proof.
  induction L as [|x L IH]; simpl; [tauto|]. intros H.
  assert (0 <= sumf f L) by (apply sumf_nonneg; auto). pose proof (H x (or_introl eq_refl)).
  intros [->|He]; [lra|]. specialize (IH ltac:(auto) He). lra.
Qed.
Lemma sumf_abs f L : Rabs (sumf f L) <= sumf (fun e => Rabs (f e)) L.
Proof.
  induction L as [|e L IH]; simpl; [rewrite Rabs_R0; lra|].
  eapply Rle_trans; [apply Rabs_triang|]. lra.
Qed.
Lemma sumf_abs_le f g L : (forall e, In e L -> Rabs (f e) <= g e) -> Rabs (sumf f L) <= sumf g L.
Proof. intros H. eapply Rle_trans; [apply sumf_abs|]. now apply sumf_le. Qed.
End Sum.
Lemma sumf_map {A B} (h : A -> B) f L : sumf f (map h L) = sumf (fun x => f (h x)) L.
Proof. induction L as [|e L IH]; simpl; auto. now rewrite IH. Qed.

(* ---- exact quantities of one row ---- *)
Definition elt := (R * R)%type.    (* score and value of a visible key *)
Definition SK (k m : R) := sumf (fun e : elt => exp (k * (fst e - m))).
Definition SS (m : R) := sumf (fun e : elt => exp (fst e - m)).
Definition TT (m : R) := sumf (fun e : elt => exp (fst e - m) * snd e).

Lemma SS_ge1 m L : (exists e, In e L /\ fst e = m) -> 1 <= SS m L.
Proof.
  intros (e & He & <-). eapply Rle_trans; [|apply (sumf_ge_in _ L e)]; auto.
  - cbv beta. rewrite Rminus_diag_eq, exp_0; lra.
  - intros; left; apply exp_pos.
Qed.
Lemma TT_le V m L : (forall e, In e L -> Rabs (snd e) <= V) -> Rabs (TT m L) <= V * SS m L.
Proof.
  intros H. unfold SS. rewrite <- sumf_scal. apply sumf_abs_le. intros e He.
  rewrite Rabs_mult, (Rabs_pos_eq (exp _)), Rmult_comm by (left; apply exp_pos).
  apply Rmult_le_compat_r; [left; apply exp_pos|auto].
Qed.

(* The quotient of the two sums does not depend on the reference m. *)
Theorem softmax_ratio m L : L <> [] ->
  TT m L / SS m L = sumf (fun e : elt => exp (fst e) * snd e) L / sumf (fun e : elt => exp (fst e)) L.
Proof.
  intros HL.
  assert (E1 : TT m L = exp (- m) * sumf (fun e : elt => exp (fst e) * snd e) L).
  { rewrite <- sumf_scal. apply sumf_ext. intros e _. unfold Rminus. rewrite exp_plus. ring. }
  assert (E2 : SS m L = exp (- m) * sumf (fun e : elt => exp (fst e)) L).
  { rewrite <- sumf_scal. apply sumf_ext. intros e _. unfold Rminus. rewrite exp_plus. ring. }
  rewrite E1, E2. pose proof (exp_pos (- m)).
  assert (0 < sumf (fun e : elt => exp (fst e)) L).
  { destruct L as [|e L]; [tauto|]. apply Rplus_lt_le_0_compat; [apply exp_pos|].
    apply sumf_nonneg. intros; left; apply exp_pos. }
  field. lra.
Qed.

(* ---- Young's inequality for exp ---- *)
Lemma young_lt d y : 0 <= d <= 1 -> exp ((1 - d) * y) <= (1 - d) * exp y + d.
Proof.
  intros H. pose proof (exp_ge_1x (d * y)) as H1.
  pose proof (exp_ge_1x (- ((1 - d) * y))) as H2.
  set (A := (1 - d) * y) in *. pose proof (exp_pos A) as HA.
  assert (E1 : exp y = exp A * exp (d * y)) by (rewrite <- exp_plus; f_equal; unfold A; ring).
  assert (E2 : exp A * exp (- A) = 1) by (rewrite <- exp_plus, Rplus_opp_r, exp_0; auto).
  replace ((1 - d) * exp y + d) with (exp A * ((1 - d) * exp (d * y) + d * exp (- A))).
  2:{ transitivity ((1 - d) * (exp A * exp (d * y)) + d * (exp A * exp (- A))); [ring|].
      rewrite <- E1, E2. ring. }
  rewrite <- (Rmult_1_r (exp A)) at 1. apply Rmult_le_compat_l; [lra|].
  assert ((1 - d) * (1 + d * y) <= (1 - d) * exp (d * y)) by (apply Rmult_le_compat_l; lra).
  assert (d * (1 + - A) <= d * exp (- A)) by (apply Rmult_le_compat_l; lra).
  unfold A in *. nra.
Qed.
Lemma young_gt d y : 0 <= d -> (1 + d) * exp y - d <= exp ((1 + d) * y).
Proof.
  intros H. assert (I : / (1 + d) * (1 + d) = 1) by (apply Rinv_l; lra).
  assert (P : 0 < / (1 + d)) by (apply Rinv_0_lt_compat; lra).
  pose proof (young_lt (d * / (1 + d)) ((1 + d) * y)) as Y.
  replace ((1 - d * / (1 + d)) * ((1 + d) * y)) with y in Y by (field; lra).
  assert (R : 0 <= d * / (1 + d) <= 1) by nra. specialize (Y R).
  apply (Rmult_le_reg_l (/ (1 + d))); auto.
  replace (/ (1 + d) * ((1 + d) * exp y - d)) with (exp y - d * / (1 + d)) by (field; lra).
  replace (1 - d * / (1 + d)) with (/ (1 + d)) in Y by (field; lra). lra.
Qed.

(* ---- n^d: the mean of the weights is the point of comparison ---- *)
Section Power.
Variables (d m : R) (L : list elt).
Hypothesis S1 : 1 <= SS m L.
Let n := INR (length L).
Let c := ln (SS m L / n).

Lemma n_pos : 0 < n.
Proof.
  unfold n. destruct L as [|e L']; [unfold SS in S1; simpl in S1; lra|].
  apply lt_0_INR; simpl; lia.
Qed.
Lemma exp_c : exp c = SS m L / n.
Proof. pose proof n_pos. apply exp_ln, Rdiv_lt_0_compat; lra. Qed.
Lemma c_ge : - ln n <= c.
Proof.
  pose proof n_pos. pose proof (ln_nonneg _ S1). unfold c, Rdiv.
  rewrite ln_mult, ln_Rinv by (try apply Rinv_0_lt_compat; lra). lra.
Qed.
Lemma sum_affine k :
  sumf (fun e : elt => exp (k * c) * ((k * exp (- c)) * exp (fst e - m) + (1 - k))) L
  = exp (k * c) * n.
Proof.
  pose proof n_pos. rewrite sumf_scal, sumf_plus, sumf_scal, sumf_const. fold (SS m L) n.
  f_equal. rewrite exp_Ropp, exp_c. field. lra.
Qed.
Lemma exp_around k x : exp (k * x) = exp (k * c) * exp (k * (x - c)).
Proof. rewrite <- exp_plus. f_equal. ring. Qed.

(* Exponents stretched by 1 - d: the sum grows by at most n^d. *)
Theorem SK_upper : 0 <= d <= 1 -> SK (1 - d) m L <= SS m L * exp (d * ln n).
Proof.
  intros Hd. pose proof n_pos. pose proof c_ge.
  apply Rle_trans with (exp ((1 - d) * c) * n).
  - rewrite <- (sum_affine (1 - d)). apply sumf_le. intros e _. rewrite (exp_around (1 - d) (fst e - m)).
    apply Rmult_le_compat_l; [left; apply exp_pos|].
    pose proof (young_lt d (fst e - m - c) Hd) as Y.
    replace (exp (fst e - m - c)) with (exp (fst e - m) * exp (- c)) in Y
      by (rewrite <- exp_plus; f_equal; ring). lra.
  - replace ((1 - d) * c) with (c + - d * c) by ring. rewrite exp_plus, exp_c.
    replace (SS m L / n * exp (- d * c) * n) with (SS m L * exp (- d * c)) by (field; lra).
    apply Rmult_le_compat_l; [lra|]. apply exp_le. nra.
Qed.
(* Exponents stretched by 1 + d: the sum shrinks by at most n^d. *)
Theorem SK_lower : 0 <= d -> SS m L * exp (- (d * ln n)) <= SK (1 + d) m L.
Proof.
  intros Hd. pose proof n_pos. pose proof c_ge.
  apply Rle_trans with (exp ((1 + d) * c) * n).
  - replace ((1 + d) * c) with (c + d * c) by ring. rewrite exp_plus, exp_c.
    replace (SS m L / n * exp (d * c) * n) with (SS m L * exp (d * c)) by (field; lra).
    apply Rmult_le_compat_l; [lra|]. apply exp_le. nra.
  - rewrite <- (sum_affine (1 + d)). apply sumf_le. intros e _. rewrite (exp_around (1 + d) (fst e - m)).
    apply Rmult_le_compat_l; [left; apply exp_pos|].
    pose proof (young_gt d (fst e - m - c) Hd) as Y.
    replace (exp (fst e - m - c)) with (exp (fst e - m) * exp (- c)) in Y
      by (rewrite <- exp_plus; f_equal; ring). lra.
Qed.
End Power.

(* A sum of weights known to Kl, a weighted sum known to Ku: what the quotient is worth. *)
Theorem quotient_error l u S T V Kl Ku El Eu :
  1 <= S -> 0 <= V -> 0 <= Ku -> 0 <= El -> 0 <= Eu -> Rabs T <= V * S ->
  Rabs (l - S) <= Kl * S + El -> Rabs (u - T) <= V * Ku * S + Eu -> Kl + El < 1 ->
  0 < l /\ Rabs (u / l - T / S) <= ((Kl + Ku) * V + V * El + Eu) / (1 - Kl - El).
Proof.
  intros HS HV HKu HEl HEu HT Hl Hu HK.
  assert (K1 : El <= El * S) by nra. assert (K2 : Eu <= Eu * S) by nra.
  assert (Hl' : Rabs (l - S) <= (Kl + El) * S) by lra.
  assert (Hu' : Rabs (u - T) <= (V * Ku + Eu) * S) by lra.
  assert (KE : 0 <= Kl + El) by (pose proof (Rabs_pos (l - S)); nra).
  pose proof (Rabs_rng _ _ Hl') as Rl.
  assert (P1 : 0 < S * (1 - Kl - El)) by (apply Rmult_lt_0_compat; lra).
  assert (Pl : S * (1 - Kl - El) <= l) by lra.
  split; [lra|]. set (B := (Kl + Ku) * V + V * El + Eu).
  assert (N : Rabs (u * S - T * l) <= B * S * S).
  { replace (u * S - T * l) with ((u - T) * S + - T * (l - S)) by ring.
    replace (B * S * S) with ((V * Ku + Eu) * S * S + V * S * ((Kl + El) * S))
      by (unfold B; ring).
    apply Rabs_plus_le; apply Rabs_mult_le; auto.
    - rewrite Rabs_pos_eq; lra.
    - now rewrite Rabs_Ropp. }
  assert (Pos : 0 < l * S) by (apply Rmult_lt_0_compat; lra).
  replace (u / l - T / S) with ((u * S - T * l) / (l * S)) by (field; lra).
  unfold Rdiv at 1. rewrite Rabs_mult, (Rabs_pos_eq (/ (l * S)))
    by (left; apply Rinv_0_lt_compat; auto).
  fold (Rdiv (Rabs (u * S - T * l)) (l * S)).
  apply le_div_l; auto. eapply Rle_trans; [exact N|].
  assert (B0 : 0 <= B) by (unfold B; replace ((Kl + Ku) * V + V * El + Eu)
    with ((Kl + El) * V + Ku * V + Eu) by ring;
    assert (0 <= (Kl + El) * V) by (apply Rmult_le_pos; lra);
    assert (0 <= Ku * V) by (apply Rmult_le_pos; lra); lra).
  replace (B / (1 - Kl - El) * (l * S)) with (B * S * (l / (1 - Kl - El))) by (field; lra).
  apply Rmult_le_compat_l; [apply Rmult_le_pos; lra|]. apply le_div_r; lra.
Qed.
