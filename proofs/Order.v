(* (A-ord) of docs/bounds.md: a sum whose operations are known errs by what each of them can, not by
   what the longest path could.

       |computed - exact| <= (1+eps)^N ( sum_j |w_j v_j| s_j  +  sum_J e_J |sum_J w v| )

   Keys come with the weight that all errors shared by l and u have made, and s, what their product
   may be off; a rescale by f multiplies all below it.  Underflow is not here (RowBound.v).
   Standard library only.  SPDX-License-Identifier: MIT *)
From Coq Require Import Reals Lra Lia List Arith.
Require Import Sums.
Import ListNotations.
Local Open Scope R_scope.

(* e: the roundoff of an operation, 0 where it is known to be exact. *)
Inductive sum := Key (w v s : R) | Add (e : R) (x y : sum) | Scale (e f : R) (x : sum).
Fixpoint value x :=
  match x with
  | Key w v _ => w * v
  | Add _ x y => value x + value y
  | Scale _ f x => f * value x
  end.
(* What a machine may return; each operation picks its own error. *)
Inductive computed : sum -> R -> Prop :=
  | computed_key w v s z : Rabs (z - w * v) <= s * Rabs (w * v) -> computed (Key w v s) z
  | computed_add e x y a b z : computed x a -> computed y b ->
      Rabs (z - (a + b)) <= e * Rabs (a + b) -> computed (Add e x y) z
  | computed_scale e f x a z : computed x a ->
      Rabs (z - f * a) <= e * Rabs (f * a) -> computed (Scale e f x) z.

(* In units of the end, k: what is still to be multiplied with. *)
Fixpoint own k x :=
  match x with
  | Key w v s => s * Rabs (k * (w * v))
  | Add _ x y => own k x + own k y
  | Scale _ f x => own (k * f) x
  end.
Fixpoint sums k x :=
  match x with
  | Key _ _ _ => 0
  | Add e x y => e * Rabs (k * (value x + value y)) + (sums k x + sums k y)
  | Scale e f x => e * Rabs (k * (f * value x)) + sums (k * f) x
  end.
Fixpoint steps x :=
  match x with
  | Key _ _ _ => O
  | Add _ x y => S (max (steps x) (steps y))
  | Scale _ _ x => S (steps x)
  end.

Section Order.
Variable eps : R.
Hypothesis eps_pos : 0 <= eps.
Fixpoint fits x :=
  match x with
  | Key _ _ s => 0 <= s
  | Add e x y => 0 <= e <= eps /\ fits x /\ fits y
  | Scale e _ x => 0 <= e <= eps /\ fits x
  end.

Lemma grow n n' : (n <= n')%nat -> 1 <= (1 + eps) ^ n <= (1 + eps) ^ n'.
Proof.
  intros H. split; [apply pow_R1_Rle; lra|]. apply Rle_pow; auto; lra.
Qed.
Lemma own_pos x : forall k, fits x -> 0 <= own k x.
Proof.
  induction x as [w v s|e x IHx y IHy|e f x IHx]; simpl; intros k F.
  - apply Rmult_le_pos; [lra|apply Rabs_pos].
  - destruct F as (_ & F1 & F2). specialize (IHx k F1). specialize (IHy k F2). lra.
  - apply IHx, F.
Qed.
Lemma sums_pos x : forall k, fits x -> 0 <= sums k x.
Proof.
  induction x as [w v s|e x IHx y IHy|e f x IHx]; simpl; intros k F; [lra| |].
  - destruct F as (E & F1 & F2). specialize (IHx k F1). specialize (IHy k F2).
    pose proof (Rmult_le_pos e _ ltac:(lra) (Rabs_pos (k * (value x + value y)))). lra.
  - destruct F as (E & F). specialize (IHx (k * f) F).
    pose proof (Rmult_le_pos e _ ltac:(lra) (Rabs_pos (k * (f * value x)))). lra.
Qed.

(* One operation: its result, its exact argument x near a known z. *)
Lemma rounded k e r x z B : 0 <= e <= eps ->
  Rabs (r - x) <= e * Rabs x -> Rabs (k * (x - z)) <= B ->
  Rabs (k * (r - z)) <= (1 + eps) * B + e * Rabs (k * z).
Proof.
  intros He H1 H2. replace (k * (r - z)) with (k * (r - x) + k * (x - z)) by ring.
  eapply Rle_trans; [apply Rabs_triang|].
  assert (Rabs (k * (r - x)) <= e * Rabs (k * x)).
  { rewrite !Rabs_mult. pose proof (Rmult_le_compat_l (Rabs k) _ _ (Rabs_pos k) H1). nra. }
  assert (Rabs (k * x) <= Rabs (k * (x - z)) + Rabs (k * z)).
  { replace (k * x) with (k * (x - z) + k * z) by ring. apply Rabs_triang. }
  pose proof (Rabs_pos (k * (x - z))). pose proof (Rabs_pos (k * z)). nra.
Qed.

(* Inside a sum, in units of the end. *)
Lemma within_sum x z : computed x z -> fits x -> forall k,
  Rabs (k * (z - value x)) <= (1 + eps) ^ steps x * (own k x + sums k x).
Proof.
  induction 1 as [w v s z H|e x y a b z _ IHx _ IHy H|e f x a z _ IHx H]; simpl; intros F k.
  - rewrite Rplus_0_r, Rmult_1_l, !Rabs_mult in *.
    pose proof (Rmult_le_compat_l (Rabs k) _ _ (Rabs_pos k) H). nra.
  - destruct F as (E & F1 & F2). specialize (IHx F1 k). specialize (IHy F2 k).
    set (n := max (steps x) (steps y)).
    pose proof (grow (steps x) n ltac:(lia)). pose proof (grow (steps y) n ltac:(lia)).
    pose proof (own_pos x k F1). pose proof (own_pos y k F2).
    pose proof (sums_pos x k F1). pose proof (sums_pos y k F2).
    assert (B : Rabs (k * (a + b - (value x + value y))) <=
      (1 + eps) ^ n * (own k x + sums k x + (own k y + sums k y))).
    { replace (k * (a + b - (value x + value y)))
        with (k * (a - value x) + k * (b - value y)) by ring.
      eapply Rle_trans; [apply Rabs_triang|].
      rewrite Rmult_plus_distr_l. apply Rplus_le_compat;
        (eapply Rle_trans; [eassumption|]; apply Rmult_le_compat_r; lra). }
    eapply Rle_trans; [exact (rounded k e z (a + b) _ _ E H B)|].
    pose proof (Rmult_le_pos e _ ltac:(lra) (Rabs_pos (k * (value x + value y)))).
    set (q := e * Rabs (k * (value x + value y))) in *. set (g := (1 + eps) ^ n) in *.
    assert (q <= (1 + eps) * g * q) by nra. nra.
  - destruct F as (E & F). specialize (IHx F (k * f)).
    pose proof (grow (steps x) (steps x) ltac:(lia)).
    pose proof (own_pos x (k * f) F). pose proof (sums_pos x (k * f) F).
    assert (B : Rabs (k * (f * a - f * value x)) <=
      (1 + eps) ^ steps x * (own (k * f) x + sums (k * f) x)).
    { replace (k * (f * a - f * value x)) with (k * f * (a - value x)) by ring. exact IHx. }
    eapply Rle_trans; [exact (rounded k e z (f * a) _ _ E H B)|].
    pose proof (Rmult_le_pos e _ ltac:(lra) (Rabs_pos (k * (f * value x)))).
    set (q := e * Rabs (k * (f * value x))) in *. set (g := (1 + eps) ^ steps x) in *.
    assert (q <= (1 + eps) * g * q) by nra. nra.
Qed.

Theorem order_error x z : fits x -> computed x z ->
  Rabs (z - value x) <= (1 + eps) ^ steps x * (own 1 x + sums 1 x).
Proof.
  intros F C. pose proof (within_sum x z C F 1) as H. rewrite Rmult_1_l in H. exact H.
Qed.
End Order.

(* A partial sum of computed weights is near that of the exact ones. *)
Theorem order_partial {A} (p w E v : A -> R) J :
  (forall j, In j J -> 0 <= p j /\ p j * exp (- E j) <= w j <= p j * exp (E j)) ->
  Rabs (sumf (fun j => w j * v j) J) <=
    Rabs (sumf (fun j => p j * v j) J) + sumf (fun j => p j * (exp (E j) - 1) * Rabs (v j)) J.
Proof.
  intros H. replace (sumf (fun j => w j * v j) J)
    with (sumf (fun j => p j * v j) J + sumf (fun j => (w j - p j) * v j) J).
  2:{ clear H. induction J as [|j J IH]; simpl; [lra|]. rewrite <- IH. ring. }
  eapply Rle_trans; [apply Rabs_triang|]. apply Rplus_le_compat_l.
  induction J as [|j J IH]; simpl; [rewrite Rabs_R0; lra|].
  eapply Rle_trans; [apply Rabs_triang|]. apply Rplus_le_compat; [|apply IH; firstorder].
  destruct (H j ltac:(left; auto)) as [P [L U]]. rewrite Rabs_mult.
  apply Rmult_le_compat_r; [apply Rabs_pos|]. apply Rabs_le.
  assert (2 <= exp (E j) + exp (- E j)).
  { pose proof (exp_pos (E j)). pose proof (exp_plus (E j) (- E j)) as Q.
    rewrite Rplus_opp_r, exp_0 in Q. nra. }
  nra.
Qed.
