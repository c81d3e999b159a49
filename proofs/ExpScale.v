(* The last step of the shipped exponentials, for any format: y 2^n by two multiplications, so that
   underflow is gradual and rounds once.  And what the certificates of Gappa need to be read.
   SPDX-License-Identifier: MIT *)
From Coq Require Import Reals ZArith Lra Lia Psatz Classical.
From Flocq Require Import Core Relative Mult_error.
From Gappa Require Import Gappa_library.
Require Import Sums.
Local Open Scope R_scope.

Lemma f2R n e : float2R (Float2 n e) = IZR n * bpow radix2 e. Proof. reflexivity. Qed.
(* Writes out the intervals of a certificate. *)
Ltac intervals := repeat match goal with
  | |- context [lower ?i] => let v := eval cbv in (lower i) in change (lower i) with v
  | |- context [upper ?i] => let v := eval cbv in (upper i) in change (upper i) with v
  end; rewrite ?f2R.
Lemma REL_intro a b (i : FF) : b <> 0 ->
  float2R (lower i) <= a / b - 1 <= float2R (upper i) -> REL a b i.
Proof. intros Hb H. exists (a / b - 1). split; auto. field. auto. Qed.
Lemma FIX_whole x : FIX x 0 -> exists z, x = IZR z.
Proof.
  intros (f & Hf & He). exists (Fnum f * Zpower radix2 (Fexp f))%Z.
  rewrite <- Hf, mult_IZR, IZR_Zpower by exact He. reflexivity.
Qed.
(* A polynomial's certificate l1, which says s2 /\ (not s6 \/ not s7) -> False, read as a bound: p the
   polynomial P r without rounding, y what is computed, Y the same written out, near Rabs bounds. *)
Ltac certificate l1 s2 s5 s6 s7 id_r P y Y r ER near_p near_e :=
  apply Rabs_le_inv in near_p; apply Rabs_le_inv in near_e;
  let E := fresh in assert (E : s2 r (exp r) ER);
  [ split; [split; [split|]|]; rewrite ?id_r;
    [ unfold BND; intervals; simpl; lra
    | apply REL_intro; [lra|]; change (Float1 1) with 1; fold (P r); intervals;
      let z := fresh in set (z := P r / exp r) in *; simpl; lra
    | unfold BND; intervals; simpl; lra
    | apply REL_intro; [lra|]; intervals; simpl; lra ]
  | apply NNPP; let N := fresh in intros N; apply (l1 r (exp r) ER); split; [exact E|];
    unfold s5, s6, s7; rewrite !id_r; change (Float1 1) with 1; change Y with (y r);
    apply NNPP; let M := fresh in let M1 := fresh in let M2 := fresh in intros M;
    apply not_or_and in M; destruct M as [M1 M2]; apply NNPP in M1, M2; apply N; split;
    [ revert M1; unfold BND; intervals; simpl; lra
    | let e := fresh in let He := fresh in let Ee := fresh in
      destruct M2 as (e & He & Ee); exists e; split; [|exact Ee];
      revert He; intervals; simpl; intros He; apply Rabs_le; lra ] ].

Section Scale.
Variables emin prec : Z.
Hypothesis Hprec : (0 < prec)%Z.
Local Instance scale_prec : Prec_gt_0 prec := Hprec.
Notation F := (generic_format radix2 (FLT_exp emin prec)).
Notation rnd := (round radix2 (FLT_exp emin prec) rndNE).
Lemma id_F x : F x -> rnd x = x.
Proof. intros; apply round_generic; auto; typeclasses eauto. Qed.
Lemma F_rnd x : F (rnd x).
Proof. apply generic_format_round; typeclasses eauto. Qed.

Variables (y : R) (n back : Z).
Hypothesis Fy : F y.
Hypothesis y_rng : / 2 <= y <= 2.
Lemma mag_y : (0 <= mag radix2 y)%Z.
Proof. apply mag_ge_bpow. simpl. rewrite Rabs_pos_eq; lra. Qed.
Lemma scaled_exact e : (emin + prec <= e)%Z -> F (y * bpow radix2 e).
Proof. intros He. apply mult_bpow_exact_FLT; auto. pose proof mag_y. lia. Qed.
(* y * power is exact; the way back rounds where the result is tiny. *)
Theorem two_steps : (emin + prec <= n + back)%Z ->
  rnd (rnd (y * bpow radix2 (n + back)) * bpow radix2 (- back)) = rnd (y * bpow radix2 n).
Proof.
  intros H. rewrite (id_F (y * bpow radix2 (n + back))) by now apply scaled_exact.
  rewrite Rmult_assoc, <- bpow_plus. f_equal. f_equal. f_equal. lia.
Qed.
Theorem scale_error : exists h, rnd (y * bpow radix2 n) = y * bpow radix2 n + h /\
  Rabs h <= bpow radix2 (emin - 1) /\ ((emin + prec <= n)%Z -> h = 0).
Proof.
  destruct (Z_le_gt_dec (emin + prec) n) as [H|H].
  - exists 0. rewrite id_F by now apply scaled_exact. rewrite Rabs_R0.
    split; [ring|split; [apply bpow_ge_0|auto]].
  - exists (rnd (y * bpow radix2 n) - y * bpow radix2 n). split; [ring|split; [|lia]].
    pose proof (bpow_gt_0 radix2 n) as Pn.
    assert (Hx : Rabs (y * bpow radix2 n) <= bpow radix2 (emin + prec)).
    { rewrite Rabs_pos_eq by nra. apply Rle_trans with (bpow radix2 (n + 1)).
      - rewrite bpow_plus. simpl. nra.
      - apply bpow_le. lia. }
    destruct (Req_dec (y * bpow radix2 n) (bpow radix2 (emin + prec))) as [E|E].
    { rewrite E, (id_F (bpow radix2 (emin + prec))) by (apply generic_format_FLT_bpow; auto; lia).
      rewrite Rminus_diag_eq, Rabs_R0 by reflexivity. apply bpow_ge_0. }
    eapply Rle_trans; [apply error_le_half_ulp; typeclasses eauto|].
    replace (bpow radix2 (emin - 1)) with (/ 2 * bpow radix2 emin)
      by (change (emin - 1)%Z with (emin + -1)%Z; rewrite bpow_plus; simpl; lra).
    apply Rmult_le_compat_l; [lra|].
    rewrite ulp_neq_0 by nra. apply bpow_le. unfold cexp, FLT_exp.
    assert (mag radix2 (y * bpow radix2 n) <= emin + prec)%Z; [|lia].
    apply mag_le_bpow; [nra|]. rewrite Rabs_pos_eq in * by nra. lra.
Qed.
End Scale.
