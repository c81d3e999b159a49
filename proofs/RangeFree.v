(* From what a state represents to an a-priori error bound that does not depend on the range of
   the scores: with n keys, N roundings and c exponentials on the worst path,

       K = (1+eps)^N (1+epse)^c n^epsa - 1      (times 1 + epsp for u, where P is rounded)
       |out - o| <= (2K V + residues) / (1 - K - residues).

   Standard library only.  SPDX-License-Identifier: MIT *)
From Coq Require Import Reals Lra Lia List Arith.
Require Import Sums Rounding.
Import ListNotations.
Local Open Scope R_scope.

Section Final.
Variables eps epsa epse etae epsp etal etau : R.
Hypothesis eps_rng : 0 <= eps < 1.
Hypothesis epsa_rng : 0 <= epsa < 1.
Hypothesis epse_rng : 0 <= epse < 1.
Hypothesis etae_pos : 0 <= etae.
Hypothesis epsp_rng : 0 <= epsp < 1.
Hypothesis etal_pos : 0 <= etal.
Hypothesis etau_pos : 0 <= etau.
Notation dust := (dust epse etae).
Notation good := (good eps epsa epse etae epsp).
Notation Rep := (Rep eps epsa epse etae epsp).
Notation run := (run eps epsa epse etae epsp etal etau).
Notation amp := (amp eps epse etae).

(* The largest multiplier that N roundings, k roundings of P and c exponentials allow. *)
Definition Hi (N k c : nat) := up eps N * up epsp k * up epse c.
Definition Lo (N k c : nat) := down eps N * down epsp k * down epse c.
Definition kappa (N k c n : nat) := Hi N k c * exp (epsa * ln (INR n)) - 1.

Lemma balance e n L H : 0 <= e < 1 -> 0 <= L <= H -> 2 <= H + L ->
  0 <= L * down e n <= H * up e n /\ 2 <= H * up e n + L * down e n.
Proof.
  intros He HL HH. induction n as [|n [[h1 h2] h3]]; unfold up, down in *; simpl; [lra|].
  set (P := H * (1 + e) ^ n) in *. set (Q := L * (1 - e) ^ n) in *.
  replace (H * ((1 + e) * (1 + e) ^ n)) with (P * (1 + e)) by (unfold P; ring).
  replace (L * ((1 - e) * (1 - e) ^ n)) with (Q * (1 - e)) by (unfold Q; ring). nra.
Qed.
Lemma HiLo N k c : 0 <= Lo N k c <= Hi N k c /\ 2 <= Hi N k c + Lo N k c.
Proof.
  destruct (balance eps N 1 1 eps_rng ltac:(lra) ltac:(lra)) as [h1 h2].
  destruct (balance epsp k _ _ epsp_rng h1 h2) as [h3 h4].
  destruct (balance epse c _ _ epse_rng h3 h4) as [h5 h6].
  unfold Hi, Lo. rewrite !Rmult_1_l in *. auto.
Qed.
Lemma Hi_ge1 N k c : 1 <= Hi N k c.
Proof. pose proof (HiLo N k c). lra. Qed.
Lemma Hi_le N k c N' k' c' : (N <= N')%nat -> (k <= k')%nat -> (c <= c')%nat ->
  Hi N k c <= Hi N' k' c'.
Proof.
  intros. pose proof (up_ge1 eps N ltac:(lra)). pose proof (up_ge1 epsp k ltac:(lra)).
  pose proof (up_ge1 epse c ltac:(lra)). unfold Hi.
  repeat apply Rmult_le_compat; try apply Rmult_le_pos; try lra; apply up_le; auto; lra.
Qed.
Lemma dust_le c c' : (c <= c')%nat -> dust c <= dust c'.
Proof.
  induction 1 as [|c' _ IH]; [lra|]. eapply Rle_trans; [exact IH|].
  pose proof (up_ge1 epse c' ltac:(lra)).
  pose proof (up_mono epse (epse + etae) c' ltac:(lra)). unfold Rounding.dust, up in *. simpl. nra.
Qed.

(* A weight with its private multiplier, against e^(s-m). *)
Lemma shape_error N k c m s f x : s <= m -> shape epsa epse c m s f ->
  down eps N * down epsp k <= x <= up eps N * up epsp k ->
  Rabs (f * x - exp (s - m)) <= Hi N k c * exp ((1 - epsa) * (s - m)) - exp (s - m).
Proof.
  intros Hs [h1 h2] [h3 h4]. destruct (HiLo N k c) as [[g0 g1] g2].
  set (y := - (epsa * (s - m))). assert (Hy : 0 <= y) by (unfold y; nra).
  assert (E1 : exp ((1 - epsa) * (s - m)) = exp (s - m) * exp y)
    by (rewrite <- exp_plus; f_equal; unfold y; ring).
  assert (E2 : exp ((1 + epsa) * (s - m)) = exp (s - m) * exp (- y))
    by (rewrite <- exp_plus; f_equal; unfold y; ring).
  rewrite E1 in *. rewrite E2 in *. pose proof (exp_pos (s - m)) as Px.
  pose proof (exp_pos (- y)). pose proof (exp_pos y).
  pose proof (down_rng epse c epse_rng). pose proof (down_rng eps N eps_rng).
  pose proof (down_rng epsp k epsp_rng).
  assert (D0 : 0 < down eps N * down epsp k) by (apply Rmult_lt_0_compat; lra).
  assert (U : f * x <= Hi N k c * (exp (s - m) * exp y)).
  { replace (Hi N k c * (exp (s - m) * exp y))
      with (up epse c * (exp (s - m) * exp y) * (up eps N * up epsp k)) by (unfold Hi; ring).
    assert (0 < down epse c * (exp (s - m) * exp (- y)))
      by (apply Rmult_lt_0_compat; [lra|apply Rmult_lt_0_compat; auto]).
    apply Rmult_le_compat; lra. }
  assert (D : Lo N k c * (exp (s - m) * exp (- y)) <= f * x).
  { replace (Lo N k c * (exp (s - m) * exp (- y)))
      with (down epse c * (exp (s - m) * exp (- y)) * (down eps N * down epsp k))
      by (unfold Lo; ring).
    apply Rmult_le_compat; try lra. apply Rmult_le_pos; [lra|apply Rmult_le_pos; lra]. }
  pose proof (exp_ge_1x y). pose proof (exp_ge_1x (- y)).
  assert (K : 2 <= Hi N k c * exp y + Lo N k c * exp (- y)).
  { assert (Hi N k c * (1 + y) <= Hi N k c * exp y) by (apply Rmult_le_compat_l; lra).
    assert (Lo N k c * (1 + - y) <= Lo N k c * exp (- y)) by (apply Rmult_le_compat_l; lra).
    assert (0 <= y * (Hi N k c - Lo N k c)) by (apply Rmult_le_pos; lra). lra. }
  apply Rabs_le. split; [|lra].
  assert (exp (s - m) * 2 <= exp (s - m) * (Hi N k c * exp y + Lo N k c * exp (- y)))
    by (apply Rmult_le_compat_l; lra). lra.
Qed.
Lemma near_error N k c c' m s w x : s <= m -> (c <= c')%nat -> near epsa epse etae c m s w ->
  down eps N * down epsp k <= x <= up eps N * up epsp k ->
  Rabs (w * x - exp (s - m)) <= (Hi N k c' * exp ((1 - epsa) * (s - m)) - exp (s - m))
    + dust c' * (up eps N * up epsp k).
Proof.
  intros Hs Hc (f & Hf & Hw) Hx.
  replace (w * x - exp (s - m)) with ((f * x - exp (s - m)) + (w - f) * x) by ring.
  apply Rabs_plus_le.
  - eapply Rle_trans; [apply (shape_error N k c); auto|].
    apply Rplus_le_compat_r, Rmult_le_compat_r; [left; apply exp_pos|]. now apply Hi_le.
  - apply Rabs_mult_le; [pose proof (dust_le c c' Hc); lra|].
    pose proof (down_rng eps N eps_rng). pose proof (down_rng epsp k epsp_rng).
    assert (0 < down eps N * down epsp k) by (apply Rmult_lt_0_compat; lra).
    rewrite Rabs_pos_eq; lra.
Qed.
Lemma within_two N k y z : within eps N y -> within epsp k z ->
  down eps N * down epsp k <= y * z <= up eps N * up epsp k.
Proof.
  intros [h1 h2] [h3 h4]. pose proof (down_rng eps N eps_rng).
  pose proof (down_rng epsp k epsp_rng). split; apply Rmult_le_compat; lra.
Qed.

Section State.
Variables (W : list term) (m l u El Eu V : R) (N c : nat).
Hypothesis HR : Rep W m l u El Eu.
Hypothesis counts : Forall (fun p => adds p + rescales p + own p <= N /\ exps p <= c)%nat (map on W).
Let L := map (fun t => key (on t)) W.
Let n := length L.
Hypothesis attained : exists e, In e L /\ fst e = m.
Hypothesis HV : forall e, In e L -> Rabs (snd e) <= V.

Lemma of_term t : In t W -> good m t /\
  (adds (on t) + rescales (on t) + own (on t) <= N /\ exps (on t) <= c)%nat.
Proof.
  intros Ht. split; [exact (proj1 (Forall_forall _ _) (proj1 HR) t Ht)|].
  apply (proj1 (Forall_forall _ _) counts (on t)). now apply in_map.
Qed.
Lemma term_l t : In t W -> Rabs (w t * a t - exp (score t - m))
  <= (Hi N 0 c * exp ((1 - epsa) * (score t - m)) - exp (score t - m)) + dust c * up eps N.
Proof.
  intros Ht. destruct (of_term t Ht) as ((h1 & h2 & h3 & _) & h5 & h6).
  rewrite <- (Rmult_1_r (up eps N)). change 1 with (up epsp 0).
  apply (near_error N 0 (exps (on t)) c); auto. rewrite <- (Rmult_1_r (a t)).
  apply within_two; [|apply within_1; lra]. eapply within_weaken; [auto| |exact h3]. lia.
Qed.
Hypothesis own1 : Forall (fun p => own p <= 1)%nat (map on W).
Lemma term_u t : In t W -> Rabs (w t * b t - exp (score t - m))
  <= (Hi N 1 c * exp ((1 - epsa) * (score t - m)) - exp (score t - m))
     + dust c * (up eps N * up epsp 1).
Proof.
  intros Ht. destruct (of_term t Ht) as ((h1 & h2 & _ & y & z & -> & h3 & h4) & h5 & h6).
  apply (near_error N 1 (exps (on t)) c); auto.
  apply within_two; [eapply within_weaken; [auto| |exact h3]; lia|].
  eapply within_weaken; [auto| |exact h4].
  apply (proj1 (Forall_forall _ _) own1 (on t)). now apply in_map.
Qed.

(* The sum of the errors of all weights: n^epsa, whatever the range. *)
Lemma sum_errors k D : sumf (fun t => Hi N k c * exp ((1 - epsa) * (score t - m))
    - exp (score t - m) + D) W <= kappa N k c n * SS m L + INR n * D.
Proof.
  rewrite sumf_plus, sumf_minus, sumf_scal, sumf_const.
  assert (E1 : sumf (fun t => exp ((1 - epsa) * (score t - m))) W = SK (1 - epsa) m L)
    by (unfold L, SK; now rewrite sumf_map).
  assert (E2 : sumf (fun t => exp (score t - m)) W = SS m L)
    by (unfold L, SS; now rewrite sumf_map).
  assert (E3 : length W = n) by (unfold n, L; now rewrite map_length).
  rewrite E1, E2, E3.
  pose proof (SK_upper epsa m L (SS_ge1 m L attained) ltac:(lra)) as Y. fold n in Y.
  pose proof (Hi_ge1 N k c). unfold kappa.
  assert (Hi N k c * SK (1 - epsa) m L <= Hi N k c * (SS m L * exp (epsa * ln (INR n))))
    by (apply Rmult_le_compat_l; lra). lra.
Qed.

(* l is the exact sum to K relatively, plus what underflowed. *)
Theorem error_l :
  Rabs (l - SS m L) <= kappa N 0 c n * SS m L + (INR n * (dust c * up eps N) + El).
Proof.
  destruct HR as (_ & Hl & _).
  replace (l - SS m L) with ((lsum W - SS m L) + (l - lsum W)) by ring.
  rewrite <- Rplus_assoc. apply Rabs_plus_le; auto.
  eapply Rle_trans; [|apply (sum_errors 0)].
  replace (lsum W - SS m L) with (sumf (fun t => w t * a t - exp (score t - m)) W).
  - apply sumf_abs_le. exact term_l.
  - rewrite sumf_minus. unfold L, SS. now rewrite sumf_map.
Qed.
Lemma V_pos : 0 <= V.
Proof. destruct attained as (e & He & _). eapply Rle_trans; [apply Rabs_pos|exact (HV e He)]. Qed.
(* u is the exact sum to K V l, plus what underflowed. *)
Theorem error_u : Rabs (u - TT m L) <= V * kappa N 1 c n * SS m L
    + (V * (INR n * (dust c * (up eps N * up epsp 1))) + Eu).
Proof.
  destruct HR as (_ & _ & Hu). pose proof V_pos.
  replace (u - TT m L) with ((usum W - TT m L) + (u - usum W)) by ring.
  rewrite <- Rplus_assoc. apply Rabs_plus_le; auto.
  rewrite Rmult_assoc, <- Rmult_plus_distr_l.
  eapply Rle_trans; [|apply Rmult_le_compat_l; [auto|apply (sum_errors 1)]].
  replace (usum W - TT m L) with (sumf (fun t => value t * (w t * b t - exp (score t - m))) W).
  - rewrite <- sumf_scal. apply sumf_abs_le. intros t Ht.
    apply Rabs_mult_le; [|now apply term_u]. apply HV. unfold L. now apply (in_map (fun t => key (on t))).
  - transitivity (usum W - sumf (fun t => exp (score t - m) * value t) W).
    + unfold usum. rewrite <- sumf_minus. apply sumf_ext. intros; ring.
    + unfold L, TT. now rewrite sumf_map.
Qed.

Lemma n_ge1 : (1 <= n)%nat.
Proof. destruct attained as (e & He & _). unfold n. destruct L; simpl in *; [tauto|lia]. Qed.
Lemma kappa_pos k : 0 <= kappa N k c n.
Proof.
  pose proof n_ge1. unfold kappa. pose proof (Hi_ge1 N k c).
  assert (1 <= INR n) by (change 1 with (INR 1); now apply le_INR).
  pose proof (ln_nonneg (INR n) H1). pose proof (exp_ge_1x (epsa * ln (INR n))).
  assert (0 <= epsa * ln (INR n)) by (apply Rmult_le_pos; lra). nra.
Qed.
(* Hence the output, before the final division is rounded. *)
Theorem error_out :
  let Kl := kappa N 0 c n in let Ku := kappa N 1 c n in
  let Dl := INR n * (dust c * up eps N) + El in
  let Du := V * (INR n * (dust c * (up eps N * up epsp 1))) + Eu in
  Kl + Dl < 1 ->
  0 < l /\ Rabs (u / l - TT m L / SS m L) <= ((Kl + Ku) * V + V * Dl + Du) / (1 - Kl - Dl).
Proof.
  intros Kl Ku Dl Du HK. pose proof V_pos. pose proof (pos_INR n).
  pose proof (dust_pos epse etae ltac:(lra) etae_pos c).
  pose proof (up_ge1 eps N ltac:(lra)). pose proof (up_ge1 epsp 1 ltac:(lra)).
  assert (E0 : 0 <= El) by (eapply Rle_trans; [apply Rabs_pos|exact (proj1 (proj2 HR))]).
  assert (E1 : 0 <= Eu) by (eapply Rle_trans; [apply Rabs_pos|exact (proj2 (proj2 HR))]).
  assert (D0 : 0 <= Dl) by (unfold Dl; assert (0 <= INR n * (dust c * up eps N))
    by (repeat apply Rmult_le_pos; lra); lra).
  assert (D1 : 0 <= Du) by (unfold Du; assert (0 <= V * (INR n * (dust c * (up eps N * up epsp 1))))
    by (repeat apply Rmult_le_pos; lra); lra).
  apply quotient_error; auto.
  - apply SS_ge1, attained.
  - apply kappa_pos.
  - apply TT_le, HV.
  - exact error_l.
  - exact error_u.
Qed.
End State.

(* K in closed form: at most g / (1 - g). *)
Lemma up_exp e k : 0 <= e -> up e k <= exp (e * INR k).
Proof.
  intros He. induction k as [|k IH]; [unfold up; simpl; rewrite Rmult_0_r, exp_0; lra|].
  rewrite S_INR, Rmult_plus_distr_l, Rmult_1_r, exp_plus, (Rmult_comm (exp _)).
  unfold up in *. simpl. apply Rmult_le_compat; auto; try lra; [apply pow_le; lra|apply exp_ge_1x].
Qed.
Lemma kappa_le N k c n :
  kappa N k c n <= exp (eps * INR N + epsp * INR k + epse * INR c + epsa * ln (INR n)) - 1.
Proof.
  unfold kappa, Hi. rewrite !exp_plus. apply Rplus_le_compat_r.
  apply Rmult_le_compat_r; [left; apply exp_pos|].
  pose proof (up_exp eps N). pose proof (up_exp epsp k). pose proof (up_exp epse c).
  pose proof (up_ge1 eps N ltac:(lra)). pose proof (up_ge1 epsp k ltac:(lra)).
  pose proof (up_ge1 epse c ltac:(lra)).
  repeat apply Rmult_le_compat; try apply Rmult_le_pos; lra.
Qed.
Lemma expm1_le g : g < 1 -> exp g - 1 <= g / (1 - g).
Proof.
  intros H. pose proof (exp_ge_1x (- g)) as E. rewrite exp_Ropp in E. pose proof (exp_pos g).
  assert (exp g * (1 - g) <= 1).
  { apply Rle_trans with (exp g * / exp g); [apply Rmult_le_compat_l; lra|]. rewrite Rinv_r; lra. }
  apply le_div_r; lra.
Qed.
Lemma kappa_le_g N k c n g :
  eps * INR N + epsp * INR k + epse * INR c + epsa * ln (INR n) <= g -> g < 1 ->
  kappa N k c n <= g / (1 - g).
Proof.
  intros Hg H1. eapply Rle_trans; [apply kappa_le|]. eapply Rle_trans; [|now apply expm1_le].
  apply Rplus_le_compat_r, exp_le, Hg.
Qed.

Lemma run_own t m l u P N n c : run t m l u P N n c -> Forall (fun p => own p <= 1)%nat P.
Proof.
  induction 1 as [s v m p pv k _ F _|]; [constructor; [|constructor]|].
  - apply factor_k in F. exact F.
  - apply Forall_app; split; apply Forall_map; assumption.
Qed.

(* Any tree, any rounding choices, underflow and P in a narrower format included. *)
Theorem run_error t m l u P N n c V : run t m l u P N n c ->
  (exists e, In e (leaves t) /\ fst e = m) -> (forall e, In e (leaves t) -> Rabs (snd e) <= V) ->
  let k := length (leaves t) in let Kl := kappa n 0 c k in let Ku := kappa n 1 c k in
  let Dl := INR k * (dust c * up eps n) + INR N * etal * amp n c in
  let Du := V * (INR k * (dust c * (up eps n * up epsp 1))) + INR N * etau * amp n c in
  Kl + Dl < 1 ->
  0 < l /\ Rabs (u / l - TT m (leaves t) / SS m (leaves t))
    <= ((Kl + Ku) * V + V * Dl + Du) / (1 - Kl - Dl).
Proof.
  intros HRun Hatt HV. pose proof (run_paths _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ HRun) as HP.
  pose proof (run_own _ _ _ _ _ _ _ _ HRun) as HO.
  pose proof (run_keys _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ HRun) as HK.
  apply run_Rep in HRun; auto. destruct HRun as (W & <- & HR).
  rewrite map_map in HK. rewrite <- HK in *.
  exact (error_out W m l u _ _ V n c HR HP Hatt HV HO).
Qed.

(* Without underflow: |u/l - o| <= V 2g/(1-2g), g = eps N + epsp + epse c + epsa ln n. *)
Theorem attention_error t m l u P N n c V g : etae = 0 -> etal = 0 -> etau = 0 ->
  run t m l u P N n c ->
  (exists e, In e (leaves t) /\ fst e = m) -> (forall e, In e (leaves t) -> Rabs (snd e) <= V) ->
  eps * INR n + epsp + epse * INR c + epsa * ln (INR (length (leaves t))) <= g -> g < / 2 ->
  Rabs (u / l - TT m (leaves t) / SS m (leaves t)) <= V * (2 * g / (1 - 2 * g)).
Proof.
  intros Z1 Z2 Z3 HRun Hatt HV Hg Hg2.
  assert (PV : 0 <= V).
  { destruct Hatt as (e & Hin & _). eapply Rle_trans; [apply Rabs_pos|apply (HV e Hin)]. }
  pose proof (kappa_le_g n 0 c (length (leaves t)) g) as Kl.
  pose proof (kappa_le_g n 1 c (length (leaves t)) g) as Ku.
  simpl INR in Kl, Ku. specialize (Kl ltac:(lra) ltac:(lra)). specialize (Ku ltac:(lra) ltac:(lra)).
  destruct (run_error t m l u P N n c V HRun Hatt HV) as (_ & H).
  - rewrite Z2. unfold Rounding.dust. rewrite Z1, Rplus_0_r.
    assert (G : g / (1 - g) < 1) by (apply (Rmult_lt_reg_r (1 - g)); [lra|]; unfold Rdiv;
      rewrite Rmult_assoc, Rinv_l; lra). lra.
  - revert H. rewrite Z2, Z3. unfold Rounding.dust. rewrite Z1, Rplus_0_r.
    set (K := kappa n 0 c _) in *. set (K' := kappa n 1 c _) in *. intros H.
    eapply Rle_trans; [exact H|]. clear H.
    assert (Q : g / (1 - g) < 1) by (apply (Rmult_lt_reg_r (1 - g)); [lra|]; unfold Rdiv;
      rewrite Rmult_assoc, Rinv_l; lra).
    apply le_div_l; [lra|].
    replace (V * (2 * g / (1 - 2 * g)) * (1 - K - _))
      with (V * (2 * g / (1 - 2 * g) * (1 - K))) by ring.
    match goal with |- ?x <= _ => replace x with (V * (K + K')) by ring end.
    apply Rmult_le_compat_l; auto.
    apply Rle_trans with (2 * (g / (1 - g))); [lra|].
    replace (2 * (g / (1 - g))) with (2 * g / (1 - 2 * g) * (1 - g / (1 - g))) by (field; lra).
    apply Rmult_le_compat_l; [|lra].
    assert (0 <= g).
    { eapply Rle_trans; [|exact Hg]. pose proof (pos_INR n). pose proof (pos_INR c).
      assert (1 <= INR (length (leaves t))).
      { change 1 with (INR 1). apply le_INR. destruct Hatt as (e & Hin & _).
        destruct (leaves t); simpl in *; [tauto|lia]. }
      pose proof (ln_nonneg _ H1).
      repeat apply Rplus_le_le_0_compat; try apply Rmult_le_pos; lra. }
    apply le_div_r; lra.
Qed.
End Final.
