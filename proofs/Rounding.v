(* What a computed state (m, l, u) is, for any tree of merges, any order and any contraction:

       l = sum w_j a_j + small,   u = sum w_j b_j v_j + small

   The weight w_j carries every error that l and u share (the exponentials on the path of key j);
   a_j and b_j carry the roundings that each has for itself.  The operations are relations: each
   use may pick its own errors, so that a fused multiply-add, or none, is covered.
   Standard library only.  SPDX-License-Identifier: MIT *)
From Coq Require Import Reals Lra Lia List Arith.
Require Import Sums.
Import ListNotations.
Local Open Scope R_scope.

(* Trees of merges: a leaf is one visible key. *)
Inductive tree := Leaf (e : elt) | Node (t1 t2 : tree).
Fixpoint leaves t := match t with Leaf e => [e] | Node x y => leaves x ++ leaves y end.
Fixpoint depth t := match t with Leaf _ => O | Node x y => S (max (depth x) (depth y)) end.
Fixpoint nodes t := match t with Leaf _ => O | Node x y => S (nodes x + nodes y) end.

(* What one key meets: additions, rescales by a factor other than 1, and whether its own weight
   came from an exponential (1) or is exactly 1 (0). *)
Record path := Path { key : elt; adds : nat; rescales : nat; own : nat }.
Definition bump k p := Path (key p) (adds p + 1) (rescales p + k) (own p).
Lemma key_bump k P : map key (map (bump k) P) = map key P.
Proof. rewrite map_map. now apply map_ext. Qed.

(* ---- growth: powers of 1 + e and 1 - e ---- *)
Definition up e (n : nat) := (1 + e) ^ n.
Definition down e (n : nat) := (1 - e) ^ n.
Lemma up_ge1 e n : 0 <= e -> 1 <= up e n.
Proof. intros; apply pow_R1_Rle; lra. Qed.
Lemma up_le e n n' : 0 <= e -> (n <= n')%nat -> up e n <= up e n'.
Proof. intros; apply Rle_pow; auto; lra. Qed.
Lemma up_mono e e' n : 0 <= e <= e' -> up e n <= up e' n.
Proof. intros; apply pow_incr; lra. Qed.
Lemma down_rng e n : 0 <= e < 1 -> 0 < down e n <= 1.
Proof.
  intros H. induction n as [|n [H1 H2]]; unfold down in *; simpl; [lra|]. split; [|nra].
  apply Rmult_lt_0_compat; lra.
Qed.
Lemma up_add e n n' : up e (n + n') = up e n * up e n'. Proof. apply pow_add. Qed.
Lemma down_add e n n' : down e (n + n') = down e n * down e n'. Proof. apply pow_add. Qed.
Lemma down_le e n n' : 0 <= e < 1 -> (n <= n')%nat -> down e n' <= down e n.
Proof.
  intros He H. replace n' with (n + (n' - n))%nat by lia. rewrite down_add.
  pose proof (down_rng e n He). pose proof (down_rng e (n' - n) He). nra.
Qed.

(* x is a product of n factors 1 + d, |d| <= e. *)
Definition within e n x := down e n <= x <= up e n.
Lemma within_1 e : 0 <= e -> within e 0 1.
Proof. intros. unfold within, down, up; simpl; lra. Qed.
Lemma within_d e d : Rabs d <= e -> within e 1 (1 + d).
Proof. intros H. apply Rabs_rng in H. unfold within, down, up; simpl; lra. Qed.
Lemma within_mul e n n' x y : 0 <= e < 1 ->
  within e n x -> within e n' y -> within e (n + n') (x * y).
Proof.
  intros He [h1 h2] [h3 h4]. unfold within. rewrite down_add, up_add.
  pose proof (down_rng e n He). pose proof (down_rng e n' He).
  split; apply Rmult_le_compat; lra.
Qed.
Lemma within_weaken e n n' x : 0 <= e < 1 -> (n <= n')%nat -> within e n x -> within e n' x.
Proof.
  intros He Hn [h1 h2]. pose proof (down_le e n n' He Hn).
  split; [lra|]. apply Rle_trans with (up e n); auto. apply up_le; auto; lra.
Qed.
Lemma within_abs e n x : 0 <= e < 1 -> within e n x -> Rabs x <= up e n.
Proof. intros He [h1 h2]. pose proof (down_rng e n He). rewrite Rabs_pos_eq; lra. Qed.

Section Model.
(* eps: + - * / fma;  epsa: the argument of exp;  epse, etae: exp, relative and absolute;
   epsp: P rounded to a narrower format for the product with V;
   etal, etau: absolute error of a product that underflows, in l and in u. *)
Variables eps epsa epse etae epsp etal etau : R.
Hypothesis eps_rng : 0 <= eps < 1.
Hypothesis epsa_rng : 0 <= epsa < 1.
Hypothesis epse_rng : 0 <= epse < 1.
Hypothesis etae_pos : 0 <= etae.
Hypothesis epsp_rng : 0 <= epsp < 1.
Hypothesis etal_pos : 0 <= etal.
Hypothesis etau_pos : 0 <= etau.

(* ---- the operations ---- *)
Definition rnd x y := exists d, Rabs d <= eps /\ y = x * (1 + d).
(* f is the computed e^(m1-m): exactly 1 where m1 = m (k = 0), else one exponential (k = 1). *)
Inductive factor (m1 m f : R) : nat -> Prop :=
  | factor_one : m1 = m -> f = 1 -> factor m1 m f 0
  | factor_exp d e h : Rabs d <= epsa -> Rabs e <= epse -> Rabs h <= etae ->
      f = exp ((m1 - m) * (1 + d)) * (1 + e) + h -> factor m1 m f 1.
(* y is the computed f * x; the product with an exact 1 is exact. *)
Definition times eta f (k : nat) x y :=
  match k with
  | O => y = x
  | S _ => exists d h, Rabs d <= eps /\ Rabs h <= eta /\ y = f * x * (1 + d) + h
  end.
(* pv is the computed p * v, with p rounded once more before; p = 1 needs no rounding. *)
Definition weighted p (k : nat) v pv :=
  match k with
  | O => pv = v
  | S _ => exists e d h, Rabs e <= epsp /\ Rabs d <= eps /\ Rabs h <= etau /\
      pv = p * (1 + e) * v * (1 + d) + h
  end.
(* One merge: both sides come to a reference m that is below neither. *)
Definition merged mA lA uA mB lB uB m l u kA kB :=
  mA <= m /\ mB <= m /\ exists fA fB pA pB rA rB,
    factor mA m fA kA /\ factor mB m fB kB /\
    times etal fA kA lA pA /\ times etau fA kA uA rA /\
    times etal fB kB lB pB /\ times etau fB kB uB rB /\
    rnd (pA + pB) l /\ rnd (rA + rB) u.
(* Some execution of t gave (m, l, u): P is what its keys met, N counts products that may
   underflow, a and c the roundings and exponentials on the worst path. *)
Inductive run : tree -> R -> R -> R -> list path -> nat -> nat -> nat -> Prop :=
  | run_leaf s v m p pv k : s <= m -> factor s m p k -> weighted p k v pv ->
      run (Leaf (s, v)) m p pv [Path (s, v) 0 0 k] k k k
  | run_node x y mA lA uA mB lB uB m l u PA PB NA NB aA aB cA cB kA kB :
      run x mA lA uA PA NA aA cA -> run y mB lB uB PB NB aB cB ->
      merged mA lA uA mB lB uB m l u kA kB ->
      run (Node x y) m l u (map (bump kA) PA ++ map (bump kB) PB)
        (NA + NB + kA + kB) (max (aA + kA) (aB + kB) + 1) (max (cA + kA) (cB + kB)).

(* ---- the weight of one key ---- *)
(* f is e^(s-m) after c exponentials.  The error of the exponent is epsa (m - s), not that times
   the number of steps: along a path the distances telescope. *)
Definition shape c m s f :=
  down epse c * exp ((1 + epsa) * (s - m)) <= f <= up epse c * exp ((1 - epsa) * (s - m)).
(* What c exponentials can lose or gain by underflow. *)
Definition dust c := up (epse + etae) c - up epse c.
Definition near c m s w := exists f, shape c m s f /\ Rabs (w - f) <= dust c.

Lemma shape_pos c m s f : shape c m s f -> 0 < f.
Proof.
  intros [H _]. eapply Rlt_le_trans; [|exact H].
  apply Rmult_lt_0_compat; [apply (down_rng epse c epse_rng)|apply exp_pos].
Qed.
Lemma shape_le c m s f : s <= m -> shape c m s f -> Rabs f <= up epse c.
Proof.
  intros Hs H. pose proof (shape_pos _ _ _ _ H). rewrite Rabs_pos_eq by lra.
  eapply Rle_trans; [apply H|]. rewrite <- (Rmult_1_r (up epse c)) at 2.
  apply Rmult_le_compat_l; [pose proof (up_ge1 epse c); lra|]. apply exp_le_1. nra.
Qed.
Lemma shape_mul c c' m m' s x f : shape c m s x -> shape c' m' m f -> shape (c + c') m' s (x * f).
Proof.
  intros H1 H2. pose proof (shape_pos _ _ _ _ H1). pose proof (shape_pos _ _ _ _ H2).
  destruct H1 as [h1 h2], H2 as [h3 h4]. unfold shape. rewrite down_add, up_add.
  assert (D : forall n, 0 <= down epse n) by (intros; left; apply (down_rng epse n epse_rng)).
  split.
  - replace ((1 + epsa) * (s - m')) with ((1 + epsa) * (s - m) + (1 + epsa) * (m - m')) by ring.
    rewrite exp_plus.
    replace (down epse c * down epse c' * _) with ((down epse c * exp ((1 + epsa) * (s - m)))
      * (down epse c' * exp ((1 + epsa) * (m - m')))) by ring.
    apply Rmult_le_compat; auto; apply Rmult_le_pos; auto; left; apply exp_pos.
  - replace ((1 - epsa) * (s - m')) with ((1 - epsa) * (s - m) + (1 - epsa) * (m - m')) by ring.
    rewrite exp_plus.
    replace (up epse c * up epse c' * _) with ((up epse c * exp ((1 - epsa) * (s - m)))
      * (up epse c' * exp ((1 - epsa) * (m - m')))) by ring.
    apply Rmult_le_compat; auto; lra.
Qed.
Lemma dust_pos c : 0 <= dust c.
Proof. unfold dust. pose proof (up_mono epse (epse + etae) c). lra. Qed.
Lemma near_abs c m s w : s <= m -> near c m s w -> Rabs w <= up (epse + etae) c.
Proof.
  intros Hs (f & Hf & Hw). replace w with (f + (w - f)) by ring.
  replace (up (epse + etae) c) with (up epse c + dust c) by (unfold dust; ring).
  apply Rabs_plus_le; [exact (shape_le c m s f Hs Hf)|exact Hw].
Qed.
Lemma near_mul c c' m m' s x f : s <= m -> m <= m' ->
  near c m s x -> near c' m' m f -> near (c + c') m' s (x * f).
Proof.
  intros Hs Hm (x0 & Hx & Ex) (f0 & Hf & Ef). exists (x0 * f0). split.
  - eapply shape_mul; eauto.
  - replace (x * f - x0 * f0) with (x0 * (f - f0) + (x - x0) * f0 + (x - x0) * (f - f0)) by ring.
    apply Rle_trans with (up epse c * dust c' + dust c * up epse c' + dust c * dust c').
    + pose proof (shape_le _ _ _ _ Hs Hx). pose proof (shape_le _ _ _ _ Hm Hf).
      repeat apply Rabs_plus_le; apply Rabs_mult_le; auto.
    + unfold dust. rewrite !up_add. right; ring.
Qed.
Lemma near_1 m : near 0 m m 1.
Proof.
  exists 1. split.
  - unfold shape, down, up; simpl. replace (m - m) with 0 by ring. rewrite !Rmult_0_r, exp_0. lra.
  - rewrite Rminus_diag_eq, Rabs_R0 by reflexivity. apply dust_pos.
Qed.
Lemma shape_exp m1 m d e : m1 <= m -> Rabs d <= epsa -> Rabs e <= epse ->
  shape 1 m m1 (exp ((m1 - m) * (1 + d)) * (1 + e)).
Proof.
  intros Hm Hd He. apply Rabs_rng in Hd. apply Rabs_rng in He.
  unfold shape, down, up; simpl. rewrite !Rmult_1_r.
  assert (exp ((1 + epsa) * (m1 - m)) <= exp ((m1 - m) * (1 + d))) by (apply exp_le; nra).
  assert (exp ((m1 - m) * (1 + d)) <= exp ((1 - epsa) * (m1 - m))) by (apply exp_le; nra).
  pose proof (exp_pos ((1 + epsa) * (m1 - m))).
  rewrite (Rmult_comm (exp ((m1 - m) * (1 + d)))).
  split; apply Rmult_le_compat; lra.
Qed.
Lemma factor_near m1 m f k : m1 <= m -> factor m1 m f k -> near k m m1 f.
Proof.
  intros Hm [E ->|d e h Hd He Hh ->]; [subst; apply near_1|].
  exists (exp ((m1 - m) * (1 + d)) * (1 + e)). split; [now apply shape_exp|].
  replace (_ - _) with h by ring. unfold dust, up; simpl. lra.
Qed.
Lemma factor_k m1 m f k : factor m1 m f k -> (k <= 1)%nat.
Proof. destruct 1; lia. Qed.
Lemma factor_1 m1 m f k : factor m1 m f k -> k = 0%nat -> f = 1.
Proof. intros H ->. inversion H; auto. Qed.

(* ---- what a state represents ---- *)
Record term := Term { on : path; w : R; a : R; b : R }.
Definition score t := fst (key (on t)).
Definition value t := snd (key (on t)).
Definition exps p := (rescales p + own p)%nat.
Definition lsum := sumf (fun t => w t * a t).
Definition usum := sumf (fun t => w t * b t * value t).
(* Shared: w.  Private to l: a.  Private to u: b, with the product p*v and P's own rounding. *)
Definition good m t :=
  score t <= m /\ near (exps (on t)) m (score t) (w t) /\
  within eps (adds (on t) + rescales (on t)) (a t) /\
  exists y z, b t = y * z /\ within eps (adds (on t) + rescales (on t) + own (on t)) y /\
    within epsp (own (on t)) z.
Definition Rep (W : list term) m l u El Eu :=
  Forall (good m) W /\ Rabs (l - lsum W) <= El /\ Rabs (u - usum W) <= Eu.

(* A side of a merge: every weight times f, and the private parts times g (of l) and g' (of u). *)
Definition scale k f g g' t := Term (bump k (on t)) (w t * f) (a t * g) (b t * g').
Lemma lsum_scale k f g g' W : lsum (map (scale k f g g') W) = f * g * lsum W.
Proof.
  unfold lsum. rewrite sumf_map, <- sumf_scal. apply sumf_ext. intros t _. simpl. ring.
Qed.
Lemma usum_scale k f g g' W : usum (map (scale k f g g') W) = f * g' * usum W.
Proof.
  unfold usum. rewrite sumf_map, <- sumf_scal. apply sumf_ext. intros t _.
  unfold value; simpl. ring.
Qed.
Lemma good_scale m m' k f g g' t : m <= m' -> near k m' m f ->
  within eps (k + 1) g -> within eps (k + 1) g' -> good m t -> good m' (scale k f g g' t).
Proof.
  intros Hm Hf Hg Hg' (h1 & h2 & h3 & y & z & hb & h4 & h5).
  unfold good, score, exps in *; simpl. split; [lra|split; [|split]].
  - replace (rescales (on t) + k + own (on t))%nat with (rescales (on t) + own (on t) + k)%nat
      by lia. eapply near_mul; eauto.
  - eapply within_weaken; [auto| |eapply within_mul; eauto]. lia.
  - exists (y * g'), z. split; [|split; auto].
    + rewrite hb. ring.
    + eapply within_weaken; [auto| |eapply within_mul; eauto]. lia.
Qed.

(* A product with a factor and the addition after it, as one private multiplier and a residual. *)
Lemma times_step eta f k x y d : times eta f k x y -> (k <= 1)%nat ->
  (k = 0%nat -> f = 1) -> Rabs d <= eps ->
  exists g h, within eps (k + 1) g /\ Rabs h <= INR k * eta * (1 + eps) /\
    y * (1 + d) = f * g * x + h.
Proof.
  intros Ht Hk H1 Hd. pose proof (Rabs_rng _ _ Hd). destruct k as [|[|]]; simpl in Ht; [| |lia].
  - exists (1 + d), 0. rewrite (H1 eq_refl), Ht, Rabs_R0. simpl.
    split; [now apply within_d|split; [lra|ring]].
  - destruct Ht as (d' & h & Hd' & Hh & ->).
    exists ((1 + d') * (1 + d)), (h * (1 + d)). split; [|split; [|ring]].
    + apply (within_mul eps 1 1); auto using within_d.
    + simpl INR. rewrite Rmult_1_l. apply Rabs_mult_le; auto. rewrite Rabs_pos_eq; lra.
Qed.

(* One side of a merge carries its terms and its residual over. *)
Definition amp n c := up eps n * up (epse + etae) c.
Lemma amp_ge1 n c : 1 <= amp n c.
Proof.
  unfold amp. rewrite <- (Rmult_1_l 1).
  apply Rmult_le_compat; try lra; apply up_ge1; lra.
Qed.
Lemma amp_le n c n' c' : (n <= n')%nat -> (c <= c')%nat -> amp n c <= amp n' c'.
Proof.
  intros. pose proof (up_ge1 eps n ltac:(lra)). pose proof (up_ge1 (epse + etae) c ltac:(lra)).
  apply Rmult_le_compat; try lra; apply up_le; auto; lra.
Qed.
Lemma side_residual m m' f k g x x0 E : m <= m' -> near k m' m f -> within eps (k + 1) g ->
  Rabs (x - x0) <= E -> Rabs (f * g * x - f * g * x0) <= amp (k + 1) k * E.
Proof.
  intros Hm Hf Hg H. replace (_ - _) with (f * g * (x - x0)) by ring.
  apply Rabs_mult_le; auto. unfold amp. rewrite (Rmult_comm (up eps _)).
  apply Rabs_mult_le; [exact (near_abs _ _ _ _ Hm Hf)|apply within_abs; auto].
Qed.

(* The rule of composition: a merge of what is represented represents the union. *)
Lemma Rep_merge WA WB mA lA uA mB lB uB m l u kA kB EA FA EB FB :
  Rep WA mA lA uA EA FA -> Rep WB mB lB uB EB FB -> merged mA lA uA mB lB uB m l u kA kB ->
  exists W, map on W = map (bump kA) (map on WA) ++ map (bump kB) (map on WB) /\
    Rep W m l u
      (INR (kA + kB) * etal * (1 + eps) + amp (kA + 1) kA * EA + amp (kB + 1) kB * EB)
      (INR (kA + kB) * etau * (1 + eps) + amp (kA + 1) kA * FA + amp (kB + 1) kB * FB).
Proof.
  intros (GA & HlA & HuA) (GB & HlB & HuB) (LA & LB & fA & fB & pA & pB & rA & rB
    & F1 & F2 & T1 & T2 & T3 & T4 & (d & Hd & ->) & (d' & Hd' & ->)).
  pose proof (factor_near _ _ _ _ LA F1) as N1. pose proof (factor_near _ _ _ _ LB F2) as N2.
  pose proof (factor_k _ _ _ _ F1) as K1. pose proof (factor_k _ _ _ _ F2) as K2.
  pose proof (factor_1 _ _ _ _ F1) as O1. pose proof (factor_1 _ _ _ _ F2) as O2.
  destruct (times_step _ _ _ _ _ d T1 K1 O1 Hd) as (gA & h1 & G1 & H1 & Q1).
  destruct (times_step _ _ _ _ _ d' T2 K1 O1 Hd') as (gA' & h2 & G2 & H2 & Q2).
  destruct (times_step _ _ _ _ _ d T3 K2 O2 Hd) as (gB & h3 & G3 & H3 & Q3).
  destruct (times_step _ _ _ _ _ d' T4 K2 O2 Hd') as (gB' & h4 & G4 & H4 & Q4).
  exists (map (scale kA fA gA gA') WA ++ map (scale kB fB gB gB') WB).
  split; [|split; [|split]].
  - rewrite map_app, !map_map. reflexivity.
  - apply Forall_app. split; apply Forall_map.
    + eapply Forall_impl; [|exact GA]. intros t. now apply (good_scale mA).
    + eapply Forall_impl; [|exact GB]. intros t. now apply (good_scale mB).
  - rewrite Rmult_plus_distr_r, Q1, Q3. unfold lsum. rewrite sumf_app. fold lsum.
    rewrite !lsum_scale, plus_INR, !Rmult_plus_distr_r.
    replace (_ - _) with (h1 + h3 + (fA * gA * lA - fA * gA * lsum WA)
      + (fB * gB * lB - fB * gB * lsum WB)) by ring.
    repeat apply Rabs_plus_le; auto; [apply (side_residual mA m)|apply (side_residual mB m)]; auto.
  - rewrite Rmult_plus_distr_r, Q2, Q4. unfold usum. rewrite sumf_app. fold usum.
    rewrite !usum_scale, plus_INR, !Rmult_plus_distr_r.
    replace (_ - _) with (h2 + h4 + (fA * gA' * uA - fA * gA' * usum WA)
      + (fB * gB' * uB - fB * gB' * usum WB)) by ring.
    repeat apply Rabs_plus_le; auto; [apply (side_residual mA m)|apply (side_residual mB m)]; auto.
Qed.

(* One key: the product p * v as private multipliers and a residual. *)
Lemma weighted_split s m p k v pv : factor s m p k -> weighted p k v pv ->
  exists y z h, within eps k y /\ within epsp k z /\ Rabs h <= INR k * etau /\
    pv = p * (y * z) * v + h.
Proof.
  intros Hf Hw. pose proof (factor_k _ _ _ _ Hf). pose proof (factor_1 _ _ _ _ Hf) as F1.
  destruct k as [|[|]]; simpl in Hw; [| |lia].
  - exists 1, 1, 0. rewrite F1, Rabs_R0 by auto. simpl.
    repeat split; try lra; unfold down, up; simpl; lra.
  - destruct Hw as (e & d & h & He & Hd & Hh & ->). exists (1 + d), (1 + e), h.
    split; [now apply within_d|split; [now apply within_d|split; [simpl; lra|ring]]].
Qed.
Lemma Rep_leaf s v m p pv k : s <= m -> factor s m p k -> weighted p k v pv ->
  exists W, map on W = [Path (s, v) 0 0 k] /\ Rep W m p pv 0 (INR k * etau).
Proof.
  intros Hm Hf Hw. pose proof (factor_near _ _ _ _ Hm Hf) as Hn.
  destruct (weighted_split _ _ _ _ _ _ Hf Hw) as (y & z & h & Hy & Hz & Hh & ->).
  exists [Term (Path (s, v) 0 0 k) p 1 (y * z)]. split; [reflexivity|].
  split; [|split].
  - constructor; [|constructor]. unfold good, score, exps; simpl.
    split; [auto|split; [auto|split; [apply within_1; lra|]]]. exists y, z; auto.
  - unfold lsum; simpl. replace (_ - _) with 0 by ring. rewrite Rabs_R0; lra.
  - unfold usum, value; simpl. replace (_ - _) with h by ring. auto.
Qed.

(* Counts are what the shape of the tree allows. *)
Lemma run_cost t m l u P N n c : run t m l u P N n c ->
  (n <= 2 * depth t + 1 /\ c <= depth t + 1 /\ N <= 3 * nodes t + 1)%nat.
Proof.
  induction 1 as [s v m p pv k _ F _|x y mA lA uA mB lB uB m l u PA PB NA NB aA aB cA cB kA kB
    _ IHx _ IHy (_ & _ & fA & fB & pA & pB & rA & rB & F1 & F2 & _)]; simpl.
  - apply factor_k in F. lia.
  - apply factor_k in F1. apply factor_k in F2. lia.
Qed.
Lemma run_keys t m l u P N n c : run t m l u P N n c -> map key P = leaves t.
Proof. induction 1; simpl; auto. rewrite map_app, !key_bump. congruence. Qed.
Lemma run_paths t m l u P N n c : run t m l u P N n c ->
  Forall (fun p => adds p + rescales p + own p <= n /\ exps p <= c)%nat P.
Proof.
  induction 1; [constructor; [unfold exps; simpl; lia|constructor]|].
  apply Forall_app; split; apply Forall_map; eapply Forall_impl;
    [|exact IHrun1| |exact IHrun2]; unfold exps; simpl; lia.
Qed.

(* A residual grows along a path no more than the terms do. *)
Lemma amp_step n c k n' c' N eta : 0 <= eta -> (n + (k + 1) <= n')%nat -> (c + k <= c')%nat ->
  amp (k + 1) k * (INR N * eta * amp n c) <= INR N * eta * amp n' c'.
Proof.
  intros He Ha Hc.
  replace (amp (k + 1) k * (INR N * eta * amp n c)) with (INR N * eta * amp (n + (k + 1)) (c + k))
    by (unfold amp; rewrite !up_add; ring).
  apply Rmult_le_compat_l; [apply Rmult_le_pos; auto using pos_INR|]. now apply amp_le.
Qed.
Lemma node_residual eta NA NB kA kB aA aB cA cB n c : 0 <= eta ->
  (aA + kA + 1 <= n)%nat -> (aB + kB + 1 <= n)%nat -> (cA + kA <= c)%nat -> (cB + kB <= c)%nat ->
  INR (kA + kB) * eta * (1 + eps) + amp (kA + 1) kA * (INR NA * eta * amp aA cA)
    + amp (kB + 1) kB * (INR NB * eta * amp aB cB)
  <= INR (NA + NB + kA + kB) * eta * amp n c.
Proof.
  intros He H1 H2 H3 H4.
  replace (INR (NA + NB + kA + kB) * eta * amp n c) with (INR (kA + kB) * eta * amp n c
    + INR NA * eta * amp n c + INR NB * eta * amp n c) by (rewrite !plus_INR; ring).
  assert (E1 : 1 + eps <= amp n c).
  { replace (1 + eps) with (amp 1 0) by (unfold amp, up; simpl; ring). apply amp_le; lia. }
  repeat apply Rplus_le_compat.
  - apply Rmult_le_compat_l; auto. apply Rmult_le_pos; auto using pos_INR.
  - apply amp_step; auto; lia.
  - apply amp_step; auto; lia.
Qed.
Lemma Rep_weaken W m l u El Eu El' Eu' : El <= El' -> Eu <= Eu' ->
  Rep W m l u El Eu -> Rep W m l u El' Eu'.
Proof. intros H1 H2 (h1 & h2 & h3). repeat split; auto; lra. Qed.

(* Whatever the tree and whatever was rounded, the state represents the keys of the tree. *)
Theorem run_Rep t m l u P N n c : run t m l u P N n c ->
  exists W, map on W = P /\
    Rep W m l u (INR N * etal * amp n c) (INR N * etau * amp n c).
Proof.
  induction 1 as [s v m p pv k Hm F Hw|x y mA lA uA mB lB uB m l u PA PB NA NB aA aB cA cB kA kB
    _ (WA & EA & RA) _ (WB & EB & RB) HM].
  - destruct (Rep_leaf s v m p pv k Hm F Hw) as (W & HW & HR). exists W. split; auto.
    pose proof (amp_ge1 k k). pose proof (pos_INR k).
    eapply Rep_weaken; [| |exact HR].
    + apply Rmult_le_pos; [apply Rmult_le_pos|]; lra.
    + assert (0 <= INR k * etau) by (apply Rmult_le_pos; lra). nra.
  - destruct (Rep_merge _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ RA RB HM) as (W & HW & HR).
    exists W. split; [now rewrite HW, EA, EB|].
    eapply Rep_weaken; [| |exact HR]; apply node_residual; auto; lia.
Qed.
End Model.
