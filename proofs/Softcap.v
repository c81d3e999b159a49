(* The softcap y = C tanh(x/C) as at_row.h computes it: it passes an error on unenlarged, and adds its
   own three roundings, tanh's error and that of the constant.  The underflow of its operations,
   charged in ref/bound_score.c as 3 tiny (1 + C), is not here.  SPDX-License-Identifier: MIT *)
From Coq Require Import Reals Lra Psatz.
Require Import Sums.
Local Open Scope R_scope.

(* ---- sinh, cosh, tanh ---- *)
Lemma cosh_ge1 x : 1 <= cosh x.
Proof.
  unfold cosh. pose proof (exp_pos x). pose proof (exp_pos (- x)).
  assert (E : exp x * exp (- x) = 1) by (rewrite <- exp_plus, Rplus_opp_r; apply exp_0).
  assert (0 <= (exp x - exp (- x)) ^ 2) by apply pow2_ge_0.
  assert (4 <= (exp x + exp (- x)) ^ 2) by nra. nra.
Qed.
Lemma pythagoras x : cosh x * cosh x - sinh x * sinh x = 1.
Proof.
  unfold cosh, sinh. assert (E : exp x * exp (- x) = 1) by (rewrite <- exp_plus, Rplus_opp_r; apply exp_0).
  nra.
Qed.
Lemma sinh_opp x : sinh (- x) = - sinh x. Proof. unfold sinh. rewrite Ropp_involutive. lra. Qed.
Lemma cosh_opp x : cosh (- x) = cosh x. Proof. unfold cosh. rewrite Ropp_involutive. lra. Qed.
Lemma tanh_opp x : tanh (- x) = - tanh x.
Proof. unfold tanh. rewrite sinh_opp, cosh_opp. field. pose proof (cosh_ge1 x). lra. Qed.
Lemma sinh_pos x : 0 <= x -> 0 <= sinh x.
Proof. intros H. unfold sinh. pose proof (exp_le (- x) x ltac:(lra)). lra. Qed.
Lemma tanh_pos x : 0 <= x -> 0 <= tanh x.
Proof.
  intros H. unfold tanh, Rdiv. pose proof (cosh_ge1 x).
  apply Rmult_le_pos; [now apply sinh_pos|]. left. apply Rinv_0_lt_compat. lra.
Qed.
Lemma cosh_mono x y : 0 <= x <= y -> cosh x <= cosh y.
Proof.
  intros [Hx [H| ->]]; [|lra].
  destruct (MVT_cor2 cosh sinh x y H) as (c & Hc & Hr); [intros; apply derivable_pt_lim_cosh|].
  pose proof (sinh_pos c ltac:(lra)). nra.
Qed.
(* sinh is convex: its slope from 0 grows. *)
Lemma sinh_slope a b : 0 <= b <= a -> a * sinh b <= b * sinh a.
Proof.
  intros [[Hb| <-] [Ha|Ha]]; [|rewrite Ha; lra|unfold sinh; rewrite Ropp_0; lra|unfold sinh; rewrite Ropp_0; lra].
  destruct (MVT_cor2 sinh cosh 0 b Hb) as (c & Hc & Rc); [intros; apply derivable_pt_lim_sinh|].
  destruct (MVT_cor2 sinh cosh b a Ha) as (d & Hd & Rd); [intros; apply derivable_pt_lim_sinh|].
  rewrite sinh_0 in Hc. pose proof (cosh_mono c b ltac:(lra)). pose proof (cosh_mono b d ltac:(lra)).
  assert (sinh b <= b * cosh b) by nra.
  assert ((a - b) * cosh b <= sinh a - sinh b) by (rewrite Hd, Rmult_comm; apply Rmult_le_compat_r; lra).
  nra.
Qed.
(* tanh is concave: between its value and its chord. *)
Lemma tanh_chord t r : 0 <= t -> 0 <= r <= 1 -> r * tanh t <= tanh (r * t) <= tanh t.
Proof.
  intros Ht Hr. pose proof (cosh_ge1 t) as C1. pose proof (cosh_ge1 (r * t)) as C2.
  assert (P : forall x y, sinh (x + y) = sinh x * cosh y + cosh x * sinh y).
  { intros x y. unfold sinh, cosh. replace (- (x + y)) with (- x + - y) by ring. rewrite !exp_plus. field. }
  assert (M : forall x y, sinh (x - y) = sinh x * cosh y - cosh x * sinh y).
  { intros x y. unfold Rminus at 1. rewrite P, sinh_opp, cosh_opp. ring. }
  assert (Hrt : 0 <= r * t <= t) by nra.
  assert (K : 0 <= cosh t * cosh (r * t)) by nra.
  unfold tanh. split.
  - apply (Rmult_le_reg_r (cosh t * cosh (r * t))); [nra|].
    replace (r * (sinh t / cosh t) * (cosh t * cosh (r * t))) with (r * sinh t * cosh (r * t)) by (field; lra).
    replace (sinh (r * t) / cosh (r * t) * (cosh t * cosh (r * t))) with (sinh (r * t) * cosh t) by (field; lra).
    pose proof (P t (r * t)) as E1. pose proof (M t (r * t)) as E2.
    destruct Ht as [Ht| <-]; [|rewrite Rmult_0_r, sinh_0; lra].
    pose proof (sinh_slope (t + r * t) (t - r * t) ltac:(nra)) as S.
    assert (S' : (1 + r) * sinh (t - r * t) <= (1 - r) * sinh (t + r * t)).
    { apply (Rmult_le_reg_l t); auto.
      replace (t * ((1 + r) * sinh (t - r * t))) with ((t + r * t) * sinh (t - r * t)) by ring.
      replace (t * ((1 - r) * sinh (t + r * t))) with ((t - r * t) * sinh (t + r * t)) by ring. exact S. }
    rewrite E1, E2 in S'. lra.
  - apply (Rmult_le_reg_r (cosh t * cosh (r * t))); [nra|].
    replace (sinh (r * t) / cosh (r * t) * (cosh t * cosh (r * t))) with (sinh (r * t) * cosh t) by (field; lra).
    replace (sinh t / cosh t * (cosh t * cosh (r * t))) with (sinh t * cosh (r * t)) by (field; lra).
    pose proof (sinh_pos (t - r * t) ltac:(lra)). rewrite M in *. lra.
Qed.
Lemma tanh_lipschitz a b : Rabs (tanh a - tanh b) <= Rabs (a - b).
Proof.
  assert (D : forall x, derivable_pt_lim tanh x (/ (cosh x * cosh x))).
  { intros x. pose proof (cosh_ge1 x). pose proof (pythagoras x) as E.
    replace (/ (cosh x * cosh x)) with ((cosh x * cosh x - sinh x * sinh x) / Rsqr (cosh x)).
    - apply (derivable_pt_lim_div sinh cosh x (cosh x) (sinh x));
        auto using derivable_pt_lim_sinh, derivable_pt_lim_cosh. lra.
    - rewrite E. unfold Rsqr. field. lra. }
  assert (L : forall x y, x < y -> Rabs (tanh y - tanh x) <= Rabs (y - x)).
  { intros x y H. destruct (MVT_cor2 tanh (fun x => / (cosh x * cosh x)) x y H) as (c & Hc & _);
      [intros; apply D|]. rewrite Hc, Rabs_mult. rewrite <- (Rmult_1_l (Rabs (y - x))) at 2.
    apply Rmult_le_compat_r; [apply Rabs_pos|]. pose proof (cosh_ge1 c).
    assert (1 <= cosh c * cosh c) by nra.
    rewrite Rabs_pos_eq by (left; apply Rinv_0_lt_compat; lra).
    rewrite <- Rinv_1. apply Rinv_le_contravar; lra. }
  destruct (Rtotal_order a b) as [H|[->|H]].
  - rewrite (Rabs_minus_sym (tanh a)), (Rabs_minus_sym a). auto.
  - rewrite !Rminus_diag_eq, Rabs_R0 by reflexivity. lra.
  - auto.
Qed.

(* ---- a relative change of argument or constant ---- *)
Lemma tanh_scaled t e : Rabs e < 1 -> Rabs (tanh (t * (1 + e)) - tanh t) <= Rabs e * Rabs (tanh t).
Proof.
  assert (P : forall t e, 0 <= t -> Rabs e < 1 -> Rabs (tanh (t * (1 + e)) - tanh t) <= Rabs e * Rabs (tanh t)).
  { clear. intros t e Ht He. apply Rabs_def2 in He. pose proof (tanh_pos t Ht) as T.
    rewrite (Rabs_pos_eq (tanh t)) by auto. destruct (Rle_dec e 0) as [N|N].
    - destruct (tanh_chord t (1 + e) Ht ltac:(lra)) as [h1 h2]. rewrite (Rmult_comm t).
      rewrite (Rabs_left1 e) by auto. apply Rabs_le. lra.
    - destruct (tanh_chord (t * (1 + e)) (/ (1 + e)) ltac:(nra)) as [h1 h2].
      { split; [left; apply Rinv_0_lt_compat; lra|]. rewrite <- Rinv_1. apply Rinv_le_contravar; lra. }
      replace (/ (1 + e) * (t * (1 + e))) with t in * by (field; lra).
      rewrite (Rabs_pos_eq e) by lra. apply Rabs_le. split; [nra|].
      assert (tanh (t * (1 + e)) <= (1 + e) * tanh t); [|lra].
      apply (Rmult_le_reg_l (/ (1 + e))); [apply Rinv_0_lt_compat; lra|].
      eapply Rle_trans; [exact h1|]. right. field. lra. }
  intros He. destruct (Rle_dec 0 t) as [H|H]; [now apply P|].
  pose proof (P (- t) e ltac:(lra) He) as Q.
  replace (- t * (1 + e)) with (- (t * (1 + e))) in Q by ring. rewrite !tanh_opp, Rabs_Ropp in Q.
  replace (- tanh (t * (1 + e)) - - tanh t) with (- (tanh (t * (1 + e)) - tanh t)) in Q by ring.
  now rewrite Rabs_Ropp in Q.
Qed.
(* C tanh(x/C) moves by no more than C does, relatively. *)
Lemma cap_moved C d x : 0 < C -> Rabs d < 1 ->
  exists e, Rabs e <= Rabs d /\ C * (1 + d) * tanh (x / (C * (1 + d))) = C * tanh (x / C) * (1 + e).
Proof.
  intros HC Hd. pose proof (Rabs_def2 _ _ Hd) as Hd'.
  set (t := x / C). replace (x / (C * (1 + d))) with (t / (1 + d)) by (unfold t; field; lra).
  assert (P : forall t, 0 <= t ->
    Rabs ((1 + d) * tanh (t / (1 + d)) - tanh t) <= Rabs d * tanh t).
  { clear t x HC. intros t Ht. pose proof (tanh_pos t Ht) as T. destruct (Rle_dec 0 d) as [N|N].
    - destruct (tanh_chord t (/ (1 + d)) Ht) as [h1 h2].
      { split; [left; apply Rinv_0_lt_compat; lra|]. rewrite <- Rinv_1. apply Rinv_le_contravar; lra. }
      replace (/ (1 + d) * t) with (t / (1 + d)) in * by (field; lra). rewrite (Rabs_pos_eq d) by auto.
      assert (tanh t <= (1 + d) * tanh (t / (1 + d))).
      { apply (Rmult_le_reg_l (/ (1 + d))); [apply Rinv_0_lt_compat; lra|].
        rewrite <- Rmult_assoc, Rinv_l, Rmult_1_l by lra. exact h1. }
      apply Rabs_le. nra.
    - assert (Ht' : 0 <= t / (1 + d)).
      { apply Rmult_le_pos; auto. left. apply Rinv_0_lt_compat. lra. }
      destruct (tanh_chord (t / (1 + d)) (1 + d) Ht' ltac:(lra)) as [h1 h2].
      replace ((1 + d) * (t / (1 + d))) with t in * by (field; lra).
      rewrite (Rabs_left1 d) by lra. apply Rabs_le.
      assert ((1 + d) * tanh t <= (1 + d) * tanh (t / (1 + d))) by (apply Rmult_le_compat_l; lra). lra. }
  assert (Q : Rabs ((1 + d) * tanh (t / (1 + d)) - tanh t) <= Rabs d * Rabs (tanh t)).
  { destruct (Rle_dec 0 t) as [H|H].
    - rewrite (Rabs_pos_eq (tanh t)) by now apply tanh_pos. now apply P.
    - pose proof (P (- t) ltac:(lra)) as R. unfold Rdiv in *. rewrite <- Ropp_mult_distr_l, !tanh_opp in R.
      rewrite (Rabs_left1 (tanh t)).
      + replace ((1 + d) * - tanh (t * / (1 + d)) - - tanh t)
          with (- ((1 + d) * tanh (t * / (1 + d)) - tanh t)) in R by ring. now rewrite Rabs_Ropp in R.
      + pose proof (tanh_pos (- t) ltac:(lra)) as T. rewrite tanh_opp in T. lra. }
  destruct (Req_dec (tanh t) 0) as [Z|Z].
  - exists 0. rewrite Rabs_R0. split; [apply Rabs_pos|]. rewrite Z, Rabs_R0 in Q.
    assert (E : (1 + d) * tanh (t / (1 + d)) = 0).
    { pose proof (Rabs_pos ((1 + d) * tanh (t / (1 + d)) - 0)) as A.
      destruct (Req_dec ((1 + d) * tanh (t / (1 + d)) - 0) 0); [lra|].
      pose proof (Rabs_pos_lt _ H). lra. }
    rewrite Rmult_assoc, E, Z. ring.
  - exists (((1 + d) * tanh (t / (1 + d)) - tanh t) / tanh t). split; [|field; auto].
    unfold Rdiv. rewrite Rabs_mult, Rabs_inv. apply (Rmult_le_reg_r (Rabs (tanh t)));
      [now apply Rabs_pos_lt|]. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by now apply Rabs_no_R0. exact Q.
Qed.

(* The whole step: x known to within D; the cap C is stored as C (1 + d); the quotient, tanh and the
   product err by at most eps, et, eps.  What comes out is off by D and by a relative error. *)
Theorem softcap_error eps et off C d e1 e2 e3 x x' D : 0 < C ->
  0 <= eps < 1 -> 0 <= off < 1 -> 0 <= et -> Rabs d <= off -> Rabs e1 <= eps -> Rabs e2 <= et -> Rabs e3 <= eps ->
  Rabs (x' - x) <= D ->
  let y := C * tanh (x / C) in
  let y' := C * (1 + d) * (tanh (x' / (C * (1 + d)) * (1 + e1)) * (1 + e2)) * (1 + e3) in
  let total := (1 + off) * (1 + eps) * (1 + et) * (1 + eps) - 1 in
  Rabs (y' - y) <= D + total * (Rabs y + D).
Proof.
  intros HC He Ho Het Hd H1 H2 H3 HD y y' total.
  assert (Hd1 : Rabs d < 1) by lra. assert (He1 : Rabs e1 < 1) by lra.
  destruct (cap_moved C d x' HC Hd1) as (a & Ha & Ea).
  set (w := C * tanh (x' / C)) in *.
  assert (B : exists b, Rabs b <= eps /\ tanh (x' / (C * (1 + d)) * (1 + e1)) = tanh (x' / (C * (1 + d))) * (1 + b)).
  { pose proof (tanh_scaled (x' / (C * (1 + d))) e1 He1) as T. set (t := tanh (x' / (C * (1 + d)))) in *.
    set (t' := tanh (x' / (C * (1 + d)) * (1 + e1))) in *.
    destruct (Req_dec t 0) as [Z|Z].
    - exists 0. rewrite Rabs_R0. split; [lra|]. rewrite Z, Rabs_R0, Rmult_0_r, Rminus_0_r in T.
      pose proof (Rabs_pos t'). destruct (Req_dec t' 0) as [Y|Y]; [rewrite Y, Z; ring|].
      pose proof (Rabs_pos_lt _ Y). lra.
    - exists ((t' - t) / t). split; [|field; auto]. unfold Rdiv. rewrite Rabs_mult, Rabs_inv.
      apply (Rmult_le_reg_r (Rabs t)); [now apply Rabs_pos_lt|].
      rewrite Rmult_assoc, Rinv_l, Rmult_1_r by now apply Rabs_no_R0.
      eapply Rle_trans; [exact T|]. apply Rmult_le_compat_r; auto using Rabs_pos. }
  destruct B as (b & Hb & Eb).
  assert (Y : y' = w * ((1 + a) * (1 + b) * (1 + e2) * (1 + e3))).
  { unfold y'. rewrite Eb. replace (w * ((1 + a) * (1 + b) * (1 + e2) * (1 + e3)))
      with (w * (1 + a) * ((1 + b) * (1 + e2) * (1 + e3))) by ring. rewrite <- Ea. ring. }
  assert (HT : Rabs ((1 + a) * (1 + b) * (1 + e2) * (1 + e3) - 1) <= total).
  { unfold total. assert (Ha' : Rabs a <= off) by lra. clear - Ha' Hb H2 H3 He Ho Het.
    replace ((1 + a) * (1 + b) * (1 + e2) * (1 + e3) - 1)
      with (a + b * (1 + a) + e2 * ((1 + a) * (1 + b)) + e3 * ((1 + a) * (1 + b) * (1 + e2))) by ring.
    replace ((1 + off) * (1 + eps) * (1 + et) * (1 + eps) - 1)
      with (off + eps * (1 + off) + et * ((1 + off) * (1 + eps)) + eps * ((1 + off) * (1 + eps) * (1 + et))) by ring.
    assert (U : forall u v, Rabs u <= v -> Rabs (1 + u) <= 1 + v)
      by (intros; apply Rabs_plus_le; auto; rewrite Rabs_R1; lra).
    repeat apply Rabs_plus_le; auto; repeat apply Rabs_mult_le; auto. }
  assert (HW : Rabs (w - y) <= D).
  { unfold w, y. rewrite <- Rmult_minus_distr_l, Rabs_mult, (Rabs_pos_eq C) by lra.
    eapply Rle_trans; [apply Rmult_le_compat_l; [lra|apply tanh_lipschitz]|].
    rewrite <- (Rabs_pos_eq C) at 1 by lra. rewrite <- Rabs_mult.
    replace (C * (x' / C - x / C)) with (x' - x) by (field; lra). exact HD. }
  assert (HW' : Rabs w <= Rabs y + D).
  { replace w with (y + (w - y)) by ring. now apply Rabs_plus_le; [right|]. }
  rewrite Y. replace (w * ((1 + a) * (1 + b) * (1 + e2) * (1 + e3)) - y)
    with ((w - y) + ((1 + a) * (1 + b) * (1 + e2) * (1 + e3) - 1) * w) by ring.
  apply Rabs_plus_le; auto. now apply Rabs_mult_le.
Qed.
