(* A sum in a known order costs its partial sums, not the sums of its magnitudes: what (A-ord) of the
   bound rests on, for a row that takes in its tiles one after the other.

       x' = fl(fl(a x) + t),  a the factor of the rescale, 1 and exact where the maximum stays

   Underflow is not here.  SPDX-License-Identifier: MIT *)
From Coq Require Import Reals List Lra Lia Psatz.
Require Import Sums Rounding.
Import ListNotations.
Local Open Scope R_scope.

(* A tile: the factor that the sum so far is brought to its reference with, whether that is a rounded
   product (1) or nothing at all (0), and its own sum. *)
Record tile := Tile { factor : R; rescaled : nat; sum : R }.
Section Ordered.
Variable eps : R.
Hypothesis eps_pos : 0 <= eps.
Definition product (k : nat) a x y :=
  match k with O => a = 1 /\ y = x | S _ => exists r, Rabs r <= eps /\ y = a * x * (1 + r) end.
Inductive taken : list tile -> R -> R -> Prop :=
  | Done x : taken [] x x
  | Take a k t L x y z w : product k a x y -> (exists d, Rabs d <= eps /\ z = (y + t) * (1 + d)) ->
      taken L z w -> taken (Tile a k t :: L) x w.

(* The same without rounding, and what a sum is worth in the end. *)
Fixpoint exact S L := match L with [] => S | e :: L => exact (factor e * S + sum e) L end.
Fixpoint later L := match L with [] => 1 | e :: L => factor e * later L end.
(* The partial sums, each as it is worth in the end: eps of each, and eps more of the one before where
   the row was rescaled. *)
Fixpoint partials P L := match L with
  | [] => 0
  | e :: L => let P' := P + sum e * later L in
      eps * Rabs P' + INR (rescaled e) * (eps * (1 + eps) * Rabs P) + partials P' L
  end.

Lemma later_pos L : List.Forall (fun e => 0 <= factor e) L -> 0 <= later L.
Proof. induction 1 as [|e L H _ IH]; simpl; [lra|]. now apply Rmult_le_pos. Qed.
Lemma partials_pos L : forall P, 0 <= partials P L.
Proof.
  induction L as [|e L IH]; intros P; simpl; [lra|].
  pose proof (IH (P + sum e * later L)). pose proof (pos_INR (rescaled e)).
  assert (0 <= eps * Rabs (P + sum e * later L)) by (apply Rmult_le_pos; auto using Rabs_pos).
  assert (0 <= eps * (1 + eps) * Rabs P) by (apply Rmult_le_pos; [nra|apply Rabs_pos]).
  assert (0 <= INR (rescaled e) * (eps * (1 + eps) * Rabs P)) by now apply Rmult_le_pos. lra.
Qed.
Lemma exact_is L : forall S, exact S L = S * later L + exact 0 L.
Proof.
  induction L as [|e L IH]; intros S; simpl; [ring|].
  rewrite (IH (factor e * S + sum e)), (IH (factor e * 0 + sum e)). ring.
Qed.

(* One tile: an error so far, eps of the new sum, eps of the old one where it was rescaled. *)
Lemma one_tile a k t S x y z : 0 <= a -> (k <= 1)%nat -> product k a x y ->
  (exists d, Rabs d <= eps /\ z = (y + t) * (1 + d)) ->
  Rabs (z - (a * S + t)) <= (1 + eps) ^ 2 * (a * Rabs (x - S)) +
    eps * Rabs (a * S + t) + INR k * (eps * (1 + eps) * (a * Rabs S)).
Proof.
  intros Ha Hk Hp (d & Hd & ->).
  assert (E : exists r, Rabs r <= INR k * eps /\ y = a * x * (1 + r)).
  { destruct k as [|[|k]]; [|destruct Hp as (r & Hr & ->); exists r; simpl; split; [lra|auto]|lia].
    destruct Hp as [-> ->]. exists 0. rewrite Rabs_R0. simpl. split; [lra|ring]. }
  destruct E as (r & Hr & ->).
  assert (Hk' : 0 <= INR k <= 1) by (split; [apply pos_INR|change 1 with (INR 1); now apply le_INR]).
  replace ((a * x * (1 + r) + t) * (1 + d) - (a * S + t)) with
    (((1 + r) * (1 + d)) * (a * (x - S)) + d * (a * S + t) + (r * (1 + d)) * (a * S)) by ring.
  assert (U : forall e, Rabs e <= eps -> Rabs (1 + e) <= 1 + eps).
  { intros e He. apply Rabs_plus_le; auto. rewrite Rabs_R1. lra. }
  assert (Hr1 : Rabs r <= eps) by nra.
  repeat apply Rabs_plus_le.
  - apply Rabs_mult_le.
    + simpl. rewrite Rmult_1_r. apply Rabs_mult_le; auto.
    + rewrite Rabs_mult, (Rabs_pos_eq a) by auto. lra.
  - apply Rabs_mult_le; auto. lra.
  - replace (INR k * (eps * (1 + eps) * (a * Rabs S))) with ((INR k * eps * (1 + eps)) * (a * Rabs S)) by ring.
    apply Rabs_mult_le; [apply Rabs_mult_le; auto|]. rewrite Rabs_mult, (Rabs_pos_eq a) by auto. lra.
Qed.

Theorem ordered_error L : forall S x w, taken L x w ->
  List.Forall (fun e => 0 <= factor e /\ (rescaled e <= 1)%nat) L ->
  Rabs (w - exact S L) <=
    (1 + eps) ^ (2 * length L) * (later L * Rabs (x - S) + partials (S * later L) L).
Proof.
  induction L as [|e L IH]; intros S x w H HL.
  - inversion H; subst. simpl. rewrite Rplus_0_r, !Rmult_1_l. lra.
  - inversion H as [|a k t L' x' y z w' Hp Hs Ht]; subst. inversion HL as [|? ? [Ha Hk] HL']; subst.
    cbn [factor rescaled sum] in *.
    pose proof (IH (a * S + t) z w Ht HL') as B.
    pose proof (one_tile a k t S x y z Ha Hk Hp Hs) as O. clear IH Ht Hp Hs.
    assert (L0 : 0 <= later L) by (apply later_pos; eapply Forall_impl; [|exact HL']; simpl; tauto).
    cbn [exact later partials factor rescaled sum]. eapply Rle_trans; [exact B|]. clear B.
    replace (2 * length (Tile a k t :: L))%nat with (2 + 2 * length L)%nat by (simpl; lia).
    rewrite pow_add. set (u := (1 + eps) ^ (2 * length L)).
    assert (U : 1 <= u) by (apply pow_R1_Rle; lra).
    assert (U2 : 1 <= (1 + eps) ^ 2) by (apply pow_R1_Rle; lra). set (g := (1 + eps) ^ 2) in *.
    replace (S * (a * later L) + t * later L) with ((a * S + t) * later L) by ring.
    set (Q := partials ((a * S + t) * later L) L).
    assert (HQ : 0 <= Q) by apply partials_pos.
    rewrite (Rmult_comm g u), Rmult_assoc. apply Rmult_le_compat_l; [lra|].
    pose proof (Rmult_le_compat_l (later L) _ _ L0 O) as M.
    rewrite (Rabs_mult (a * S + t)), (Rabs_mult S), (Rabs_mult a), (Rabs_pos_eq a), (Rabs_pos_eq (later L)) by auto.
    set (A := later L * (eps * Rabs (a * S + t))).
    set (C := later L * (INR k * (eps * (1 + eps) * (a * Rabs S)))).
    assert (HA : 0 <= A) by (unfold A; apply Rmult_le_pos; auto; apply Rmult_le_pos; auto using Rabs_pos).
    assert (HC : 0 <= C).
    { unfold C. apply Rmult_le_pos; auto. apply Rmult_le_pos; auto using pos_INR.
      apply Rmult_le_pos; [nra|]. apply Rmult_le_pos; auto using Rabs_pos. }
    replace (eps * (Rabs (a * S + t) * later L)) with A by (unfold A; ring).
    replace (INR k * (eps * (1 + eps) * (Rabs S * (a * later L)))) with C by (unfold C; ring).
    replace (later L * (g * (a * Rabs (x - S)) + eps * Rabs (a * S + t) + INR k * (eps * (1 + eps) * (a * Rabs S))))
      with (g * (a * later L * Rabs (x - S)) + A + C) in M by (unfold A, C; ring).
    assert (A <= g * A) by nra. assert (C <= g * C) by nra. assert (Q <= g * Q) by nra. lra.
Qed.
End Ordered.

(* The weights that a row computes are off, by e^E at most: so are the partial sums. *)
Theorem partial_sum_weights {T} (W : list T) (p kappa E v : T -> R) :
  (forall x, In x W -> 0 <= p x /\ Rabs (kappa x) <= E x) ->
  Rabs (sumf (fun x => p x * exp (kappa x) * v x) W) <=
  Rabs (sumf (fun x => p x * v x) W) + sumf (fun x => p x * (exp (E x) - 1) * Rabs (v x)) W.
Proof.
  intros H. replace (sumf (fun x => p x * exp (kappa x) * v x) W) with
    (sumf (fun x => p x * v x) W + sumf (fun x => p x * (exp (kappa x) - 1) * v x) W).
  2:{ rewrite <- sumf_plus. apply sumf_ext. intros x _. ring. }
  apply Rabs_plus_le; [lra|]. apply sumf_abs_le. intros x Hx. destruct (H x Hx) as [Hp Hk].
  rewrite Rabs_mult. apply Rmult_le_compat_r; [apply Rabs_pos|].
  rewrite Rabs_mult, (Rabs_pos_eq (p x)) by auto. apply Rmult_le_compat_l; auto.
  apply Rabs_rng in Hk. assert (exp (kappa x) <= exp (E x)) by (apply exp_le; lra).
  assert (exp (- E x) <= exp (kappa x)) by (apply exp_le; lra).
  assert (2 <= exp (E x) + exp (- E x)) by (pose proof (exp_ge_1x (E x)); pose proof (exp_ge_1x (- E x)); lra).
  apply Rabs_le. lra.
Qed.
