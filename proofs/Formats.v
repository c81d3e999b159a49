(* The row algebra of include/at_row.h in any IEEE format with gradual underflow (Flocq's FLT):
   push, tiles against the new maximum, merges of splits, sinks.  It is an execution in the sense
   of Rounding.v, with the counts that ref/bound.c uses.  Overflow is excluded here: Ieee.v.
   SPDX-License-Identifier: MIT *)
From Coq Require Import Reals Lra Lia List Arith ZArith Psatz.
From Flocq Require Import Core Relative Plus_error.
Require Import Sums Rounding RangeFree.
Import ListNotations.
Local Open Scope R_scope.

(* A row: a first tile, a tile taken in, two rows merged.  One key at a time is a tile of one; a
   sink s is Join x (First (s, 0) []). *)
Inductive prog :=
  | First (e : elt) (L : list elt)
  | Take (x : prog) (e : elt) (L : list elt)
  | Join (x y : prog).
Fixpoint tile_tree t L := match L with [] => t | e :: L => tile_tree (Node t (Leaf e)) L end.
Fixpoint tree_of p := match p with
  | First e L => tile_tree (Leaf e) L
  | Take x e L => Node (tree_of x) (tile_tree (Leaf e) L)
  | Join x y => Node (tree_of x) (tree_of y)
  end.
Fixpoint keys p := match p with
  | First e L => e :: L
  | Take x e L => keys x ++ e :: L
  | Join x y => keys x ++ keys y
  end.
(* docs/bounds.md: the depth of additions, and the rescales that a key can meet. *)
Fixpoint most_adds p := match p with
  | First _ L => length L
  | Take x _ L => max (most_adds x) (length L) + 1
  | Join x y => max (most_adds x) (most_adds y) + 1
  end%nat.
Fixpoint most_rescales p := match p with
  | First _ _ => 0
  | Take x _ _ => most_rescales x + 1
  | Join x y => max (most_rescales x) (most_rescales y) + 1
  end%nat.
(* Keys that score above s: the only ones that can force a rescale of a key that scores s. *)
Definition rivals L s := length (filter (fun e : elt => if Rlt_dec s (fst e) then true else false) L).

Lemma leaves_tile L : forall t, leaves (tile_tree t L) = leaves t ++ L.
Proof.
  induction L as [|e L IH]; intros t; simpl; [now rewrite app_nil_r|].
  rewrite IH. simpl. now rewrite <- app_assoc.
Qed.
Lemma leaves_keys p : leaves (tree_of p) = keys p.
Proof. induction p; simpl; rewrite ?leaves_tile; simpl; congruence. Qed.
Lemma rivals_app A B s : rivals (A ++ B) s = (rivals A s + rivals B s)%nat.
Proof. unfold rivals. now rewrite filter_app, app_length. Qed.
Lemma rivals_pos L s e : In e L -> s < fst e -> (1 <= rivals L s)%nat.
Proof.
  intros He Hs. unfold rivals. assert (In e (filter (fun e : elt => if Rlt_dec s (fst e) then true else false) L)).
  { apply filter_In. split; auto. now destruct Rlt_dec. }
  destruct (filter (fun e : elt => if Rlt_dec s (fst e) then true else false) L); simpl in *; [tauto|lia].
Qed.

Section FLT.
Variables emin prec : Z.
Variable choice : Z -> bool.
Hypothesis Hprec : (0 < prec)%Z.
Local Instance prec_pos : Prec_gt_0 prec := Hprec.
Notation F := (generic_format radix2 (FLT_exp emin prec)).
Definition fl := round radix2 (FLT_exp emin prec) (Znearest choice).
Definition eps := u_ro radix2 prec.               (* 2^-prec *)
Definition eta := / 2 * bpow radix2 emin.         (* half the smallest subnormal *)

Lemma eps_rng : 0 <= eps < 1.
Proof. split; [apply u_ro_pos|]. apply u_ro_lt_1. exact Hprec. Qed.
Lemma eta_pos : 0 <= eta.
Proof. unfold eta. pose proof (bpow_gt_0 radix2 emin). lra. Qed.
Lemma fl_F x : F (fl x). Proof. apply generic_format_round; typeclasses eauto. Qed.
Lemma fl_id x : F x -> fl x = x. Proof. intros; apply round_generic; auto; typeclasses eauto. Qed.
Lemma fl_0 : fl 0 = 0. Proof. apply round_0; typeclasses eauto. Qed.
Lemma fl_mono x y : x <= y -> fl x <= fl y. Proof. apply round_le; typeclasses eauto. Qed.

(* exp, and the narrowing of P before its product with V. *)
Variables fexpf narrow : R -> R.

(* ---- the program, name for name ---- *)
Definition worth m to := if Req_EM_T m to then 1 else fexpf (fl (m - to)).
Definition weight s m := fexpf (fl (s - m)).
Definition fma x y z := fl (x * y + z).
Definition take a x t := fl (fl (a * x) + t).
Definition join a x b y := fl (fl (a * x) + fl (b * y)).
Definition larger (m s : R) := Rmax m s.
Definition tile_max m (L : list elt) := fold_left (fun m e => larger m (fst e)) L m.
Definition tile_add m (lu : R * R) (e : elt) :=
  let p := weight (fst e) m in (fl (fst lu + p), fma (narrow p) (snd e) (snd lu)).
Definition tile m (L : list elt) := fold_left (tile_add m) L (0, 0).
Definition st := (R * R * R)%type.
Definition row_take (x : st) e L : st :=
  let '(mx, lx, ux) := x in
  let m := tile_max (larger mx (fst e)) L in
  let t := tile m (e :: L) in let a := worth mx m in (m, take a lx (fst t), take a ux (snd t)).
Definition row_merge (x y : st) : st :=
  let '(mx, lx, ux) := x in let '(my, ly, uy) := y in
  let m := larger mx my in let a := worth mx m in let b := worth my m in
  (m, join a lx b ly, join a ux b uy).
Fixpoint feval p : st := match p with
  | First e L => let m := tile_max (fst e) L in let t := tile m (e :: L) in (m, fst t, snd t)
  | Take x e L => row_take (feval x) e L
  | Join x y => row_merge (feval x) (feval y)
  end.
Definition fm p := fst (fst (feval p)).
Definition fl_l p := snd (fst (feval p)).
Definition fl_u p := snd (feval p).
Lemma feval_eq p : feval p = (fm p, fl_l p, fl_u p).
Proof. unfold fm, fl_l, fl_u. now destruct (feval p) as [[m l] u]. Qed.

(* ---- the maximum ---- *)
Lemma tile_max_ge L : forall m, m <= tile_max m L /\ forall e, In e L -> fst e <= tile_max m L.
Proof.
  unfold tile_max, larger. induction L as [|x L IH]; intros m; simpl; [split; [lra|tauto]|].
  destruct (IH (Rmax m (fst x))) as [h1 h2]. pose proof (Rmax_l m (fst x)).
  pose proof (Rmax_r m (fst x)). split; [lra|]. intros e [<-|He]; auto; lra.
Qed.
Lemma tile_max_in L : forall m, tile_max m L = m \/ exists e, In e L /\ fst e = tile_max m L.
Proof.
  unfold tile_max, larger. induction L as [|x L IH]; intros m; simpl; [now left|].
  destruct (IH (Rmax m (fst x))) as [->|(e & He & E)]; [|right; eauto].
  unfold Rmax. destruct Rle_dec; [right; exists x; auto|now left].
Qed.
Lemma fm_take x e L : fm (Take x e L) = tile_max (Rmax (fm x) (fst e)) L.
Proof. unfold fm at 1; cbn [feval]. rewrite (feval_eq x). reflexivity. Qed.
Lemma fm_join x y : fm (Join x y) = Rmax (fm x) (fm y).
Proof. unfold fm at 1; cbn [feval]. rewrite (feval_eq x), (feval_eq y). reflexivity. Qed.
(* The reference is the largest score, exactly. *)
Lemma fm_ub p e : In e (keys p) -> fst e <= fm p.
Proof.
  induction p as [e0 L|x IH e0 L|x IHx y IHy]; simpl.
  - destruct (tile_max_ge L (fst e0)) as [h1 h2]. intros [<-|H]; auto.
  - rewrite fm_take. destruct (tile_max_ge L (Rmax (fm x) (fst e0))) as [h1 h2].
    pose proof (Rmax_l (fm x) (fst e0)). pose proof (Rmax_r (fm x) (fst e0)).
    intros H1. apply in_app_or in H1. destruct H1 as [H1|[<-|H1]]; auto; try lra.
    specialize (IH H1). lra.
  - rewrite fm_join. pose proof (Rmax_l (fm x) (fm y)). pose proof (Rmax_r (fm x) (fm y)).
    intros H1. apply in_app_or in H1. destruct H1 as [H1|H1]; [specialize (IHx H1)|specialize (IHy H1)]; lra.
Qed.
Lemma fm_attained p : exists e, In e (keys p) /\ fst e = fm p.
Proof.
  induction p as [e0 L|x (ex & Ix & Ex) e0 L|x (ex & Ix & Ex) y (ey & Iy & Ey)]; simpl.
  - destruct (tile_max_in L (fst e0)) as [E|(e & He & E)].
    + exists e0. split; auto.
    + exists e. split; auto.
  - rewrite fm_take. destruct (tile_max_in L (Rmax (fm x) (fst e0))) as [->|(e & He & E)].
    + unfold Rmax. destruct Rle_dec; [exists e0|exists ex]; split; auto; apply in_or_app; simpl; auto.
    + exists e. split; auto. apply in_or_app; simpl; auto.
  - rewrite fm_join. unfold Rmax.
    destruct Rle_dec; [exists ey|exists ex]; split; auto; apply in_or_app; auto.
Qed.
(* A reference that rises does so because of a key of the other side. *)
Lemma risen_take x e L : fm x < fm (Take x e L) ->
  exists k, In k (e :: L) /\ fst k = fm (Take x e L).
Proof.
  rewrite fm_take. intros H. destruct (tile_max_in L (Rmax (fm x) (fst e))) as [E|(k & Hk & E)].
  - rewrite E in *. unfold Rmax in *. destruct Rle_dec; [exists e; simpl; auto|lra].
  - exists k; simpl; auto.
Qed.

(* Scores and values are in the format, values at most V. *)
Variable V : R.
Definition inF (L : list elt) := forall e, In e L -> F (fst e) /\ F (snd e) /\ Rabs (snd e) <= V.

(* The exponential: relative error epse plus at most etae where it underflows (Exp32, Exp64). *)
Variables epse etae : R.
Hypothesis epse_rng : 0 <= epse < 1.
Hypothesis etae_pos : 0 <= etae.
Hypothesis exp_F : forall x, F (fexpf x).
Hypothesis exp_0 : fexpf 0 = 1.
Hypothesis exp_err : forall x, F x -> x <= 0 ->
  exists e h, Rabs e <= epse /\ Rabs h <= etae /\ fexpf x = exp x * (1 + e) + h.
(* P before its product with V: the identity, or a rounding to a narrower format. *)
Variables epsp etap : R.
Hypothesis epsp_rng : 0 <= epsp < 1.
Hypothesis etap_pos : 0 <= etap.
Hypothesis V_pos : 0 <= V.
Hypothesis narrow_1 : narrow 1 = 1.
Hypothesis narrow_F : forall x, F x -> F (narrow x).
Hypothesis narrow_err : forall x, F x ->
  exists e h, Rabs e <= epsp /\ Rabs h <= etap /\ narrow x = x * (1 + e) + h.

Lemma inF_app A B : inF (A ++ B) -> inF A /\ inF B.
Proof. intros H. split; intros e He; apply H, in_or_app; auto. Qed.
Lemma F_1 : F 1. Proof. rewrite <- exp_0. apply exp_F. Qed.
Lemma F_Rmax x y : F x -> F y -> F (Rmax x y).
Proof. intros. unfold Rmax. destruct Rle_dec; auto. Qed.
Lemma tile_F m L : forall lu, F (fst lu) -> F (snd lu) ->
  F (fst (fold_left (tile_add m) L lu)) /\ F (snd (fold_left (tile_add m) L lu)).
Proof. induction L as [|e L IH]; intros lu H1 H2; simpl; auto. apply IH; apply fl_F. Qed.
Lemma tile_max_F L : forall m, F m -> (forall e, In e L -> F (fst e)) -> F (tile_max m L).
Proof.
  unfold tile_max. induction L as [|e L IH]; intros m Hm H; simpl; auto.
  apply IH; [apply F_Rmax; auto; apply H; left; auto|intros; apply H; right; auto].
Qed.
Lemma feval_F p : inF (keys p) -> F (fm p) /\ F (fl_l p) /\ F (fl_u p).
Proof.
  assert (Z : F 0) by apply generic_format_0.
  induction p as [e L|x IH e L|x IHx y IHy]; simpl; intros H.
  - unfold fm, fl_l, fl_u; cbn [feval fst snd]. split; [|apply (tile_F _ (e :: L)); auto].
    apply tile_max_F; [apply H; simpl; auto|intros; apply H; simpl; auto].
  - destruct (inF_app _ _ H) as [HA HB]. destruct (IH HA) as (f1 & _ & _).
    rewrite fm_take. split; [|unfold fl_l, fl_u; cbn [feval]; rewrite (feval_eq x); split; apply fl_F].
    apply tile_max_F; [apply F_Rmax; auto; apply HB; simpl; auto|intros; apply HB; simpl; auto].
  - destruct (inF_app _ _ H) as [HA HB]. destruct (IHx HA) as (f1 & _ & _), (IHy HB) as (g1 & _ & _).
    rewrite fm_join. split; [now apply F_Rmax|].
    unfold fl_l, fl_u; cbn [feval]. rewrite (feval_eq x), (feval_eq y). split; apply fl_F.
Qed.

(* ---- one rounding each ---- *)
Lemma plus_eps x : x <= u_ro radix2 prec / (1 + u_ro radix2 prec) -> x <= eps.
Proof.
  intros H. eapply Rle_trans; [exact H|]. unfold eps. pose proof (u_ro_pos radix2 prec).
  apply le_div_l; nra.
Qed.
Lemma add_err x y : F x -> F y -> rnd eps (x + y) (fl (x + y)).
Proof.
  intros Fx Fy. destruct (FLT_plus_error_N_ex radix2 emin prec choice x y Fx Fy) as (d & Hd & Ed).
  exists d. split; auto. now apply plus_eps.
Qed.
Lemma sub_err x y : F x -> F y -> exists d, Rabs d <= eps /\ fl (x - y) = (x - y) * (1 + d).
Proof. intros Fx Fy. apply (add_err x (- y)); auto. now apply generic_format_opp. Qed.
Lemma mul_err x : exists d h, Rabs d <= eps /\ Rabs h <= eta /\ fl x = x * (1 + d) + h.
Proof.
  destruct (error_N_FLT radix2 emin prec Hprec choice x) as (d & h & Hd & Hh & _ & E).
  exists d, h. auto.
Qed.
(* A fused multiply-add underflows as its product would, or rounds as its sum would. *)
Lemma fma_err x : exists h, Rabs h <= eta /\ rnd eps (x + h) (fl x).
Proof.
  destruct (error_N_FLT radix2 emin prec Hprec choice x) as (d & h & Hd & Hh & Z & E).
  pose proof eta_pos. pose proof eps_rng. apply Rmult_integral in Z. destruct Z as [Z|Z].
  - exists h. split; auto. exists 0. rewrite Rabs_R0. split; [lra|]. unfold fl. rewrite E, Z. ring.
  - exists 0. rewrite Rabs_R0. split; auto. exists d. split; auto. unfold fl. rewrite E, Z. ring.
Qed.

Definition resc (m1 m : R) : nat := if Req_EM_T m1 m then 0 else 1.
Lemma exp_factor m1 m : F m1 -> F m -> m1 <= m -> m1 <> m ->
  factor eps epse etae m1 m (fexpf (fl (m1 - m))) 1.
Proof.
  intros F1 F2 Hm _. destruct (sub_err m1 m F1 F2) as (d & Hd & Ed).
  destruct (exp_err (fl (m1 - m)) (fl_F _)) as (e & h & He & Hh & E).
  - rewrite <- fl_0. apply fl_mono. lra.
  - apply (factor_exp _ _ _ _ _ _ d e h); auto. now rewrite E, Ed.
Qed.
Lemma worth_factor m1 m : F m1 -> F m -> m1 <= m ->
  factor eps epse etae m1 m (worth m1 m) (resc m1 m).
Proof.
  intros. unfold worth, resc. destruct Req_EM_T; [now apply factor_one|now apply exp_factor].
Qed.
Lemma weight_factor s m : F s -> F m -> s <= m ->
  factor eps epse etae s m (weight s m) (resc s m).
Proof.
  intros. unfold weight, resc. destruct Req_EM_T as [->|]; [|now apply exp_factor].
  apply factor_one; auto. rewrite Rminus_diag_eq, fl_0 by auto. exact exp_0.
Qed.
Lemma worth_times m1 m x : F x -> times eps eta (worth m1 m) (resc m1 m) x (fl (worth m1 m * x)).
Proof.
  intros Fx. unfold worth, resc. destruct Req_EM_T; simpl.
  - rewrite Rmult_1_l. now apply fl_id.
  - destruct (mul_err (fexpf (fl (m1 - m)) * x)) as (d & h & Hd & Hh & E). exists d, h; auto.
Qed.

(* ---- a tile ---- *)
Definition etau := eta + etap * V * (1 + eps).
Lemma etau_ge : eta <= etau.
Proof.
  pose proof eps_rng. unfold etau. assert (0 <= etap * V * (1 + eps)); [|lra].
  repeat apply Rmult_le_pos; lra.
Qed.
Lemma worth_times_u m1 m x : F x ->
  times eps etau (worth m1 m) (resc m1 m) x (fl (worth m1 m * x)).
Proof.
  intros Fx. pose proof (worth_times m1 m x Fx) as H. pose proof etau_ge.
  destruct (resc m1 m); simpl in *; auto. destruct H as (d & h & h1 & h2 & h3).
  exists d, h. repeat split; auto; lra.
Qed.
Lemma V_abs e L : inF L -> In e L -> Rabs (snd e) <= V. Proof. intros H He. apply (H e He). Qed.
Lemma pv_err s m v h0 d0 : F s -> F m -> s <= m -> F v -> Rabs v <= V -> Rabs h0 <= eta ->
  Rabs d0 <= eps -> (s = m -> d0 = 0 /\ h0 = 0) ->
  weighted eps epsp etau (weight s m) (resc s m) v (narrow (weight s m) * v * (1 + d0) + h0).
Proof.
  intros Fs Fm Hs Fv HV Hh Hd Htop. pose proof eps_rng. unfold resc, weight.
  destruct Req_EM_T as [E|E]; simpl.
  - destruct (Htop E) as [-> ->]. rewrite E, Rminus_diag_eq, fl_0, exp_0, narrow_1 by auto. ring.
  - destruct (narrow_err (fexpf (fl (s - m))) (exp_F _)) as (e & h & He & Hh' & ->).
    exists e, d0, (h0 + h * v * (1 + d0)). repeat split; auto; [|ring].
    apply Rabs_plus_le; auto. repeat apply Rabs_mult_le; auto.
    apply Rabs_rng in Hd. rewrite Rabs_pos_eq; lra.
Qed.
Notation run := (run eps eps epse etae epsp eta etau).

Lemma resc_1 m1 m : (resc m1 m <= 1)%nat. Proof. unfold resc. destruct Req_EM_T; lia. Qed.
Lemma first_run m e : F (fst e) -> F (snd e) -> Rabs (snd e) <= V -> F m -> fst e <= m ->
  let lu := tile_add m (0, 0) e in let k := resc (fst e) m in
  run (Leaf e) m (fst lu) (snd lu) [Path e 0 0 k] k k k.
Proof.
  intros Fs Fv HV Fm Hs lu k. destruct e as [s v]; simpl in *. unfold lu, tile_add; cbn [fst snd].
  rewrite Rplus_0_l. assert (Ew : fl (weight s m) = weight s m) by (apply fl_id, exp_F).
  rewrite Ew. apply run_leaf; auto; [now apply weight_factor|]. unfold fma. rewrite Rplus_0_r.
  destruct (Req_EM_T s m) as [E|E].
  - replace (fl (narrow (weight s m) * v)) with (narrow (weight s m) * v * (1 + 0) + 0).
    + apply pv_err; auto; rewrite ?Rabs_R0; auto using eta_pos; pose proof eps_rng; lra.
    + rewrite E. unfold weight. rewrite Rminus_diag_eq, fl_0, exp_0, narrow_1, Rmult_1_l by auto.
      rewrite (fl_id v Fv). ring.
  - destruct (mul_err (narrow (weight s m) * v)) as (d & h & Hd & Hh & ->).
    apply pv_err; auto; tauto.
Qed.

(* A tile from what it has so far: every key after the first is one more leaf. *)
Lemma tile_run m (L : list elt) : forall t lu P N n c, F m ->
  (forall e, In e L -> F (fst e) /\ F (snd e) /\ Rabs (snd e) <= V /\ fst e <= m) ->
  F (fst lu) -> F (snd lu) -> run t m (fst lu) (snd lu) P N n c -> (c <= 1)%nat ->
  Forall (fun p => rescales p = 0 /\ own p = resc (fst (key p)) m)%nat P ->
  let lu' := fold_left (tile_add m) L lu in
  exists P' N' n' c', run (tile_tree t L) m (fst lu') (snd lu') P' N' n' c' /\
    (N' <= N + length L /\ n' <= max n 1 + length L /\ c' <= 1)%nat /\
    Forall (fun p => rescales p = 0 /\ own p = resc (fst (key p)) m)%nat P' /\
    (forall a, Forall (fun p => adds p <= a)%nat P -> Forall (fun p => adds p <= a + length L)%nat P').
Proof.
  induction L as [|e L IH]; intros t lu P N n c Fm HL F1 F2 HR Hc HP lu'.
  - exists P, N, n, c. simpl. repeat split; try lia; auto. intros a.
    apply Forall_impl. intros; lia.
  - destruct (HL e (or_introl eq_refl)) as (Fs & Fv & HV & Hs). destruct e as [s v].
    cbn [fst snd] in *. set (p := weight s m). set (k := resc s m).
    destruct (fma_err (narrow p * v + snd lu)) as (h & Hh & Ru).
    assert (HN : run (Node t (Leaf (s, v))) m (fl (fst lu + p)) (fma (narrow p) v (snd lu))
      (map (bump 0) P ++ map (bump 0) [Path (s, v) 0 0 k]) (N + k + 0 + 0) (max (n + 0) (k + 0) + 1)
      (max (c + 0) (k + 0))).
    { apply (run_node eps eps epse etae epsp eta etau _ _ m (fst lu) (snd lu) m p
        (narrow p * v + (if Req_EM_T s m then 0 else h))).
      - exact HR.
      - apply run_leaf; auto; [now apply weight_factor|].
        replace (narrow p * v + _)
          with (narrow p * v * (1 + 0) + (if Req_EM_T s m then 0 else h)) by ring.
        apply pv_err; auto; destruct (Req_EM_T s m); rewrite ?Rabs_R0; auto using eta_pos;
          try (pose proof eps_rng; lra); tauto.
      - split; [lra|split; [lra|]].
        exists 1, 1, (fst lu), p, (snd lu), (narrow p * v + (if Req_EM_T s m then 0 else h)).
        repeat split; try (now apply factor_one).
        + apply add_err; auto. apply exp_F.
        + unfold fma. destruct Req_EM_T as [E|E].
          * rewrite Rplus_0_r, Rplus_comm. unfold p, weight.
            rewrite E, Rminus_diag_eq, fl_0, exp_0, narrow_1, Rmult_1_l by auto.
            now apply add_err.
          * destruct Ru as (d & Hd & Ed). exists d. split; auto. rewrite Ed. ring. }
    assert (K1 : (k <= 1)%nat) by apply resc_1.
    destruct (IH _ (fl (fst lu + p), fma (narrow p) v (snd lu)) _ _ _ _ Fm
      (fun e He => HL e (or_intror He)) (fl_F _) (fl_F _) HN ltac:(lia))
      as (P' & N' & n' & c' & R' & (B1 & B2 & B3) & HP' & HA).
    { apply Forall_app. split; apply Forall_map.
      - eapply Forall_impl; [|exact HP]. simpl. intros q [h1 h2]. split; auto. lia.
      - constructor; [|constructor]. simpl. auto. }
    exists P', N', n', c'. simpl. repeat split; auto; try lia.
    intros a Ha. replace (a + S (length L))%nat with (a + 1 + length L)%nat by lia. apply HA.
    apply Forall_app. split; apply Forall_map.
    + eapply Forall_impl; [|exact Ha]. simpl. intros; lia.
    + constructor; [|constructor]. simpl. lia.
Qed.

(* A whole tile against reference m. *)
Lemma whole_tile m (e : elt) (L : list elt) : F m -> inF (e :: L) -> (forall x, In x (e :: L) -> fst x <= m) ->
  exists P N n c, run (tile_tree (Leaf e) L) m (fst (tile m (e :: L))) (snd (tile m (e :: L))) P N n c /\
    (N <= 1 + length L /\ n <= 1 + length L /\ c <= 1)%nat /\
    Forall (fun p => rescales p = 0 /\ own p = resc (fst (key p)) m /\ adds p <= length L)%nat P.
Proof.
  intros Fm HF Hm. destruct (HF e (or_introl eq_refl)) as (Fs & Fv & HV).
  pose proof (first_run m e Fs Fv HV Fm (Hm e (or_introl eq_refl))) as HR. cbv zeta in HR.
  set (k := resc (fst e) m) in *. assert (K1 : (k <= 1)%nat) by apply resc_1.
  assert (HL : forall x, In x L -> F (fst x) /\ F (snd x) /\ Rabs (snd x) <= V /\ fst x <= m).
  { intros x Hx. destruct (HF x (or_intror Hx)) as (h1 & h2 & h3).
    repeat split; auto. apply Hm; simpl; auto. }
  destruct (tile_run m L (Leaf e) (tile_add m (0, 0) e) _ _ _ _ Fm HL (fl_F _) (fl_F _) HR K1)
    as (P & N & n & c & R' & (B1 & B2 & B3) & HP & HA).
  { constructor; [|constructor]. simpl. auto. }
  clearbody k. exists P, N, n, c. split; [exact R'|]. split; [lia|].
  apply Forall_forall. intros q Hq. destruct (proj1 (Forall_forall _ _) HP q Hq).
  split; [auto|split; [auto|]].
  apply (proj1 (Forall_forall _ _) (HA 0%nat ltac:(constructor; [simpl; lia|constructor])) q Hq).
Qed.

(* ---- a row ---- *)
(* What key p has met in row x: no more than the depth allows, no more than its rivals force. *)
Definition counted x p := (adds p <= most_adds x /\ rescales p <= most_rescales x /\ own p <= 1 /\
  exps p <= rivals (keys x) (fst (key p)))%nat.
Definition budget x := (most_adds x + most_rescales x + 1)%nat.
Fixpoint products x := match x with
  | First _ L => 1 + length L
  | Take x _ L => products x + 2 + length L
  | Join x y => products x + products y + 2
  end%nat.
Lemma in_keys x P m l u N n c p : run (tree_of x) m l u P N n c -> In p P -> In (key p) (keys x).
Proof. intros HR Hp. rewrite <- leaves_keys. erewrite <- run_keys by exact HR. now apply in_map. Qed.
Lemma resc_lt (m1 m : R) : m1 <= m -> resc m1 m = 1%nat -> m1 < m.
Proof. unfold resc. destruct Req_EM_T; [discriminate|]. intros [H|H] _; [auto|tauto]. Qed.

Lemma counted_tile x (e : elt) (L : list elt) P : (forall y, In y (e :: L) -> In y (keys x)) ->
  (forall p, In p P -> In (key p) (e :: L)) ->
  Forall (fun p => rescales p = 0 /\ own p = resc (fst (key p)) (fm x) /\ adds p <= most_adds x)%nat P ->
  Forall (counted x) P.
Proof.
  intros HI HK HP. apply Forall_forall. intros p Hp.
  destruct (proj1 (Forall_forall _ _) HP p Hp) as (h1 & h2 & h3).
  pose proof (resc_1 (fst (key p)) (fm x)). unfold counted, exps. repeat split; try lia.
  destruct (resc (fst (key p)) (fm x)) as [|[|]] eqn:E; [lia| |lia].
  apply resc_lt in E; [|apply fm_ub; auto]. destruct (fm_attained x) as (y & Hy & Ey).
  pose proof (rivals_pos (keys x) (fst (key p)) y Hy ltac:(lra)). lia.
Qed.
Lemma counted_bump x y side other P : (keys y = side ++ other \/ keys y = other ++ side) ->
  keys x = side -> (forall p, In p P -> In (key p) side) ->
  (most_adds x + 1 <= most_adds y)%nat ->
  (most_rescales x + resc (fm x) (fm y) <= most_rescales y)%nat -> fm x <= fm y ->
  (fm x < fm y -> exists k, In k other /\ fst k = fm y) ->
  Forall (counted x) P -> Forall (counted y) (map (bump (resc (fm x) (fm y))) P).
Proof.
  intros HK HS HI Ha Hr Hm Hrise HP. apply Forall_map, Forall_forall. intros p Hp.
  destruct (proj1 (Forall_forall _ _) HP p Hp) as (h1 & h2 & h3 & h4).
  unfold counted, exps in *. simpl. repeat split; try lia.
  assert (E : rivals (keys y) (fst (key p)) = (rivals side (fst (key p)) + rivals other (fst (key p)))%nat)
    by (destruct HK as [->| ->]; rewrite rivals_app; lia).
  rewrite E, <- HS. pose proof (resc_1 (fm x) (fm y)).
  destruct (resc (fm x) (fm y)) as [|[|]] eqn:Er; [lia| |lia].
  apply resc_lt in Er; auto. destruct (Hrise Er) as (k & Hk & Ek).
  assert (fst (key p) <= fm x) by (apply fm_ub; rewrite HS; auto).
  pose proof (rivals_pos other (fst (key p)) k Hk ltac:(lra)). lia.
Qed.

(* Every row of at_row.h is an execution of its tree. *)
Theorem row_run x : inF (keys x) -> exists P N n c,
  run (tree_of x) (fm x) (fl_l x) (fl_u x) P N n c /\
  (N <= products x /\ n <= budget x /\ c <= most_rescales x + 1)%nat /\ Forall (counted x) P.
Proof.
  induction x as [e L|x IH e L|x IHx y IHy]; intros HF.
  - destruct (feval_F (First e L) HF) as (Fm & _ & _).
    destruct (whole_tile (fm (First e L)) e L Fm HF (fm_ub (First e L)))
      as (P & N & n & c & HR & HB & HP).
    exists P, N, n, c. split; [exact HR|]. split; [unfold budget; simpl; lia|].
    eapply counted_tile; eauto. intros p Hp. exact (in_keys (First e L) _ _ _ _ _ _ _ _ HR Hp).
  - destruct (feval_F (Take x e L) HF) as (Fm & _ & _). pose proof (fm_ub (Take x e L)) as Hub.
    cbn [keys] in *. destruct (inF_app _ _ HF) as [HA HB]. destruct (feval_F x HA) as (f1 & f2 & f3).
    destruct (IH HA) as (P & N & n & c & HR & (B1 & B2 & B3) & HP).
    destruct (whole_tile (fm (Take x e L)) e L Fm HB
      (fun k Hk => Hub k (in_or_app _ _ _ (or_intror Hk))))
      as (P' & N' & n' & c' & HR' & (C1 & C2 & C3) & HP').
    set (m := fm (Take x e L)) in *.
    assert (Hm : fm x <= m).
    { destruct (fm_attained x) as (k & Hk & Ek). rewrite <- Ek. apply Hub, in_or_app; auto. }
    pose proof (resc_1 (fm x) m).
    exists (map (bump (resc (fm x) m)) P ++ map (bump 0) P'), (N + N' + resc (fm x) m + 0)%nat,
      (max (n + resc (fm x) m) (n' + 0) + 1)%nat, (max (c + resc (fm x) m) (c' + 0))%nat.
    split; [|split].
    + cbn [tree_of]. eapply run_node; [exact HR|exact HR'|].
      split; [auto|split; [lra|]]. exists (worth (fm x) m), 1.
      do 4 eexists. split; [now apply worth_factor|]. split; [now apply factor_one|].
      split; [now apply worth_times|]. split; [now apply worth_times_u|].
      split; [reflexivity|]. split; [reflexivity|].
      unfold fl_l, fl_u, m; rewrite fm_take; cbn [feval]; rewrite (feval_eq x).
      unfold row_take; cbn [fst snd]. unfold take, larger.
      destruct (tile_F (tile_max (Rmax (fm x) (fst e)) L) (e :: L) (0, 0)) as [T1 T2];
        [apply generic_format_0|apply generic_format_0|].
      split; apply add_err; auto using fl_F.
    + unfold budget in *. simpl. lia.
    + apply Forall_app. split.
      * apply (counted_bump x (Take x e L) (keys x) (e :: L)); simpl; auto; try lia.
        -- intros p Hp. exact (in_keys x _ _ _ _ _ _ _ _ HR Hp).
        -- fold m. lia.
        -- apply risen_take.
      * apply (counted_tile (Take x e L) e L).
        -- simpl. intros. apply in_or_app; auto.
        -- intros p Hp. apply in_map_iff in Hp. destruct Hp as (q & <- & Hq).
           exact (in_keys (First e L) _ _ _ _ _ _ _ _ HR' Hq).
        -- apply Forall_map. eapply Forall_impl; [|exact HP']. simpl.
           intros p (h1 & h2 & h3). fold m. repeat split; auto; lia.
  - destruct (inF_app _ _ HF) as [HA HB].
    destruct (feval_F x HA) as (f1 & f2 & f3), (feval_F y HB) as (g1 & g2 & g3).
    destruct (IHx HA) as (P & N & n & c & HR & (B1 & B2 & B3) & HP).
    destruct (IHy HB) as (P' & N' & n' & c' & HR' & (C1 & C2 & C3) & HP').
    pose proof (fm_join x y) as Em. set (m := fm (Join x y)) in *.
    assert (Fm : F m) by (rewrite Em; now apply F_Rmax).
    pose proof (Rmax_l (fm x) (fm y)). pose proof (Rmax_r (fm x) (fm y)). rewrite <- Em in *.
    pose proof (resc_1 (fm x) m). pose proof (resc_1 (fm y) m).
    exists (map (bump (resc (fm x) m)) P ++ map (bump (resc (fm y) m)) P'),
      (N + N' + resc (fm x) m + resc (fm y) m)%nat,
      (max (n + resc (fm x) m) (n' + resc (fm y) m) + 1)%nat,
      (max (c + resc (fm x) m) (c' + resc (fm y) m))%nat.
    split; [|split].
    + cbn [tree_of]. eapply run_node; [exact HR|exact HR'|].
      split; [auto|split; [auto|]]. exists (worth (fm x) m), (worth (fm y) m).
      do 4 eexists. split; [now apply worth_factor|]. split; [now apply worth_factor|].
      do 2 (split; [now apply worth_times|]; split; [now apply worth_times_u|]).
      unfold fl_l, fl_u, m; rewrite fm_join; cbn [feval]; rewrite (feval_eq x), (feval_eq y).
      unfold row_merge; cbn [fst snd]. split; apply add_err; apply fl_F.
    + unfold budget in *. simpl. lia.
    + apply Forall_app. split.
      * apply (counted_bump x (Join x y) (keys x) (keys y)); simpl; auto; try lia.
        -- intros p Hp. exact (in_keys x _ _ _ _ _ _ _ _ HR Hp).
        -- fold m. lia.
        -- fold m. intros Hlt. destruct (fm_attained y) as (k & Hk & Ek). exists k. split; auto.
           rewrite Ek, Em. rewrite Em in Hlt. unfold Rmax in *. destruct Rle_dec; lra.
      * apply (counted_bump y (Join x y) (keys y) (keys x)); simpl; auto; try lia.
        -- intros p Hp. exact (in_keys y _ _ _ _ _ _ _ _ HR' Hp).
        -- fold m. lia.
        -- fold m. intros Hlt. destruct (fm_attained x) as (k & Hk & Ek). exists k. split; auto.
           rewrite Ek, Em. rewrite Em in Hlt. unfold Rmax in *. destruct Rle_dec; lra.
Qed.

(* ---- the error of a row ---- *)
Notation Rep := (Rep eps eps epse etae epsp).
Notation amp := (amp eps epse etae).
Notation dust := (dust epse etae).
Notation kappa := (kappa eps eps epse epsp).
Definition worst_c x := (most_rescales x + 1)%nat.
Definition lost_l x := INR (products x) * eta * amp (budget x) (worst_c x).
Definition lost_u x := INR (products x) * etau * amp (budget x) (worst_c x).
Lemma residual_le eta' N N' n n' c c' : 0 <= eta' -> (N <= N')%nat -> (n <= n')%nat -> (c <= c')%nat ->
  INR N * eta' * amp n c <= INR N' * eta' * amp n' c'.
Proof.
  intros He HN Hn Hc. pose proof eps_rng. pose proof (pos_INR N). apply le_INR in HN.
  pose proof (amp_ge1 eps epse etae eps_rng epse_rng etae_pos n c).
  pose proof (amp_le eps epse etae eps_rng epse_rng etae_pos n c n' c' Hn Hc).
  apply Rmult_le_compat; try lra; [apply Rmult_le_pos; lra|].
  apply Rmult_le_compat_r; lra.
Qed.
Lemma row_Rep x : inF (keys x) -> exists W, map (fun t => key (on t)) W = keys x /\
  Rep W (fm x) (fl_l x) (fl_u x) (lost_l x) (lost_u x) /\
  Forall (fun p => adds p + rescales p + own p <= budget x /\ exps p <= worst_c x)%nat (map on W) /\
  Forall (fun p => own p <= 1)%nat (map on W).
Proof.
  intros HF. destruct (row_run x HF) as (P & N & n & c & HR & (B1 & B2 & B3) & HP).
  pose proof (run_keys _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ HR) as HK.
  pose proof eps_rng. pose proof eta_pos. pose proof etau_ge.
  apply run_Rep in HR; auto; try lra. destruct HR as (W & HW & HG).
  exists W. rewrite HW. split; [|split; [|split]].
  - rewrite <- leaves_keys, <- HK, <- HW, map_map. reflexivity.
  - eapply Rep_weaken; [| |exact HG]; apply residual_le; auto; unfold worst_c; lra || lia.
  - eapply Forall_impl; [|exact HP]. intros p (h1 & h2 & h3 & _).
    unfold budget, worst_c, exps. lia.
  - eapply Forall_impl; [|exact HP]. intros p (_ & _ & h & _). exact h.
Qed.

(* In any IEEE format, without a condition on the spread of the scores: the output, before and
   after the final division. *)
Theorem attention_FLT x : inF (keys x) ->
  let n := length (keys x) in
  let Kl := kappa (budget x) 0 (worst_c x) n in let Ku := kappa (budget x) 1 (worst_c x) n in
  let Dl := INR n * (dust (worst_c x) * up eps (budget x)) + lost_l x in
  let Du := V * (INR n * (dust (worst_c x) * (up eps (budget x) * up epsp 1))) + lost_u x in
  let exact := TT (fm x) (keys x) / SS (fm x) (keys x) in
  let bound := ((Kl + Ku) * V + V * Dl + Du) / (1 - Kl - Dl) in
  Kl + Dl < 1 ->
  0 < fl_l x /\ Rabs (fl_u x / fl_l x - exact) <= bound /\
  Rabs (fl (fl_u x / fl_l x) - exact) <= bound * (1 + eps) + eps * V + eta.
Proof.
  intros HF n Kl Ku Dl Du exact bound HK.
  destruct (row_Rep x HF) as (W & HW & HR & HC & HO). pose proof eps_rng.
  pose proof (fm_attained x) as Hatt. pose proof (fun e He => V_abs e _ HF He) as HV.
  assert (HE : 0 < fl_l x /\ Rabs (fl_u x / fl_l x - exact) <= bound).
  { unfold exact, bound, Kl, Ku, Dl, Du, n in *. rewrite <- HW in *.
    apply (error_out eps eps epse etae epsp) with (W := W) (N := budget x) (c := worst_c x) (V := V);
      auto. }
  destruct HE as [Pl Hb]. split; [auto|split; [auto|]].
  destruct (mul_err (fl_u x / fl_l x)) as (d & h & Hd & Hh & ->).
  assert (Hex : Rabs exact <= V).
  { pose proof (SS_ge1 _ _ Hatt) as HS. pose proof (TT_le V (fm x) _ HV) as HT.
    unfold exact, Rdiv. rewrite Rabs_mult, (Rabs_pos_eq (/ _))
      by (left; apply Rinv_0_lt_compat; lra). apply le_div_l; lra. }
  set (r := fl_u x / fl_l x) in *.
  replace (r * (1 + d) + h - exact) with ((r - exact) * (1 + d) + d * exact + h) by ring.
  repeat apply Rabs_plus_le; auto; apply Rabs_mult_le; auto.
  apply Rabs_rng in Hd. rewrite Rabs_pos_eq; lra.
Qed.
End FLT.

(* Streaming: a row of tiles, and one key at a time. *)
Fixpoint stream x (T : list (elt * list elt)) :=
  match T with [] => x | (e, L) :: T => stream (Take x e L) T end.
(* n keys in tiles of at most b + 1 keys: b additions inside, one for each later tile. *)
Theorem stream_depth b T : forall x, Forall (fun t => length (snd t) <= b)%nat T ->
  (most_adds (stream x T) <= max (most_adds x) b + length T)%nat /\
  most_rescales (stream x T) = (most_rescales x + length T)%nat.
Proof.
  induction T as [|[e L] T IH]; intros x H; simpl; [lia|].
  inversion H as [|? ? H1 H2]; subst. destruct (IH (Take x e L) H2) as [h1 h2].
  simpl in *. lia.
Qed.
