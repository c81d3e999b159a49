(* Lemma 1 of docs/bounds.md: how far a computed score may be from the score, for a dot product in
   any order with products rounded or fused, then steps of one rounding each - scale, bias, slope,
   a narrower format - as ref/bound_score.c follows them.  The D that comes out is the `dev` of
   RowBound.v.  SPDX-License-Identifier: MIT *)
From Coq Require Import Reals List Lra Lia Psatz.
Require Import Sums Rounding.
Import ListNotations.
Local Open Scope R_scope.

(* ---- one step ---- *)
(* A result that is rounded, by at most eta more where it may be subnormal. *)
Definition rounds eps eta x y := exists d h, Rabs d <= eps /\ Rabs h <= eta /\ y = x * (1 + d) + h.

(* What a rounding makes of an error so far [bound_score.c, rounded]. *)
Theorem rounded_error eps eta x x' y D : 0 <= eps -> Rabs (x' - x) <= D -> rounds eps eta x' y ->
  Rabs (y - x) <= D + eps * (Rabs x + D) + eta.
Proof.
  intros He HD (d & h & Hd & Hh & ->).
  replace (x' * (1 + d) + h - x) with ((x' - x) + d * x' + h) by ring.
  assert (Hx : Rabs x' <= Rabs x + D).
  { replace x' with (x + (x' - x)) by ring. now apply Rabs_plus_le; [right|]. }
  repeat apply Rabs_plus_le; auto. now apply Rabs_mult_le.
Qed.
(* A score times a constant that is itself off, relatively, by at most `off`. *)
Theorem scaled_error eps off eta c d x x' y D : 0 <= eps -> 0 <= off -> Rabs d <= off ->
  Rabs (x' - x) <= D -> rounds eps eta (c * (1 + d) * x') y ->
  Rabs (y - c * x) <= Rabs c * D + ((1 + eps) * (1 + off) - 1) * (Rabs (c * x) + Rabs c * D) + eta.
Proof.
  intros He Ho Hd HD (d' & h & Hd' & Hh & ->).
  apply (rounded_error ((1 + eps) * (1 + off) - 1) eta (c * x) (c * x')); [nra| |].
  - rewrite <- Rmult_minus_distr_l, Rabs_mult. apply Rmult_le_compat_l; auto using Rabs_pos.
  - exists (d + d' + d * d'), h. split; [|split; [auto|ring]].
    replace ((1 + eps) * (1 + off) - 1) with (off + eps + off * eps) by ring.
    repeat apply Rabs_plus_le; auto. now apply Rabs_mult_le.
Qed.
(* A bias or a slope is added, known to within `off`. *)
Theorem added_error eps eta x x' t t' y D off : 0 <= eps -> Rabs (x' - x) <= D -> Rabs (t' - t) <= off ->
  rounds eps eta (x' + t') y ->
  Rabs (y - (x + t)) <= D + off + eps * (Rabs (x + t) + (D + off)) + eta.
Proof.
  intros He HD Ht HR. apply (rounded_error eps eta (x + t) (x' + t')); auto.
  replace (x' + t' - (x + t)) with ((x' - x) + (t' - t)) by ring. now apply Rabs_plus_le.
Qed.

(* ---- the dot product ---- *)
Notation pair := (R * R)%type.
Definition dot (L : list pair) := sumf (fun e => fst e * snd e) L.
Definition size (L : list pair) := sumf (fun e => Rabs (fst e * snd e)) L.

(* computed L x n N: some order of sums and fmas over the products of L gives x; a product meets at
   most n roundings, and N of the operations may underflow. *)
Inductive computed eps eta : list pair -> R -> nat -> nat -> Prop :=
  | Nothing : computed eps eta [] 0 0 0
  | Product q k y : rounds eps eta (q * k) y -> computed eps eta [(q, k)] y 1 1
  | Exact q k : computed eps eta [(q, k)] (q * k) 0 0
  | Fused L x n N q k y : computed eps eta L x n N -> rounds eps eta (q * k + x) y ->
      computed eps eta ((q, k) :: L) y (S n) (S N)
  | Sum L M x y z n m N K : computed eps eta L x n N -> computed eps eta M y m K ->
      (exists d, Rabs d <= eps /\ z = (x + y) * (1 + d)) -> computed eps eta (L ++ M) z (S (max n m)) (N + K).

Lemma dot_app L M : dot (L ++ M) = dot L + dot M. Proof. apply sumf_app. Qed.
Lemma size_app L M : size (L ++ M) = size L + size M. Proof. apply sumf_app. Qed.
Lemma dot_size L : Rabs (dot L) <= size L.
Proof.
  unfold dot, size. induction L as [|e L IH]; simpl; [rewrite Rabs_R0; lra|].
  eapply Rle_trans; [apply Rabs_triang|]. lra.
Qed.
Lemma size_pos L : 0 <= size L.
Proof. pose proof (dot_size L). pose proof (Rabs_pos (dot L)). lra. Qed.
Lemma up_S e n : up e (S n) = (1 + e) * up e n. Proof. reflexivity. Qed.

(* One more rounding on what n of them left. *)
Lemma once_more eps eta S A n (N : R) x y : 0 <= eps -> 0 <= eta -> 0 <= N -> Rabs S <= A ->
  Rabs (x - S) <= (up eps n - 1) * A + N * eta * up eps n -> rounds eps eta x y ->
  Rabs (y - S) <= (up eps (Datatypes.S n) - 1) * A + (N + 1) * eta * up eps (Datatypes.S n).
Proof.
  intros He Ht HN HS Hx HR. pose proof (rounded_error eps eta S x y _ He Hx HR) as H.
  pose proof (up_ge1 eps n He) as U. rewrite up_S. set (u := up eps n) in *.
  assert (eps * Rabs S <= eps * A) by now apply Rmult_le_compat_l.
  assert (0 <= eta * ((1 + eps) * u - 1)) by (apply Rmult_le_pos; nra). nra.
Qed.

Theorem dot_error eps eta L x n N : 0 <= eps -> 0 <= eta -> computed eps eta L x n N ->
  Rabs (x - dot L) <= (up eps n - 1) * size L + INR N * eta * up eps n.
Proof.
  intros He Ht. induction 1 as [|q k y Hy|q k|L x n N q k y Hc IH Hy|L M x y z n m N K H1 IH1 H2 IH2 Hz].
  - unfold dot, size, up; simpl. rewrite Rminus_0_r, Rabs_R0. lra.
  - pose proof (once_more eps eta (q * k) (Rabs (q * k)) 0 0 (q * k) y He Ht) as S.
    unfold dot, size; simpl sumf. rewrite !Rplus_0_r. simpl INR.
    rewrite Rplus_0_l in S. apply S; auto; try lra.
    unfold up; simpl. rewrite Rminus_diag_eq, Rabs_R0 by reflexivity. lra.
  - unfold dot, size, up; simpl. rewrite !Rplus_0_r, Rminus_diag_eq, Rabs_R0 by reflexivity. lra.
  - rewrite S_INR. apply (once_more eps eta _ _ _ (INR N) (q * k + x)); auto using pos_INR, dot_size.
    unfold dot, size in *; simpl sumf. simpl fst. simpl snd.
    replace (q * k + x - (q * k + sumf (fun e : R * R => fst e * snd e) L))
      with (x - sumf (fun e : R * R => fst e * snd e) L) by ring.
    eapply Rle_trans; [exact IH|]. pose proof (up_ge1 eps n He). pose proof (Rabs_pos (q * k)). nra.
  - rewrite dot_app, size_app, plus_INR. destruct Hz as (d & Hd & ->).
    assert (HR : rounds eps 0 (x + y) ((x + y) * (1 + d))).
    { exists d, 0. rewrite Rabs_R0. repeat split; auto; lra. }
    pose proof (up_le eps n (max n m) He ltac:(lia)) as Un.
    pose proof (up_le eps m (max n m) He ltac:(lia)) as Um.
    pose proof (up_ge1 eps n He). pose proof (up_ge1 eps m He).
    rewrite up_S. set (u := up eps (max n m)) in *.
    pose proof (size_pos L). pose proof (size_pos M). pose proof (pos_INR N). pose proof (pos_INR K).
    assert (HD : Rabs (x + y - (dot L + dot M)) <=
      (u - 1) * (size L + size M) + (INR N + INR K) * eta * u).
    { replace (x + y - (dot L + dot M)) with ((x - dot L) + (y - dot M)) by ring.
      eapply Rle_trans; [apply Rabs_plus_le; [exact IH1|exact IH2]|].
      assert ((up eps n - 1) * size L <= (u - 1) * size L) by (apply Rmult_le_compat_r; lra).
      assert ((up eps m - 1) * size M <= (u - 1) * size M) by (apply Rmult_le_compat_r; lra).
      assert (0 <= INR N * eta) by now apply Rmult_le_pos. assert (0 <= INR K * eta) by now apply Rmult_le_pos.
      assert (INR N * eta * up eps n <= INR N * eta * u) by now apply Rmult_le_compat_l.
      assert (INR K * eta * up eps m <= INR K * eta * u) by now apply Rmult_le_compat_l. lra. }
    pose proof (rounded_error eps 0 _ _ _ _ He HD HR) as HF.
    assert (HS : Rabs (dot L + dot M) <= size L + size M)
      by (apply Rabs_plus_le; apply dot_size).
    assert (eps * Rabs (dot L + dot M) <= eps * (size L + size M)) by now apply Rmult_le_compat_l.
    nra.
Qed.
(* q and k come scaled, descaled or in a narrower format: each product is off by a factor before. *)
Definition prepared b (e e' : pair) := exists a, Rabs a <= b /\ fst e' * snd e' = fst e * snd e * (1 + a).
Theorem prepared_dot_error eps eta b L L' x n N : 0 <= eps -> 0 <= eta -> 0 <= b ->
  List.Forall2 (prepared b) L L' -> computed eps eta L' x n N ->
  Rabs (x - dot L) <= (up eps n * (1 + b) - 1) * size L + INR N * eta * up eps n.
Proof.
  intros He Ht Hb HL HC. pose proof (dot_error eps eta L' x n N He Ht HC) as H.
  pose proof (up_ge1 eps n He) as U. clear HC.
  assert (P : Rabs (dot L' - dot L) <= b * size L /\ size L' <= (1 + b) * size L).
  { clear H. unfold dot, size. induction HL as [|e e' L L' (a & Ha & E) HL IH]; simpl.
    - rewrite Rminus_0_r, Rabs_R0. lra.
    - destruct IH as [h1 h2]. rewrite E. pose proof (Rabs_pos (fst e * snd e)) as Q. split.
      + match goal with |- Rabs (_ * (1 + a) + ?s' - (_ + ?s)) <= _ =>
          replace (fst e * snd e * (1 + a) + s' - (fst e * snd e + s)) with (a * (fst e * snd e) + (s' - s)) by ring end.
        rewrite Rmult_plus_distr_l. apply Rabs_plus_le; auto. now apply Rabs_mult_le; [|right].
      + assert (Rabs (fst e * snd e * (1 + a)) <= (1 + b) * Rabs (fst e * snd e)); [|lra].
        rewrite Rmult_comm. apply Rabs_mult_le; [|now right]. apply Rabs_plus_le; auto. rewrite Rabs_R1. lra. }
  destruct P as [P1 P2]. replace (x - dot L) with ((x - dot L') + (dot L' - dot L)) by ring.
  eapply Rle_trans; [apply Rabs_plus_le; [exact H|exact P1]|].
  assert ((up eps n - 1) * size L' <= (up eps n - 1) * ((1 + b) * size L)) by (apply Rmult_le_compat_l; lra).
  lra.
Qed.
(* at_dot with one lane: a chain of fmas is such a computation, and a product meets at most D roundings. *)
Fixpoint chain eps eta (L : list pair) x := match L with
  | [] => x = 0
  | e :: L => exists y, chain eps eta L y /\ rounds eps eta (fst e * snd e + y) x
  end.
Theorem chain_computed eps eta L : forall x, chain eps eta L x -> computed eps eta L x (length L) (length L).
Proof.
  induction L as [|[q k] L IH]; intros x; [intros ->; apply Nothing|].
  intros (y & Hy & HR). simpl length. apply (Fused _ _ _ y); auto.
Qed.
