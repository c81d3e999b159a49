(* A sum in a known order costs its partial sums, not the sum of its magnitudes: (A-ord) of
   docs/bounds.md.  An addition and a rescale err by eps of what they give, and what they give is a
   sum of known keys and the errors made below.  Underflow is not here.
   SPDX-License-Identifier: MIT *)
From Coq Require Import Reals List Lra Lia Psatz Arith.
Require Import Sums.
Local Open Scope R_scope.

(* How a sum came about.  A key enters with its exact term and what product and P's rounding may have
   done to it; Rescaled brings a sum to a larger maximum; Joined is an addition without error, of 0. *)
Inductive order :=
  | Key (term slack : R)
  | Rescaled (a : R) (x : order)
  | Added (x y : order)
  | Joined (x y : order).
Fixpoint exact t := match t with
  | Key x _ => x
  | Rescaled a x => a * exact x
  | Added x y | Joined x y => exact x + exact y
  end.
(* The most roundings above a key. *)
Fixpoint roundings t := match t with
  | Key _ _ => 0%nat
  | Rescaled _ x => S (roundings x)
  | Added x y => S (max (roundings x) (roundings y))
  | Joined x y => max (roundings x) (roundings y)
  end.
Section Ordered.
Variable eps : R.
Hypothesis eps_pos : 0 <= eps.
Fixpoint computed t v := match t with
  | Key x s => Rabs (v - x) <= s
  | Rescaled a x => exists w d, computed x w /\ Rabs d <= eps /\ v = a * w * (1 + d)
  | Added x y => exists w z d, computed x w /\ computed y z /\ Rabs d <= eps /\ v = (w + z) * (1 + d)
  | Joined x y => exists w z, computed x w /\ computed y z /\ v = w + z
  end.
(* Each operation's exact result and each key's slack, as they are worth (times f) in the end. *)
Fixpoint charge f t := match t with
  | Key _ s => f * s
  | Rescaled a x => eps * (f * Rabs (a * exact x)) + charge (f * a) x
  | Added x y => eps * (f * Rabs (exact x + exact y)) + charge f x + charge f y
  | Joined x y => charge f x + charge f y
  end.
Fixpoint proper t := match t with
  | Key _ s => 0 <= s
  | Rescaled a x => 0 <= a /\ proper x
  | Added x y | Joined x y => proper x /\ proper y
  end.

Lemma charge_pos t : forall f, 0 <= f -> proper t -> 0 <= charge f t.
Proof.
  induction t as [x s|a x IH|x IHx y IHy|x IHx y IHy]; simpl; intros f Hf Hp.
  - now apply Rmult_le_pos.
  - destruct Hp as [Ha Hx]. pose proof (IH (f * a) ltac:(now apply Rmult_le_pos) Hx).
    assert (0 <= eps * (f * Rabs (a * exact x))); [|lra].
    apply Rmult_le_pos; auto. apply Rmult_le_pos; auto using Rabs_pos.
  - destruct Hp as [Hx Hy]. pose proof (IHx f Hf Hx). pose proof (IHy f Hf Hy).
    assert (0 <= eps * (f * Rabs (exact x + exact y))); [|lra].
    apply Rmult_le_pos; auto. apply Rmult_le_pos; auto using Rabs_pos.
  - destruct Hp as [Hx Hy]. pose proof (IHx f Hf Hx). pose proof (IHy f Hf Hy). lra.
Qed.
Lemma power_ge n m : (n <= m)%nat -> 1 <= (1 + eps) ^ n <= (1 + eps) ^ m.
Proof. intros H. split; [apply pow_R1_Rle; lra|apply Rle_pow; [lra|auto]]. Qed.
(* One rounding: an error e below, against the exact result E. *)
Lemma rounded f w E d e : 0 <= f -> Rabs d <= eps -> f * Rabs (w - E) <= e ->
  f * Rabs (w * (1 + d) - E) <= (1 + eps) * e + eps * (f * Rabs E).
Proof.
  intros Hf Hd He. replace (w * (1 + d) - E) with ((1 + d) * (w - E) + d * E) by ring.
  assert (H1 : Rabs (1 + d) <= 1 + eps) by (apply Rabs_plus_le; auto; rewrite Rabs_R1; lra).
  assert (H : Rabs ((1 + d) * (w - E) + d * E) <= (1 + eps) * Rabs (w - E) + eps * Rabs E).
  { apply Rabs_plus_le; apply Rabs_mult_le; auto; lra. }
  apply (Rmult_le_compat_l f) in H; auto. nra.
Qed.

Theorem ordered_error t : forall f v, 0 <= f -> proper t -> computed t v ->
  f * Rabs (v - exact t) <= (1 + eps) ^ roundings t * charge f t.
Proof.
  induction t as [x s|a x IH|x IHx y IHy|x IHx y IHy]; simpl; intros f v Hf Hp Hv.
  - rewrite Rmult_1_l. now apply Rmult_le_compat_l.
  - destruct Hp as [Ha Hx]. destruct Hv as (w & d & Hw & Hd & ->).
    pose proof (IH (f * a) w ltac:(now apply Rmult_le_pos) Hx Hw) as B.
    pose proof (charge_pos x (f * a) ltac:(now apply Rmult_le_pos) Hx) as C.
    destruct (power_ge (roundings x) (roundings x) ltac:(lia)) as [P _]. set (u := (1 + eps) ^ roundings x) in *.
    assert (B' : f * Rabs (a * w - a * exact x) <= u * charge (f * a) x).
    { rewrite <- Rmult_minus_distr_l, Rabs_mult, (Rabs_pos_eq a) by auto. lra. }
    eapply Rle_trans; [exact (rounded f _ _ d _ Hf Hd B')|].
    assert (0 <= eps * (f * Rabs (a * exact x))).
    { apply Rmult_le_pos; auto. apply Rmult_le_pos; auto using Rabs_pos. }
    set (g := eps * (f * Rabs (a * exact x))) in *. assert (1 <= (1 + eps) * u) by nra. nra.
  - destruct Hp as [Hx Hy]. destruct Hv as (w & z & d & Hw & Hz & Hd & ->).
    pose proof (IHx f w Hf Hx Hw) as B. pose proof (IHy f z Hf Hy Hz) as D.
    pose proof (charge_pos x f Hf Hx). pose proof (charge_pos y f Hf Hy).
    destruct (power_ge (roundings x) (max (roundings x) (roundings y)) ltac:(lia)) as [P1 P2].
    destruct (power_ge (roundings y) (max (roundings x) (roundings y)) ltac:(lia)) as [P3 P4].
    set (u := (1 + eps) ^ max (roundings x) (roundings y)) in *.
    assert (B' : f * Rabs (w + z - (exact x + exact y)) <= u * (charge f x + charge f y)).
    { replace (w + z - (exact x + exact y)) with ((w - exact x) + (z - exact y)) by ring.
      eapply Rle_trans; [apply Rmult_le_compat_l; [auto|apply Rabs_triang]|].
      assert ((1 + eps) ^ roundings x * charge f x <= u * charge f x) by now apply Rmult_le_compat_r.
      assert ((1 + eps) ^ roundings y * charge f y <= u * charge f y) by now apply Rmult_le_compat_r. lra. }
    eapply Rle_trans; [exact (rounded f _ _ d _ Hf Hd B')|].
    assert (0 <= eps * (f * Rabs (exact x + exact y))).
    { apply Rmult_le_pos; auto. apply Rmult_le_pos; auto using Rabs_pos. }
    set (g := eps * (f * Rabs (exact x + exact y))) in *.
    assert (1 <= (1 + eps) * u) by nra. nra.
  - destruct Hp as [Hx Hy]. destruct Hv as (w & z & Hw & Hz & ->).
    pose proof (IHx f w Hf Hx Hw) as B. pose proof (IHy f z Hf Hy Hz) as D.
    pose proof (charge_pos x f Hf Hx). pose proof (charge_pos y f Hf Hy).
    destruct (power_ge (roundings x) (max (roundings x) (roundings y)) ltac:(lia)) as [P1 P2].
    destruct (power_ge (roundings y) (max (roundings x) (roundings y)) ltac:(lia)) as [P3 P4].
    set (u := (1 + eps) ^ max (roundings x) (roundings y)) in *.
    replace (w + z - (exact x + exact y)) with ((w - exact x) + (z - exact y)) by ring.
    eapply Rle_trans; [apply Rmult_le_compat_l; [auto|apply Rabs_triang]|].
    assert ((1 + eps) ^ roundings x * charge f x <= u * charge f x) by now apply Rmult_le_compat_r.
    assert ((1 + eps) ^ roundings y * charge f y <= u * charge f y) by now apply Rmult_le_compat_r. lra.
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
