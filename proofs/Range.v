(* Facts about the floating-point row with no error analysis: a merge commutes bit for bit,
   1 <= l <= n, |u| <= n 2^k.  Nothing is asked of the spread of the scores or of the accuracy of
   exp: only exp 0 = 1 and 0 <= exp x <= 1 for x <= 0.
   SPDX-License-Identifier: MIT *)
From Coq Require Import Reals Lra Lia List Arith ZArith Psatz.
From Flocq Require Import Core.
Require Import Sums Rounding Formats.
Import ListNotations.
Local Open Scope R_scope.

Section Range.
Variables emin prec : Z.
Variable choice : Z -> bool.
Hypothesis Hprec : (0 < prec)%Z.
Local Instance prec_pos' : Prec_gt_0 prec := Hprec.
Notation F := (generic_format radix2 (FLT_exp emin prec)).
Notation fl := (fl emin prec choice).
Variable fexpf : R -> R.
Variable narrow : R -> R.
Hypothesis exp_F : forall x, F (fexpf x).
Hypothesis exp_0 : fexpf 0 = 1.
Hypothesis exp_01 : forall x, F x -> x <= 0 -> 0 <= fexpf x <= 1.
Hypothesis narrow_01 : forall x, F x -> 0 <= x <= 1 -> 0 <= narrow x <= 1.
Hypothesis Hemin : (emin <= 0)%Z.
Notation worth := (worth emin prec choice fexpf).
Notation weight := (weight emin prec choice fexpf).
Notation take := (take emin prec choice).
Notation join := (join emin prec choice).
Notation tile_add := (tile_add emin prec choice fexpf narrow).
Notation tile := (tile emin prec choice fexpf narrow).
Notation fm := (fm emin prec choice fexpf narrow).
Notation fl_l := (fl_l emin prec choice fexpf narrow).
Notation fl_u := (fl_u emin prec choice fexpf narrow).
Notation feval := (feval emin prec choice fexpf narrow).
Notation row_merge := (row_merge emin prec choice fexpf).
Notation inF V := (inF emin prec V).

(* Two rows may be merged in either order: the same bits. *)
Theorem merge_comm_bits x y : row_merge x y = row_merge y x.
Proof.
  destruct x as [[mx lx] ux], y as [[my ly] uy]. unfold Formats.row_merge, Formats.join, larger.
  rewrite (Rmax_comm my mx). f_equal; [f_equal|]; f_equal; apply Rplus_comm.
Qed.

Lemma fl_F' x : F (fl x). Proof. now apply fl_F. Qed.
Lemma fl_le_F x y : F y -> x <= y -> fl x <= y.
Proof. intros Hy H. rewrite <- (fl_id emin prec choice y Hy). apply fl_mono; auto. Qed.
Lemma fl_ge_F x y : F y -> y <= x -> y <= fl x.
Proof. intros Hy H. rewrite <- (fl_id emin prec choice y Hy). apply fl_mono; auto. Qed.
Lemma abs_fl_le x y : F y -> Rabs x <= y -> Rabs (fl x) <= y.
Proof.
  intros Hy H. apply Rabs_le_inv in H. apply Rabs_le. split.
  - apply fl_ge_F; [now apply generic_format_opp|lra].
  - apply fl_le_F; auto; lra.
Qed.

(* Every whole number up to 2^prec is in the format, and so is its product with 2^k. *)
Lemma F_scaled n k : (0 <= k)%Z -> INR n <= bpow radix2 prec -> F (INR n * bpow radix2 k).
Proof.
  intros Hk H. rewrite INR_IZR_INZ in *.
  destruct (Req_dec (IZR (Z.of_nat n)) (bpow radix2 prec)) as [E|E].
  - rewrite E, <- bpow_plus. apply generic_format_FLT_bpow; auto. unfold Prec_gt_0 in *. lia.
  - apply generic_format_FLT. exists (Float radix2 (Z.of_nat n) k); simpl; try lia.
    + reflexivity.
    + apply lt_IZR. rewrite abs_IZR, Rabs_pos_eq by (apply IZR_le; lia).
      rewrite (IZR_Zpower radix2) by lia. lra.
Qed.
Lemma F_nat n : INR n <= bpow radix2 prec -> F (INR n).
Proof. intros H. rewrite <- (Rmult_1_r (INR n)). now apply (F_scaled n 0). Qed.
Lemma F_1' : F 1. Proof. rewrite <- exp_0. apply exp_F. Qed.

Lemma fexpf_diff_01 m1 m : m1 <= m -> 0 <= fexpf (fl (m1 - m)) <= 1.
Proof.
  intros H. apply exp_01; [apply fl_F'|]. rewrite <- (fl_0 emin prec choice).
  apply fl_mono; auto. lra.
Qed.
Lemma worth_01 m1 m : m1 <= m -> 0 <= worth m1 m <= 1.
Proof. intros H. unfold Formats.worth. destruct Req_EM_T; [lra|now apply fexpf_diff_01]. Qed.
Lemma worth_1 m : worth m m = 1.
Proof. unfold Formats.worth. destruct Req_EM_T; tauto. Qed.
Lemma weight_01 s m : s <= m -> 0 <= weight s m <= 1.
Proof. apply fexpf_diff_01. Qed.
Lemma weight_1 m : weight m m = 1.
Proof. unfold Formats.weight. rewrite Rminus_diag_eq, fl_0 by reflexivity. exact exp_0. Qed.

Lemma prod_l f l n : 0 <= f <= 1 -> 0 <= l <= INR n -> INR n <= bpow radix2 prec ->
  0 <= fl (f * l) <= INR n.
Proof.
  intros Hf Hl Hn. split.
  - rewrite <- (fl_0 emin prec choice). apply fl_mono; auto. nra.
  - apply fl_le_F; [now apply F_nat|]. nra.
Qed.
Lemma sum_l x y n n' : 0 <= x <= INR n -> 0 <= y <= INR n' -> INR (n + n') <= bpow radix2 prec ->
  0 <= fl (x + y) <= INR (n + n').
Proof.
  intros Hx Hy Hn. split.
  - rewrite <- (fl_0 emin prec choice). apply fl_mono; auto. lra.
  - apply fl_le_F; [now apply F_nat|]. rewrite plus_INR. lra.
Qed.
Variable kv : Z.
Hypothesis kv_pos : (0 <= kv)%Z.
Notation big n := (INR n * bpow radix2 kv).
Lemma prod_u f u n : 0 <= f <= 1 -> Rabs u <= big n -> INR n <= bpow radix2 prec ->
  Rabs (f * u) <= big n /\ Rabs (fl (f * u)) <= big n.
Proof.
  intros Hf Hu Hn. assert (H : Rabs (f * u) <= big n).
  { rewrite Rabs_mult, (Rabs_pos_eq f) by lra. pose proof (Rabs_pos u). nra. }
  split; auto. apply abs_fl_le; auto. now apply F_scaled.
Qed.
Lemma sum_u x y n n' : Rabs x <= big n -> Rabs y <= big n' -> INR (n + n') <= bpow radix2 prec ->
  Rabs (x + y) <= big (n + n') /\ Rabs (fl (x + y)) <= big (n + n').
Proof.
  intros Hx Hy Hn. assert (H : Rabs (x + y) <= big (n + n')).
  { rewrite plus_INR, Rmult_plus_distr_r. now apply Rabs_plus_le. }
  split; auto. apply abs_fl_le; auto. now apply F_scaled.
Qed.
Lemma INR_le_prec n n' : (n <= n')%nat -> INR n' <= bpow radix2 prec -> INR n <= bpow radix2 prec.
Proof. intros H. apply le_INR in H. lra. Qed.

(* ---- a tile ---- *)
Definition small (L : list elt) := forall e, In e L -> Rabs (snd e) <= bpow radix2 kv.
Lemma pv_u m e : F (fst e) -> F m -> fst e <= m -> Rabs (snd e) <= bpow radix2 kv ->
  Rabs (narrow (weight (fst e) m) * snd e) <= big 1.
Proof.
  intros Fs Fm Hs Hv. apply Rabs_mult_le; [|exact Hv]. simpl INR.
  destruct (narrow_01 (weight (fst e) m)) as [h1 h2]; [apply exp_F|now apply weight_01|].
  rewrite Rabs_pos_eq; lra.
Qed.
Lemma tile_bounds m (L : list elt) : forall lu k, F m ->
  (forall e, In e L -> F (fst e) /\ fst e <= m) -> small L ->
  F (fst lu) -> 0 <= fst lu <= INR k -> Rabs (snd lu) <= big k ->
  INR (k + length L) <= bpow radix2 prec ->
  let lu' := fold_left (tile_add m) L lu in
  fst lu <= fst lu' <= INR (k + length L) /\ Rabs (snd lu') <= big (k + length L) /\
  ((exists e, In e L /\ fst e = m) -> 1 <= fst lu').
Proof.
  induction L as [|e L IH]; intros lu k Fm HL HS Fl Hl Hu Hn; simpl.
  - rewrite Nat.add_0_r. repeat split; auto; try lra. intros (x & [] & _).
  - simpl in Hn. destruct (HL e (or_introl eq_refl)) as [Fs Hs].
    pose proof (weight_01 (fst e) m Hs) as Hw.
    assert (Hn1 : INR (k + 1) <= bpow radix2 prec) by (eapply INR_le_prec; [|exact Hn]; lia).
    assert (B1 : 0 <= fl (fst lu + weight (fst e) m) <= INR (k + 1)).
    { apply sum_l; auto. }
    assert (B2 : Rabs (fl (narrow (weight (fst e) m) * snd e + snd lu)) <= big (k + 1)).
    { rewrite Rplus_comm. apply sum_u; auto. apply pv_u; auto. apply HS; simpl; auto. }
    assert (Up : fst lu <= fl (fst lu + weight (fst e) m)) by (apply fl_ge_F; auto; lra).
    replace (k + S (length L))%nat with (k + 1 + length L)%nat in * by lia.
    destruct (IH (tile_add m lu e) (k + 1)%nat Fm) as ((r1 & r2) & r3 & r4); auto.
    { intros x Hx. apply HL; simpl; auto. }
    { intros x Hx. apply HS; simpl; auto. }
    { apply fl_F'. }
    cbn [Formats.tile_add fst snd] in *. repeat split; auto; try lra.
    intros (x & [<-|Hx] & Ex); [|apply r4; eauto].
    apply Rle_trans with (fl (fst lu + weight (fst e) m)); auto.
    apply fl_ge_F; [apply F_1'|]. rewrite Ex, weight_1. lra.
Qed.
Lemma tile_range m (L : list elt) : F m -> (forall e, In e L -> F (fst e) /\ fst e <= m) -> small L ->
  INR (length L) <= bpow radix2 prec ->
  0 <= fst (tile m L) <= INR (length L) /\ Rabs (snd (tile m L)) <= big (length L) /\
  ((exists e, In e L /\ fst e = m) -> 1 <= fst (tile m L)).
Proof.
  intros Fm HL HS Hn. apply (tile_bounds m L (0, 0) 0); auto; simpl; try lra.
  - apply generic_format_0.
  - rewrite Rabs_R0. lra.
Qed.

(* ---- a row ---- *)
Variable V : R.
Definition ok x := inF V (keys x) /\ small (keys x).
Lemma ok_app x y z : (forall e, In e (keys y) -> In e (keys x)) -> ok x -> keys y = z -> ok y.
Proof. intros H [h1 h2] _. split; intros e He; [apply h1|apply h2]; auto. Qed.
Lemma fm_F x : ok x -> F (fm x).
Proof.
  intros [H _]. destruct (feval_F emin prec choice Hprec fexpf narrow V x H) as (h & _); auto.
Qed.
Lemma l_F x : ok x -> F (fl_l x).
Proof.
  intros [H _]. destruct (feval_F emin prec choice Hprec fexpf narrow V x H) as (_ & h & _); auto.
Qed.
Lemma eval_take x e L : let m := fm (Take x e L) in
  fl_l (Take x e L) = take (worth (fm x) m) (fl_l x) (fst (tile m (e :: L))) /\
  fl_u (Take x e L) = take (worth (fm x) m) (fl_u x) (snd (tile m (e :: L))).
Proof.
  cbv zeta. rewrite fm_take. unfold Formats.fl_l at 1, Formats.fl_u at 1. cbn [Formats.feval].
  rewrite (feval_eq emin prec choice fexpf narrow x). split; reflexivity.
Qed.
Lemma eval_join x y : let m := fm (Join x y) in
  fl_l (Join x y) = join (worth (fm x) m) (fl_l x) (worth (fm y) m) (fl_l y) /\
  fl_u (Join x y) = join (worth (fm x) m) (fl_u x) (worth (fm y) m) (fl_u y).
Proof.
  cbv zeta. rewrite fm_join. unfold Formats.fl_l at 1, Formats.fl_u at 1. cbn [Formats.feval].
  rewrite (feval_eq emin prec choice fexpf narrow x), (feval_eq emin prec choice fexpf narrow y).
  split; reflexivity.
Qed.

(* 1 <= l <= n and |u| <= n 2^kv, in floating point: no division by zero, no overflow. *)
Theorem range_fp x : ok x -> INR (length (keys x)) <= bpow radix2 prec ->
  1 <= fl_l x <= INR (length (keys x)) /\ Rabs (fl_u x) <= big (length (keys x)).
Proof.
  induction x as [e L|x IH e L|x IHx y IHy]; intros HO Hn.
  - pose proof (fm_F _ HO) as Fm. pose proof (fm_ub emin prec choice fexpf narrow (First e L)) as Hub.
    destruct HO as [HF HS]. cbn [keys] in *.
    destruct (tile_range (fm (First e L)) (e :: L)) as ((t1 & t2) & t3 & t4); auto.
    { intros k Hk. split; [apply HF|apply Hub]; auto. }
    split; [split; [|exact t2]|exact t3].
    apply t4. exact (fm_attained emin prec choice fexpf narrow (First e L)).
  - pose proof (fm_F _ HO) as Fm. pose proof (fm_ub emin prec choice fexpf narrow (Take x e L)) as Hub.
    assert (HOx : ok x) by (eapply (ok_app (Take x e L)); eauto; simpl; intros; apply in_or_app; auto).
    destruct HO as [HF HS]. cbn [keys] in *. rewrite app_length in *.
    destruct (IH HOx) as ((x1 & x2) & x3); [eapply INR_le_prec; [|exact Hn]; lia|].
    set (m := fm (Take x e L)) in *.
    assert (Hm : fm x <= m).
    { destruct (fm_attained emin prec choice fexpf narrow x) as (k & Hk & <-).
      apply Hub, in_or_app; auto. }
    destruct (tile_range m (e :: L)) as ((t1 & t2) & t3 & t4); auto.
    { intros k Hk. split; [apply HF|apply Hub]; apply in_or_app; auto. }
    { intros k Hk. apply HS, in_or_app; auto. }
    { eapply INR_le_prec; [|exact Hn]. lia. }
    destruct (eval_take x e L) as [-> ->]. fold m. pose proof (worth_01 _ _ Hm) as Hw.
    assert (Hnx : INR (length (keys x)) <= bpow radix2 prec) by (eapply INR_le_prec; [|exact Hn]; lia).
    unfold Formats.take. split; [split|].
    + apply fl_ge_F; [apply F_1'|].
      destruct (prod_l (worth (fm x) m) (fl_l x) (length (keys x))) as [p1 _]; auto; [lra|].
      destruct (Req_dec (fm x) m) as [E|E].
      * rewrite E, worth_1, Rmult_1_l, fl_id by now apply l_F. lra.
      * assert (1 <= fst (tile m (e :: L))); [|lra]. apply t4.
        apply risen_take. fold m. lra.
    + apply sum_l; auto. apply prod_l; auto. lra.
    + apply sum_u; auto. apply prod_u; auto.
  - assert (HOx : ok x) by (eapply (ok_app (Join x y)); eauto; simpl; intros; apply in_or_app; auto).
    assert (HOy : ok y) by (eapply (ok_app (Join x y)); eauto; simpl; intros; apply in_or_app; auto).
    cbn [keys] in *. rewrite app_length in *.
    assert (Hnx : INR (length (keys x)) <= bpow radix2 prec) by (eapply INR_le_prec; [|exact Hn]; lia).
    assert (Hny : INR (length (keys y)) <= bpow radix2 prec) by (eapply INR_le_prec; [|exact Hn]; lia).
    destruct (IHx HOx Hnx) as ((x1 & x2) & x3), (IHy HOy Hny) as ((y1 & y2) & y3).
    pose proof (fm_join emin prec choice fexpf narrow x y) as Em.
    pose proof (Rmax_l (fm x) (fm y)). pose proof (Rmax_r (fm x) (fm y)).
    destruct (eval_join x y) as [-> ->]. set (m := fm (Join x y)) in *. rewrite <- Em in *.
    pose proof (worth_01 _ _ H) as Wx. pose proof (worth_01 _ _ H0) as Wy.
    destruct (prod_l (worth (fm x) m) (fl_l x) (length (keys x))) as [p1 p2]; auto; [lra|].
    destruct (prod_l (worth (fm y) m) (fl_l y) (length (keys y))) as [q1 q2]; auto; [lra|].
    unfold Formats.join. split; [split|].
    + apply fl_ge_F; [apply F_1'|]. unfold Rmax in Em. destruct Rle_dec.
      * rewrite <- Em, worth_1, Rmult_1_l, (fl_id emin prec choice (fl_l y)) in * by now apply l_F.
        lra.
      * rewrite <- Em, worth_1, Rmult_1_l, (fl_id emin prec choice (fl_l x)) in * by now apply l_F.
        lra.
    + apply sum_l; auto.
    + apply sum_u; auto; apply prod_u; auto.
Qed.
End Range.
