(* The rows of at_row.h on IEEE-754 numbers (Flocq's BinarySingleNaN: signed zeros, infinities, NaN,
   overflow), round to nearest even.  Every intermediate result is finite and has the value of the
   real-number model of Formats.v; the division at the end is neither by zero nor too large.
   SPDX-License-Identifier: MIT *)
From Coq Require Import Reals Lra Lia List Arith ZArith Psatz.
From Flocq Require Import Core BinarySingleNaN.
Require Import Sums Rounding Formats Range.
Import ListNotations.
Local Open Scope R_scope.

Section Ieee.
Variables prec emax : Z.
Context (prec_gt_0_ : Prec_gt_0 prec) (prec_lt_emax_ : Prec_lt_emax prec emax).
Notation bf := (binary_float prec emax).
Notation emin := (3 - emax - prec)%Z.
Notation choice := (fun x => negb (Z.even x)).
Notation F := (generic_format radix2 (FLT_exp emin prec)).
Notation fl := (fl emin prec choice).
Notation val := (@B2R prec emax).
Notation fin := (@is_finite prec emax).

(* ---- the program, operation for operation as in at_row.h ---- *)
Variable bexp : bf -> bf.
Definition zero : bf := B754_zero false.
Definition one : bf := Bone.
Definition badd := @Bplus prec emax prec_gt_0_ prec_lt_emax_ mode_NE.
Definition bsub := @Bminus prec emax prec_gt_0_ prec_lt_emax_ mode_NE.
Definition bmul := @Bmult prec emax prec_gt_0_ prec_lt_emax_ mode_NE.
Definition bdiv := @Bdiv prec emax prec_gt_0_ prec_lt_emax_ mode_NE.
Definition bfma := @Bfma prec emax prec_gt_0_ prec_lt_emax_ mode_NE.
Definition blarger (m s : bf) := match Bcompare m s with Some Lt => s | _ => m end.
Definition bclean x := badd x zero.
Definition bweight s m := bexp (bsub s m).
Definition bworth (m to : bf) := match Bcompare m to with Some Eq => one | _ => bexp (bsub m to) end.
Definition btake a x t := bclean (badd (bmul a x) t).
Definition bjoin a x b y := badd (bmul a x) (bmul b y).
Definition belt := (bf * bf)%type.
Definition btile_max m (L : list belt) := fold_left (fun m e => bclean (blarger m (fst e))) L m.
Definition btile_add m (lu : bf * bf) (e : belt) :=
  let p := bweight (fst e) m in (badd (fst lu) p, bfma p (snd e) (snd lu)).
Definition btile m (L : list belt) := fold_left (btile_add m) L (zero, zero).
Inductive bprog :=
  | BFirst (e : belt) (L : list belt)
  | BTake (x : bprog) (e : belt) (L : list belt)
  | BJoin (x y : bprog).
Definition bst := (bf * bf * bf)%type.
Definition brow_take (x : bst) e L : bst :=
  let '(mx, lx, ux) := x in
  let m := btile_max (bclean (blarger mx (fst e))) L in
  let t := btile m (e :: L) in let a := bworth mx m in (m, btake a lx (fst t), btake a ux (snd t)).
Definition brow_merge (x y : bst) : bst :=
  let '(mx, lx, ux) := x in let '(my, ly, uy) := y in
  let m := bclean (blarger mx my) in let a := bworth mx m in let b := bworth my m in
  (m, bjoin a lx b ly, bjoin a ux b uy).
Fixpoint beval x : bst := match x with
  | BFirst e L => let m := btile_max (bclean (fst e)) L in let t := btile m (e :: L) in (m, fst t, snd t)
  | BTake x e L => brow_take (beval x) e L
  | BJoin x y => brow_merge (beval x) (beval y)
  end.
Definition bm x := fst (fst (beval x)).
Definition bl x := snd (fst (beval x)).
Definition bu x := snd (beval x).
Definition bout x := bdiv (bu x) (bl x).
Lemma beval_eq x : beval x = (bm x, bl x, bu x).
Proof. unfold bm, bl, bu. now destruct (beval x) as [[m l] u]. Qed.

(* The same row over the real numbers. *)
Definition relt (e : belt) : elt := (val (fst e), val (snd e)).
Fixpoint rprog x := match x with
  | BFirst e L => First (relt e) (map relt L)
  | BTake x e L => Take (rprog x) (relt e) (map relt L)
  | BJoin x y => Join (rprog x) (rprog y)
  end.
Fixpoint bkeys x := match x with
  | BFirst e L => e :: L
  | BTake x e L => bkeys x ++ e :: L
  | BJoin x y => bkeys x ++ bkeys y
  end.
Lemma keys_rprog x : keys (rprog x) = map relt (bkeys x).
Proof. induction x; simpl; auto; rewrite map_app; simpl; congruence. Qed.

Notation len x := (length (keys x)).
Definition is b r := fin b = true /\ val b = r.

Lemma val_F x : F (val x). Proof. exact (generic_format_B2R prec emax x). Qed.
Lemma is_F b r : is b r -> F r. Proof. intros [_ <-]. apply val_F. Qed.
Lemma emin_le0 : (emin <= 0)%Z.
Proof. unfold Prec_gt_0, Prec_lt_emax in *. lia. Qed.
Lemma prec_pos0 : (0 < prec)%Z. Proof. exact prec_gt_0_. Qed.
Lemma prec_emax : (prec < emax)%Z. Proof. exact prec_lt_emax_. Qed.

(* ---- one operation each: finite, and rounded once ---- *)
Definition fits r := exists e, (0 <= e < emax)%Z /\ Rabs r <= bpow radix2 e.
Lemma no_overflow r : fits r -> Rlt_bool (Rabs (fl r)) (bpow radix2 emax) = true.
Proof.
  intros (e & He & Hr). pose proof emin_le0. apply Rlt_bool_true.
  apply Rle_lt_trans with (bpow radix2 e); [|now apply bpow_lt].
  apply (abs_fl_le emin prec choice prec_pos0); auto. apply generic_format_FLT_bpow; auto. lia.
Qed.
Ltac fold_fl C := change (round_mode mode_NE) with (Znearest choice) in C;
  change (SpecFloat.fexp prec emax) with (FLT_exp emin prec) in C;
  change (round radix2 (FLT_exp emin prec) (Znearest choice)) with fl in C.
Lemma is_add x y a b : is x a -> is y b -> fits (a + b) -> is (badd x y) (fl (a + b)).
Proof.
  intros [Fx <-] [Fy <-] H.
  pose proof (Bplus_correct prec emax prec_gt_0_ prec_lt_emax_ mode_NE x y Fx Fy) as C.
  fold_fl C. rewrite (no_overflow _ H) in C. destruct C as (C1 & C2 & _). split; auto.
Qed.
Lemma is_sub x y a b : is x a -> is y b -> fits (a - b) -> is (bsub x y) (fl (a - b)).
Proof.
  intros [Fx <-] [Fy <-] H.
  pose proof (Bminus_correct prec emax prec_gt_0_ prec_lt_emax_ mode_NE x y Fx Fy) as C.
  fold_fl C. rewrite (no_overflow _ H) in C. destruct C as (C1 & C2 & _). split; auto.
Qed.
Lemma is_mul x y a b : is x a -> is y b -> fits (a * b) -> is (bmul x y) (fl (a * b)).
Proof.
  intros [Fx <-] [Fy <-] H.
  pose proof (Bmult_correct prec emax prec_gt_0_ prec_lt_emax_ mode_NE x y) as C.
  fold_fl C. rewrite (no_overflow _ H), Fx, Fy in C. destruct C as (C1 & C2 & _). split; auto.
Qed.
Lemma is_fma x y z a b c : is x a -> is y b -> is z c -> fits (a * b + c) ->
  is (bfma x y z) (fl (a * b + c)).
Proof.
  intros [Fx <-] [Fy <-] [Fz <-] H.
  pose proof (Bfma_correct prec emax prec_gt_0_ prec_lt_emax_ mode_NE x y z Fx Fy Fz) as C.
  cbv zeta in C. fold_fl C. rewrite (no_overflow _ H) in C. destruct C as (C1 & C2 & _).
  split; auto.
Qed.
Lemma is_div x y a b : is x a -> is y b -> b <> 0 -> fits (a / b) -> is (bdiv x y) (fl (a / b)).
Proof.
  intros [Fx <-] [Fy <-] Hb H.
  pose proof (Bdiv_correct prec emax prec_gt_0_ prec_lt_emax_ mode_NE x y Hb) as C.
  fold_fl C. rewrite (no_overflow _ H) in C. destruct C as (C1 & C2 & _).
  split; [exact (eq_trans C2 Fx)|exact C1].
Qed.
Lemma is_zero : is zero 0. Proof. split; reflexivity. Qed.
Lemma is_one : is one 1. Proof. split; [apply is_finite_Bone|apply Bone_correct]. Qed.
Lemma fits_in r k : (0 <= k < emax)%Z -> Rabs r <= bpow radix2 k -> fits r.
Proof. intros Hk Hr. exists k. auto. Qed.
Lemma is_clean b r : is b r -> is (bclean b) r.
Proof.
  intros [Fb <-].
  pose proof (Bplus_correct prec emax prec_gt_0_ prec_lt_emax_ mode_NE b zero Fb eq_refl) as C.
  fold_fl C. change (val zero) with 0 in C. rewrite Rplus_0_r in C.
  rewrite (fl_id emin prec choice _ (val_F b)) in C.
  rewrite Rlt_bool_true in C by apply abs_B2R_lt_emax. destruct C as (C1 & C2 & _). split; auto.
Qed.
Lemma is_larger x y a b : is x a -> is y b -> is (blarger x y) (Rmax a b).
Proof.
  intros [Fx <-] [Fy <-]. unfold blarger. rewrite (Bcompare_correct _ _ x y Fx Fy).
  destruct (Rcompare_spec (val x) (val y)) as [H|H|H].
  - rewrite Rmax_right by lra. split; auto.
  - rewrite Rmax_left by lra. split; auto.
  - rewrite Rmax_left by lra. split; auto.
Qed.

(* exp on numbers, its real counterpart, and what is asked of it. *)
Variable fexpf : R -> R.
Hypothesis bexp_ok : forall x, fin x = true -> val x <= 0 ->
  fin (bexp x) = true /\ val (bexp x) = fexpf (val x).
Hypothesis exp_F : forall x, F (fexpf x).
Hypothesis exp_0 : fexpf 0 = 1.
Hypothesis exp_01 : forall x, F x -> x <= 0 -> 0 <= fexpf x <= 1.
Variables ks kv : Z.     (* scores are at most 2^ks, values at most 2^kv, in magnitude *)
Hypothesis ks_rng : (0 <= ks /\ ks + 1 < emax)%Z.
Hypothesis kv_rng : (0 <= kv /\ prec + kv < emax)%Z.
Definition okelt (e : belt) := fin (fst e) = true /\ fin (snd e) = true /\
  Rabs (val (fst e)) <= bpow radix2 ks /\ Rabs (val (snd e)) <= bpow radix2 kv.
Definition okrow x := forall e, In e (bkeys x) -> okelt e.

Notation same := (fun p : R => p).
Notation fm := (fm emin prec choice fexpf same).
Notation fl_l := (fl_l emin prec choice fexpf same).
Notation fl_u := (fl_u emin prec choice fexpf same).
Notation worth := (worth emin prec choice fexpf).
Notation weight := (weight emin prec choice fexpf).
Notation tile_add := (tile_add emin prec choice fexpf same).
Notation tile := (tile emin prec choice fexpf same).

(* ---- factors ---- *)
Definition within_ks r := Rabs r <= bpow radix2 ks.
Lemma diff_fits a b : within_ks a -> within_ks b -> fits (a - b).
Proof.
  intros Ha Hb. exists (ks + 1)%Z. split; [lia|].
  assert (H : Rabs (a - b) <= bpow radix2 ks + bpow radix2 ks)
    by (apply Rabs_plus_le; auto; now rewrite Rabs_Ropp).
  rewrite bpow_plus. change (bpow radix2 1) with 2. lra.
Qed.
Lemma is_exp_diff x y a b : is x a -> is y b -> a <= b -> within_ks a -> within_ks b ->
  is (bexp (bsub x y)) (fexpf (fl (a - b))).
Proof.
  intros Hx Hy Hab Ha Hb. destruct (is_sub x y a b Hx Hy (diff_fits _ _ Ha Hb)) as [h1 h2].
  rewrite <- h2. apply bexp_ok; auto. rewrite h2, <- (fl_0 emin prec choice).
  apply fl_mono; [exact prec_pos0|lra].
Qed.
Lemma is_worth x y a b : is x a -> is y b -> a <= b -> within_ks a -> within_ks b ->
  is (bworth x y) (worth a b).
Proof.
  intros Hx Hy Hab Ha Hb. pose proof (is_exp_diff x y a b Hx Hy Hab Ha Hb) as E.
  destruct Hx as [Fx <-], Hy as [Fy <-]. unfold bworth, Formats.worth.
  rewrite (Bcompare_correct _ _ x y Fx Fy).
  destruct (Rcompare_spec (val x) (val y)), Req_EM_T; try lra; auto using is_one.
Qed.

(* ---- sizes ---- *)
Notation big n := (INR n * bpow radix2 kv).
Lemma count_fits r n : Rabs r <= INR n -> INR n <= bpow radix2 prec -> fits r.
Proof. intros H Hn. pose proof prec_pos0. pose proof prec_emax. exists prec. split; [lia|lra]. Qed.
Lemma big_fits r n : Rabs r <= big n -> INR n <= bpow radix2 prec -> fits r.
Proof.
  intros H Hn. pose proof prec_pos0. exists (prec + kv)%Z. split; [lia|].
  eapply Rle_trans; [exact H|]. rewrite bpow_plus. apply Rmult_le_compat_r; auto.
  apply bpow_ge_0.
Qed.
Lemma same_01 : forall x : R, F x -> 0 <= x <= 1 -> 0 <= x <= 1. Proof. auto. Qed.
Notation tile_bounds := (tile_bounds emin prec choice prec_pos0 fexpf same exp_F exp_0 exp_01 same_01
  emin_le0 kv (proj1 kv_rng)).
Notation tile_range := (tile_range emin prec choice prec_pos0 fexpf same exp_F exp_0 exp_01 same_01
  emin_le0 kv (proj1 kv_rng)).

(* ---- a tile ---- *)
Lemma is_tile_max L : forall x a, is x a -> within_ks a -> (forall e, In e L -> okelt e) ->
  is (btile_max x L) (tile_max a (map relt L)) /\ within_ks (tile_max a (map relt L)).
Proof.
  unfold btile_max, tile_max, larger. induction L as [|e L IH]; intros x a Hx Ha HL; simpl; auto.
  destruct (HL e (or_introl eq_refl)) as (F1 & _ & B1 & _).
  apply IH; [|unfold Rmax; destruct Rle_dec; auto|intros k Hk; apply HL; right; auto].
  apply is_clean, is_larger; auto. split; auto.
Qed.
Lemma is_tile bm0 m L : is bm0 m -> within_ks m -> forall lu a k,
  (forall e, In e L -> okelt e /\ val (fst e) <= m) ->
  is (fst lu) (fst a) -> is (snd lu) (snd a) ->
  0 <= fst a <= INR k -> Rabs (snd a) <= big k -> INR (k + length L) <= bpow radix2 prec ->
  is (fst (fold_left (btile_add bm0) L lu)) (fst (fold_left (tile_add m) (map relt L) a)) /\
  is (snd (fold_left (btile_add bm0) L lu)) (snd (fold_left (tile_add m) (map relt L) a)).
Proof.
  intros Hm Bm. induction L as [|e L IH]; intros lu a k HL H1 H2 Ha Hu Hn; simpl; auto.
  simpl in Hn. destruct (HL e (or_introl eq_refl)) as ((F1 & F2 & B1 & B2) & Hs).
  assert (Hw : is (bweight (fst e) bm0) (weight (val (fst e)) m))
    by (apply is_exp_diff; auto; split; auto).
  pose proof (weight_01 emin prec choice prec_pos0 fexpf exp_01 _ _ Hs) as W.
  assert (Hn1 : INR (k + 1) <= bpow radix2 prec)
    by (eapply Rle_trans; [|exact Hn]; apply le_INR; lia).
  assert (S1 : 0 <= fst a + weight (val (fst e)) m <= INR (k + 1)) by (rewrite plus_INR; change (INR 1) with 1; lra).
  assert (S2 : Rabs (weight (val (fst e)) m * val (snd e)) <= big 1).
  { change (INR 1) with 1. apply Rabs_mult_le; auto. rewrite Rabs_pos_eq; lra. }
  assert (S3 : Rabs (weight (val (fst e)) m * val (snd e) + snd a) <= big (k + 1)).
  { rewrite plus_INR, Rmult_plus_distr_r, Rplus_comm. now apply Rabs_plus_le. }
  assert (P : 0 <= fl (fst a + weight (val (fst e)) m) <= INR (k + 1)).
  { apply (sum_l emin prec choice prec_pos0 emin_le0); auto. }
  assert (Q : Rabs (fl (weight (val (fst e)) m * val (snd e) + snd a)) <= big (k + 1)).
  { rewrite (Nat.add_comm k 1) in *.
    apply (sum_u emin prec choice prec_pos0 emin_le0 kv (proj1 kv_rng)); auto. }
  apply (IH _ _ (k + 1)%nat); auto.
  - intros x Hx. apply HL. simpl; auto.
  - apply is_add; auto. apply (count_fits (fst a + weight (val (fst e)) m) (k + 1)); auto.
    rewrite Rabs_pos_eq; lra.
  - apply is_fma; auto; [split; auto|].
    apply (big_fits (weight (val (fst e)) m * val (snd e) + snd a) (k + 1)); auto.
  - replace (k + 1 + length L)%nat with (k + S (length L))%nat by lia. auto.
Qed.
Lemma is_whole_tile bm0 m L : is bm0 m -> within_ks m ->
  (forall e, In e L -> okelt e /\ val (fst e) <= m) -> INR (length L) <= bpow radix2 prec ->
  is (fst (btile bm0 L)) (fst (tile m (map relt L))) /\
  is (snd (btile bm0 L)) (snd (tile m (map relt L))).
Proof.
  intros Hm Bm HL Hn. apply (is_tile bm0 m L Hm Bm (zero, zero) (0, 0) 0); auto using is_zero;
    simpl; try lra. rewrite Rabs_R0. lra.
Qed.

(* ---- a row ---- *)
Notation ok := (ok emin prec kv (bpow radix2 kv)).
Lemma okrow_ok x : okrow x -> ok (rprog x).
Proof.
  intros H. split; rewrite keys_rprog; intros e He; apply in_map_iff in He;
    destruct He as (b & <- & Hb); destruct (H b Hb) as (h1 & h2 & h3 & h4); simpl; auto.
  repeat split; auto using val_F.
Qed.
Lemma okrow_app x y : (forall e, In e (bkeys y) -> In e (bkeys x)) -> okrow x -> okrow y.
Proof. intros H Hx e He. apply Hx, H, He. Qed.
Lemma key_le_m x e : In e (bkeys x) -> val (fst e) <= fm (rprog x).
Proof.
  intros He. apply (fm_ub emin prec choice fexpf same (rprog x) (relt e)).
  rewrite keys_rprog. now apply in_map.
Qed.
Lemma join_parts x y : INR (len (Join x y)) <= bpow radix2 prec ->
  INR (len x) <= bpow radix2 prec /\ INR (len y) <= bpow radix2 prec.
Proof.
  cbn [keys]. rewrite app_length. intros Hn.
  split; (eapply Rle_trans; [|exact Hn]); apply le_INR; lia.
Qed.
Lemma len_take x e L : len (rprog (BTake x e L)) = (len (rprog x) + length (e :: L))%nat.
Proof. cbn [rprog keys]. rewrite app_length. cbn [length]. now rewrite map_length. Qed.
(* A weighted sum stays within what its parts are worth. *)
Lemma prod_fits f u n : 0 <= f <= 1 -> Rabs u <= big n -> INR n <= bpow radix2 prec -> fits (f * u).
Proof.
  intros Hf Hu Hn. apply (big_fits _ n); auto. rewrite Rabs_mult, (Rabs_pos_eq f) by lra.
  pose proof (Rabs_pos u). nra.
Qed.
Lemma prod_fits_l f l n : 0 <= f <= 1 -> 0 <= l <= INR n -> INR n <= bpow radix2 prec -> fits (f * l).
Proof. intros Hf Hl Hn. apply (count_fits _ n); auto. rewrite Rabs_pos_eq; nra. Qed.

Notation range_fp := (range_fp emin prec choice prec_pos0 fexpf same exp_F exp_0 exp_01 same_01
  emin_le0 kv (proj1 kv_rng) (bpow radix2 kv)).
Notation worth_01 := (worth_01 emin prec choice prec_pos0 fexpf exp_01).
Notation prod_l := (prod_l emin prec choice prec_pos0 emin_le0).
Notation prod_u := (prod_u emin prec choice prec_pos0 emin_le0 kv (proj1 kv_rng)).

Lemma is_take a x t ra rx rt : is a ra -> is x rx -> is t rt -> fits (ra * rx) ->
  fits (fl (ra * rx) + rt) -> is (btake a x t) (take emin prec choice ra rx rt).
Proof.
  intros Ha Hx Ht H1 H2. unfold btake, take. apply is_clean, is_add; auto. now apply is_mul.
Qed.
Lemma is_join a x b y ra rx rb ry : is a ra -> is x rx -> is b rb -> is y ry ->
  fits (ra * rx) -> fits (rb * ry) -> fits (fl (ra * rx) + fl (rb * ry)) ->
  is (bjoin a x b y) (join emin prec choice ra rx rb ry).
Proof. intros. unfold bjoin, join. apply is_add; auto; now apply is_mul. Qed.

(* Every row: finite, and the value of the model, bit for bit. *)
Theorem row_is x : okrow x -> INR (len (rprog x)) <= bpow radix2 prec ->
  (is (bm x) (fm (rprog x)) /\ within_ks (fm (rprog x))) /\
  is (bl x) (fl_l (rprog x)) /\ is (bu x) (fl_u (rprog x)).
Proof.
  induction x as [e L|x IH e L|x IHx y IHy]; intros HO Hn.
  - pose proof (key_le_m (BFirst e L)) as Hub. simpl in Hn. rewrite map_length in Hn.
    destruct (HO e (or_introl eq_refl)) as (F1 & _ & B1 & _).
    destruct (is_tile_max L (bclean (fst e)) (val (fst e))) as [M1 M2]; auto.
    { apply is_clean. split; auto. }
    { intros k Hk. apply HO. simpl; auto. }
    split; [split; [exact M1|exact M2]|].
    apply (is_whole_tile _ _ (e :: L) M1 M2); auto.
  - pose proof (key_le_m (BTake x e L)) as Hub.
    pose proof (okrow_ok _ HO) as HOr. pose proof (fm_F emin prec choice prec_pos0 fexpf same _ _ _ HOr) as Fm.
    assert (HOx : okrow x) by (apply (okrow_app (BTake x e L)); auto; intros k Hk; cbn [bkeys]; apply in_or_app; auto).
    assert (HOt : forall k, In k (e :: L) -> okelt k) by (intros k Hk; apply HO; cbn [bkeys]; apply in_or_app; auto).
    assert (Hns := Hn). rewrite len_take in Hns.
    assert (Hnx : INR (len (rprog x)) <= bpow radix2 prec)
      by (eapply Rle_trans; [|exact Hns]; apply le_INR; lia).
    assert (Hnt : INR (length (e :: L)) <= bpow radix2 prec)
      by (eapply Rle_trans; [|exact Hns]; apply le_INR; lia).
    destruct (IH HOx Hnx) as ((x1 & x2) & x3 & x4).
    destruct (HOt e (or_introl eq_refl)) as (F1 & _ & B1 & _).
    destruct (is_tile_max L (bclean (blarger (bm x) (fst e))) (Rmax (fm (rprog x)) (val (fst e)))) as [M1 M2].
    { apply is_clean, is_larger; auto. split; auto. }
    { unfold Rmax; destruct Rle_dec; auto. }
    { intros k Hk. apply HOt. simpl; auto. }
    change (tile_max (Rmax (fm (rprog x)) (val (fst e))) (map relt L))
      with (tile_max (Rmax (fm (rprog x)) (fst (relt e))) (map relt L)) in *.
    rewrite <- (fm_take emin prec choice fexpf same (rprog x) (relt e) (map relt L)) in M1, M2.
    change (Take (rprog x) (relt e) (map relt L)) with (rprog (BTake x e L)) in *.
    set (m := fm (rprog (BTake x e L))) in *.
    assert (Hmx : fm (rprog x) <= m).
    { destruct (fm_attained emin prec choice fexpf same (rprog x)) as (k & Hk & <-).
      rewrite keys_rprog in Hk. apply in_map_iff in Hk. destruct Hk as (b & <- & Hb).
      apply Hub. simpl. apply in_or_app; auto. }
    destruct (is_whole_tile _ m (e :: L) M1 M2) as [T1 T2]; auto.
    { intros k Hk. split; auto. apply Hub. simpl; apply in_or_app; auto. }
    destruct (tile_range m (map relt (e :: L))) as ((t1 & t2) & t3 & _); auto.
    { intros k Hk. apply in_map_iff in Hk. destruct Hk as (b & <- & Hb). split; [apply val_F|].
      apply Hub. simpl; apply in_or_app; auto. }
    { intros k Hk. apply in_map_iff in Hk. destruct Hk as (b & <- & Hb). apply HOt, Hb. }
    { now rewrite map_length. }
    rewrite map_length in t2, t3.
    destruct (range_fp (rprog x) (okrow_ok x HOx) Hnx) as ((l1 & l2) & l3).
    pose proof (worth_01 _ _ Hmx) as W.
    pose proof (is_worth _ _ _ _ x1 M1 Hmx x2 M2) as HW.
    destruct (prod_l (worth (fm (rprog x)) m) (fl_l (rprog x)) (len (rprog x))) as [p1 p2]; auto; [lra|].
    destruct (prod_u (worth (fm (rprog x)) m) (fl_u (rprog x)) (len (rprog x))) as [_ p4]; auto.
    split; [split; [|exact M2]|].
    { unfold bm; cbn [beval]. rewrite (beval_eq x). exact M1. }
    destruct (eval_take emin prec choice fexpf same (rprog x) (relt e) (map relt L)) as [E1 E2].
    change (Take (rprog x) (relt e) (map relt L)) with (rprog (BTake x e L)) in *. fold m in E1, E2.
    rewrite E1, E2. unfold bl, bu; cbn [beval]. rewrite (beval_eq x). unfold brow_take; cbn [fst snd].
    split; apply is_take; auto.
    + apply (prod_fits_l _ _ (len (rprog x))); auto. split; [|exact l2]. clear - l1. lra.
    + apply (count_fits _ (len (rprog x) + length (e :: L))); auto.
      rewrite Rabs_pos_eq by (apply Rplus_le_le_0_compat; [exact p1|exact t1]).
      rewrite plus_INR. apply Rplus_le_compat; [exact p2|exact t2].
    + apply (prod_fits _ _ (len (rprog x))); auto.
    + apply (big_fits _ (len (rprog x) + length (e :: L))); auto.
      rewrite plus_INR, Rmult_plus_distr_r. apply Rabs_plus_le; [exact p4|exact t3].
  - pose proof (okrow_ok _ HO) as HOr.
    assert (HOx : okrow x) by (apply (okrow_app (BJoin x y)); auto; intros k Hk; cbn [bkeys]; apply in_or_app; auto).
    assert (HOy : okrow y) by (apply (okrow_app (BJoin x y)); auto; intros k Hk; cbn [bkeys]; apply in_or_app; auto).
    destruct (join_parts (rprog x) (rprog y) Hn) as [Hnx Hny].
    assert (Hns : INR (len (rprog x) + len (rprog y)) <= bpow radix2 prec).
    { eapply Rle_trans; [|exact Hn]. simpl. rewrite app_length. lra. }
    destruct (IHx HOx Hnx) as ((x1 & x2) & x3 & x4), (IHy HOy Hny) as ((y1 & y2) & y3 & y4).
    pose proof (fm_join emin prec choice fexpf same (rprog x) (rprog y)) as Em.
    pose proof (Rmax_l (fm (rprog x)) (fm (rprog y))) as Gx.
    pose proof (Rmax_r (fm (rprog x)) (fm (rprog y))) as Gy. rewrite <- Em in Gx, Gy.
    change (Join (rprog x) (rprog y)) with (rprog (BJoin x y)) in *.
    set (m := fm (rprog (BJoin x y))) in *.
    assert (M1 : is (bclean (blarger (bm x) (bm y))) m) by (rewrite Em; now apply is_clean, is_larger).
    assert (M2 : within_ks m) by (rewrite Em; unfold Rmax; destruct Rle_dec; auto).
    destruct (range_fp (rprog x) (okrow_ok x HOx) Hnx) as ((l1 & l2) & l3).
    destruct (range_fp (rprog y) (okrow_ok y HOy) Hny) as ((k1 & k2) & k3).
    pose proof (worth_01 _ _ Gx) as Wx. pose proof (worth_01 _ _ Gy) as Wy.
    pose proof (is_worth _ _ _ _ x1 M1 Gx x2 M2) as HWx. pose proof (is_worth _ _ _ _ y1 M1 Gy y2 M2) as HWy.
    destruct (prod_l (worth (fm (rprog x)) m) (fl_l (rprog x)) (len (rprog x))) as [p1 p2]; auto; [lra|].
    destruct (prod_u (worth (fm (rprog x)) m) (fl_u (rprog x)) (len (rprog x))) as [_ p4]; auto.
    destruct (prod_l (worth (fm (rprog y)) m) (fl_l (rprog y)) (len (rprog y))) as [q1 q2]; auto; [lra|].
    destruct (prod_u (worth (fm (rprog y)) m) (fl_u (rprog y)) (len (rprog y))) as [_ q4]; auto.
    split; [split; [|exact M2]|].
    { unfold bm at 1; cbn [beval]. rewrite (beval_eq x), (beval_eq y). exact M1. }
    destruct (eval_join emin prec choice fexpf same (rprog x) (rprog y)) as [E1 E2].
    change (Join (rprog x) (rprog y)) with (rprog (BJoin x y)) in *. fold m in E1, E2.
    rewrite E1, E2. unfold bl at 1, bu at 1; cbn [beval]. rewrite (beval_eq x), (beval_eq y).
    unfold brow_merge; cbn [fst snd].
    split; apply is_join; auto.
    + apply (prod_fits_l _ _ (len (rprog x))); auto. split; [|exact l2]. clear - l1. lra.
    + apply (prod_fits_l _ _ (len (rprog y))); auto. split; [|exact k2]. clear - k1. lra.
    + apply (count_fits _ (len (rprog x) + len (rprog y))); auto.
      rewrite Rabs_pos_eq by (apply Rplus_le_le_0_compat; auto). rewrite plus_INR. lra.
    + apply (prod_fits _ _ (len (rprog x))); auto.
    + apply (prod_fits _ _ (len (rprog y))); auto.
    + apply (big_fits _ (len (rprog x) + len (rprog y))); auto.
      rewrite plus_INR, Rmult_plus_distr_r. now apply Rabs_plus_le.
Qed.

(* The output: no NaN, no infinity, no division by zero. *)
Theorem out_is x : okrow x -> INR (len (rprog x)) <= bpow radix2 prec ->
  is (bout x) (fl (fl_u (rprog x) / fl_l (rprog x))).
Proof.
  intros HO Hn. destruct (row_is x HO Hn) as (_ & Hl & Hu).
  destruct (range_fp (rprog x) (okrow_ok x HO) Hn) as ((l1 & l2) & l3).
  apply is_div; auto; [lra|]. apply (big_fits _ (len (rprog x))); auto.
  unfold Rdiv. rewrite Rabs_mult, (Rabs_pos_eq (/ _)) by (left; apply Rinv_0_lt_compat; lra).
  rewrite <- (Rmult_1_r (big (len (rprog x)))).
  apply Rmult_le_compat; auto; [apply Rabs_pos|left; apply Rinv_0_lt_compat; lra|].
  rewrite <- Rinv_1. apply Rinv_le_contravar; lra.
Qed.
End Ieee.
