(* SPDX-License-Identifier: MIT *)
(* The backward pass of softmax attention: d o / d s_j = p_j (v_j - o), the
   FlashAttention form dS_j = P_j (dP_j - D), D = <do, o>, and the
   recomputation of P_j from the saved log-sum-exp. *)
From Coq Require Import Reals Lra List.
From Coquelicot Require Import Coquelicot.
Require Import Exact.
Import ListNotations.
Local Open Scope R_scope.

Section One.
Variables (A B : list elt).                (* the other elements, any masks *)
Definition at_ (x v : R) : list elt := A ++ (Some x, v) :: B.
Definition o (x v : R) := softmax_avg (at_ x v).
Definition p (x v : R) := exp x / esum (at_ x v).

Lemma esum_at x v : esum (at_ x v) = (esum A + esum B) + exp x.
Proof. unfold at_. rewrite esum_app. simpl. ring. Qed.
Lemma evsum_at x v : evsum (at_ x v) = (evsum A + evsum B) + exp x * v.
Proof. unfold at_. rewrite evsum_app. simpl. ring. Qed.
Lemma den_pos x : 0 < (esum A + esum B) + exp x.
Proof. pose proof (esum_nonneg A); pose proof (esum_nonneg B); pose proof (exp_pos x); lra. Qed.

Theorem deriv_score s v : is_derive (fun x => o x v) s (p s v * (v - o s v)).
Proof.
  apply is_derive_ext with
    (fun x => ((evsum A + evsum B) + exp x * v) / ((esum A + esum B) + exp x)).
  { intros x. unfold o, softmax_avg. now rewrite esum_at, evsum_at. }
  pose proof (den_pos s). auto_derive; [lra|].
  unfold p, o, softmax_avg. rewrite esum_at, evsum_at. field. lra.
Qed.

Theorem deriv_value s v : is_derive (fun y => o s y) v (p s v).
Proof.
  apply is_derive_ext with
    (fun y => ((evsum A + evsum B) + exp s * y) / ((esum A + esum B) + exp s)).
  { intros y. unfold o, softmax_avg. now rewrite esum_at, evsum_at. }
  pose proof (den_pos s). auto_derive; [lra|].
  unfold p. rewrite esum_at. field. lra.
Qed.

(* P_j from the saved statistics (m,l): P_j = e^{s_j - lse}             *)
Theorem p_recompute s v :
  p s v = exp (s - lse (direct (at_ s v))).
Proof.
  assert (HL : live (at_ s v)).
  { exists (Some s, v), s. split; auto. unfold at_. apply in_or_app; right; left; auto. }
  pose proof HL as HL'. apply live_lmax in HL'.
  assert (N : sm (direct (at_ s v)) <> None) by exact HL'.
  pose proof (l_bounds (Block (at_ s v)) HL) as [P _]. simpl in P.
  unfold Rminus. rewrite exp_plus, exp_Ropp, exp_lse by (auto; unfold direct in *; cbn [sl] in *; lra).
  now rewrite direct_l.
Qed.
End One.

(* Vector outputs: the same scores, d columns of values.  A column is given
   by the values of the other elements and of element j.                  *)
Definition col := (list elt * list elt * R * R)%type.      (* A, B, v_j, do *)
Definition loss (C : list col) (x : R) : R :=
  fold_right (fun '(A, B, v, g) r => g * o A B x v + r) 0 C.
Definition dP (C : list col) : R := fold_right (fun '(_, _, v, g) r => g * v + r) 0 C.
Definition D (C : list col) (s : R) : R := fold_right (fun '(A, B, v, g) r => g * o A B s v + r) 0 C.

Theorem flash_backward (C : list col) s P :
  (forall A B v g, In (A, B, v, g) C -> p A B s v = P) ->
  is_derive (loss C) s (P * (dP C - D C s)).
Proof.
  induction C as [|[[[A B] v] g] C IH]; intros H; simpl.
  - replace (P * (0 - 0)) with 0 by ring. apply @is_derive_const.
  - replace (P * _) with (plus (g * (P * (v - o A B s v))) (P * (dP C - D C s)))
      by (unfold plus; simpl; unfold dP, D; ring).
    apply (is_derive_plus (fun x => g * o A B x v) (loss C)).
    + apply (is_derive_scal (fun x => o A B x v)).
      rewrite <- (H A B v g) by (left; auto). apply deriv_score.
    + apply IH. intros; eapply H; right; eauto.
Qed.
