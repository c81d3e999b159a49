(* Every theorem that is claimed, restated in full, and the definitions that the statements rest on.
   This file changes only when a claim changes: a theorem that was weakened, or a program that lost
   a rescale, no longer fits here.  SPDX-License-Identifier: MIT *)
From Coq Require Import Reals List ZArith Permutation.
From Flocq Require Import Core BinarySingleNaN.
From Coquelicot Require Import Coquelicot.
From Gappa Require Gappa_library.
Require Constants Exact Sums Rounding Score Softcap Ordered RangeFree Bound RowBound Formats Range Ieee Capstone Exp Exp32
  Exp64 Twin ExpIeee Backward.
Import ListNotations.
Open Scope R_scope.

(* ---- The exact theory ---- *)
Module SExact.
Import Exact.
Theorem merge_comm :
  forall a b : state, merge a b = merge b a.
Proof. exact @Exact.merge_comm. Qed.
Theorem merge_assoc :
  forall a b c : state, merge a (merge b c) = merge (merge a b) c.
Proof. exact @Exact.merge_assoc. Qed.
Theorem merge_id_l :
  forall a : state, wf a -> merge ident a = a.
Proof. exact @Exact.merge_id_l. Qed.
Theorem merge_id_r :
  forall a : state, wf a -> merge a ident = a.
Proof. exact @Exact.merge_id_r. Qed.
Theorem update_is_merge :
  forall (a : state) (e : elt), update a e = merge a (singleton e).
Proof. exact @Exact.update_is_merge. Qed.
Theorem masked_is_ident :
  forall v : R, singleton (None, v) = ident.
Proof. exact @Exact.masked_is_ident. Qed.
Theorem update_masked :
  forall (a : state) (v : R), wf a -> update a (None, v) = a.
Proof. exact @Exact.update_masked. Qed.
Theorem eval_direct :
  forall t : tree, eval t = direct (leaves t).
Proof. exact @Exact.eval_direct. Qed.
Theorem fold_direct :
  forall L : list elt, fold_left update L ident = direct L.
Proof. exact @Exact.fold_direct. Qed.
Theorem eval_sums :
  forall t : tree,
  oexp (sm (eval t)) * sl (eval t) = esum (leaves t) /\
  oexp (sm (eval t)) * su (eval t) = evsum (leaves t).
Proof. exact @Exact.eval_sums. Qed.
Theorem eval_order_free :
  forall t t' : tree, Permutation (leaves t) (leaves t') -> eval t = eval t'.
Proof. exact @Exact.eval_order_free. Qed.
Theorem masked_drop :
  forall L : list (option R * R),
  direct
    (filter
       (fun e : option R * R => match fst e with
                                | Some _ => true
                                | None => false
                                end) L) = direct L.
Proof. exact @Exact.masked_drop. Qed.
Theorem out_softmax :
  forall t : tree, live (leaves t) -> out (eval t) = softmax_avg (leaves t).
Proof. exact @Exact.out_softmax. Qed.
Theorem out_hull :
  forall (lo hi : R) (t : tree),
  live (leaves t) ->
  (forall (e : elt) (x : R), In e (leaves t) -> fst e = Some x -> lo <= snd e <= hi) ->
  lo <= out (eval t) <= hi.
Proof. exact @Exact.out_hull. Qed.
Theorem out_shift :
  forall (c : R) (L : list elt), out (direct (shift c L)) = out (direct L).
Proof. exact @Exact.out_shift. Qed.
Theorem l_bounds :
  forall t : tree, live (leaves t) -> 1 <= sl (eval t) <= INR (length (leaves t)).
Proof. exact @Exact.l_bounds. Qed.
Theorem u_bound :
  forall (t : tree) (V : R),
  (forall (e : elt) (x : R), In e (leaves t) -> fst e = Some x -> Rabs (snd e) <= V) ->
  Rabs (su (eval t)) <= sl (eval t) * V.
Proof. exact @Exact.u_bound. Qed.
Theorem merge_ref_spec :
  forall (r : R) (a b : state), merge_ref r a b = rescale r (merge a b).
Proof. exact @Exact.merge_ref_spec. Qed.
Theorem out_rescale :
  forall (r : R) (a : state), sm a <> None -> sl a <> 0 -> out (rescale r a) = out a.
Proof. exact @Exact.out_rescale. Qed.
Theorem merge_lse :
  forall (a b : state) (x y : R),
  sm a = Some x ->
  sm b = Some y ->
  0 < sl a ->
  0 < sl b ->
  lse (merge a b) = ln (exp (lse a) + exp (lse b)) /\
  out (merge a b) =
  exp (lse a - lse (merge a b)) * out a + exp (lse b - lse (merge a b)) * out b.
Proof. exact @Exact.merge_lse. Qed.
Theorem proj_fold :
  forall (k : nat) (L : list velt),
  proj k (fold_left vupdate L vident) = direct (map (eproj k) L).
Proof. exact @Exact.proj_fold. Qed.
End SExact.

(* ---- Sums ---- *)
Module SSums.
Import Sums.
Theorem SK_upper :
  forall (d m : R) (L : list elt),
  1 <= SS m L -> 0 <= d <= 1 -> SK (1 - d) m L <= SS m L * exp (d * ln (INR (length L))).
Proof. exact @Sums.SK_upper. Qed.
Theorem SK_lower :
  forall (d m : R) (L : list elt),
  1 <= SS m L -> 0 <= d -> SS m L * exp (- (d * ln (INR (length L)))) <= SK (1 + d) m L.
Proof. exact @Sums.SK_lower. Qed.
Theorem softmax_ratio :
  forall (m : R) (L : list elt),
  L <> [] ->
  TT m L / SS m L =
  sumf (fun e : elt => exp (fst e) * snd e) L / sumf (fun e : elt => exp (fst e)) L.
Proof. exact @Sums.softmax_ratio. Qed.
Theorem quotient_error :
  forall l u S T V Kl Ku El Eu : R,
  1 <= S ->
  0 <= V ->
  0 <= Ku ->
  0 <= El ->
  0 <= Eu ->
  Rabs T <= V * S ->
  Rabs (l - S) <= Kl * S + El ->
  Rabs (u - T) <= V * Ku * S + Eu ->
  Kl + El < 1 ->
  0 < l /\ Rabs (u / l - T / S) <= ((Kl + Ku) * V + V * El + Eu) / (1 - Kl - El).
Proof. exact @Sums.quotient_error. Qed.
End SSums.

(* ---- What a computed state represents ---- *)
Module SRounding.
Import Sums Rounding.
Theorem run_Rep :
  forall eps epsa epse etae epsp etal etau : R,
  0 <= eps < 1 ->
  0 <= epsa < 1 ->
  0 <= epse < 1 ->
  0 <= etae ->
  0 <= etal ->
  0 <= etau ->
  forall (t : tree) (m l u : R) (P : list path) (N n c : nat),
  run eps epsa epse etae epsp etal etau t m l u P N n c ->
  exists W : list term,
    map on W = P /\
    Rep eps epsa epse etae epsp W m l u (INR N * etal * amp eps epse etae n c)
      (INR N * etau * amp eps epse etae n c).
Proof. exact @Rounding.run_Rep. Qed.
Theorem run_cost :
  forall (eps epsa epse etae epsp etal etau : R) (t : tree) (m l u : R) 
    (P : list path) (N n c : nat),
  run eps epsa epse etae epsp etal etau t m l u P N n c ->
  (n <= 2 * depth t + 1)%nat /\ (c <= depth t + 1)%nat /\ (N <= 3 * nodes t + 1)%nat.
Proof. exact @Rounding.run_cost. Qed.
Theorem run_keys :
  forall (eps epsa epse etae epsp etal etau : R) (t : tree) (m l u : R) 
    (P : list path) (N n c : nat),
  run eps epsa epse etae epsp etal etau t m l u P N n c -> map key P = leaves t.
Proof. exact @Rounding.run_keys. Qed.
End SRounding.

(* ---- Lemma 1: a score ---- *)
Module SScore.
Import Sums Rounding Score.
Theorem dot_error :
  forall (eps eta : R) (L : list (R * R)) (x : R) (n N : nat),
  0 <= eps ->
  0 <= eta ->
  computed eps eta L x n N ->
  Rabs (x - sumf (fun e : R * R => fst e * snd e) L) <=
  ((1 + eps) ^ n - 1) * sumf (fun e : R * R => Rabs (fst e * snd e)) L +
  INR N * eta * (1 + eps) ^ n.
Proof. exact @Score.dot_error. Qed.
Theorem prepared_dot_error :
  forall (eps eta b : R) (L L' : list (R * R)) (x : R) (n N : nat),
  0 <= eps ->
  0 <= eta ->
  0 <= b ->
  Forall2
    (fun e e' : R * R => exists a, Rabs a <= b /\ fst e' * snd e' = fst e * snd e * (1 + a)) L L' ->
  computed eps eta L' x n N ->
  Rabs (x - sumf (fun e : R * R => fst e * snd e) L) <=
  ((1 + eps) ^ n * (1 + b) - 1) * sumf (fun e : R * R => Rabs (fst e * snd e)) L +
  INR N * eta * (1 + eps) ^ n.
Proof. exact @Score.prepared_dot_error. Qed.
Theorem chain_computed :
  forall (eps eta : R) (L : list (R * R)) (x : R),
  chain eps eta L x -> computed eps eta L x (length L) (length L).
Proof. exact @Score.chain_computed. Qed.
Theorem rounded_error :
  forall eps eta x x' y D : R,
  0 <= eps ->
  Rabs (x' - x) <= D ->
  rounds eps eta x' y -> Rabs (y - x) <= D + eps * (Rabs x + D) + eta.
Proof. exact @Score.rounded_error. Qed.
Theorem scaled_error :
  forall eps off eta c d x x' y D : R,
  0 <= eps ->
  0 <= off ->
  Rabs d <= off ->
  Rabs (x' - x) <= D ->
  rounds eps eta (c * (1 + d) * x') y ->
  Rabs (y - c * x) <=
  Rabs c * D + ((1 + eps) * (1 + off) - 1) * (Rabs (c * x) + Rabs c * D) + eta.
Proof. exact @Score.scaled_error. Qed.
Theorem added_error :
  forall eps eta x x' t t' y D off : R,
  0 <= eps ->
  Rabs (x' - x) <= D ->
  Rabs (t' - t) <= off ->
  rounds eps eta (x' + t') y ->
  Rabs (y - (x + t)) <= D + off + eps * (Rabs (x + t) + (D + off)) + eta.
Proof. exact @Score.added_error. Qed.
End SScore.
Module SSoftcap.
Theorem softcap_error :
  forall eps et off C d e1 e2 e3 x x' D : R,
  0 < C ->
  0 <= eps < 1 ->
  0 <= off < 1 ->
  0 <= et ->
  Rabs d <= off ->
  Rabs e1 <= eps ->
  Rabs e2 <= et ->
  Rabs e3 <= eps ->
  Rabs (x' - x) <= D ->
  let y := C * tanh (x / C) in
  let y' := C * (1 + d) * (tanh (x' / (C * (1 + d)) * (1 + e1)) * (1 + e2)) * (1 + e3) in
  let total := (1 + off) * (1 + eps) * (1 + et) * (1 + eps) - 1 in
  Rabs (y' - y) <= D + total * (Rabs y + D).
Proof. exact @Softcap.softcap_error. Qed.
End SSoftcap.

(* ---- A sum in a known order ---- *)
Module SOrdered.
Import Sums Ordered.
Theorem ordered_error :
  forall eps : R,
  0 <= eps ->
  forall (t : order) (f v : R),
  0 <= f ->
  proper t ->
  computed eps t v ->
  f * Rabs (v - exact t) <= (1 + eps) ^ roundings t * charge eps f t.
Proof. exact @Ordered.ordered_error. Qed.
Theorem partial_sum_weights :
  forall (T : Type) (W : list T) (p kappa E v : T -> R),
  (forall x : T, In x W -> 0 <= p x /\ Rabs (kappa x) <= E x) ->
  Rabs (sumf (fun x : T => p x * exp (kappa x) * v x) W) <=
  Rabs (sumf (fun x : T => p x * v x) W) +
  sumf (fun x : T => p x * (exp (E x) - 1) * Rabs (v x)) W.
Proof. exact @Ordered.partial_sum_weights. Qed.
End SOrdered.

(* ---- The a-priori bound ---- *)
Module SRangeFree.
Import Sums Rounding RangeFree.
Theorem error_l :
  forall eps epsa epse etae epsp : R,
  0 <= eps < 1 ->
  0 <= epsa < 1 ->
  0 <= epse < 1 ->
  0 <= etae ->
  0 <= epsp < 1 ->
  forall (W : list term) (m l u El Eu : R) (N c : nat),
  Rep eps epsa epse etae epsp W m l u El Eu ->
  List.Forall
    (fun p : path => (adds p + rescales p + own p <= N)%nat /\ (exps p <= c)%nat)
    (map on W) ->
  (exists e : elt, In e (map (fun t : term => key (on t)) W) /\ fst e = m) ->
  Rabs (l - SS m (map (fun t : term => key (on t)) W)) <=
  kappa eps epsa epse epsp N 0 c (length (map (fun t : term => key (on t)) W)) *
  SS m (map (fun t : term => key (on t)) W) +
  (INR (length (map (fun t : term => key (on t)) W)) * (dust epse etae c * up eps N) + El).
Proof. exact @RangeFree.error_l. Qed.
Theorem error_u :
  forall eps epsa epse etae epsp : R,
  0 <= eps < 1 ->
  0 <= epsa < 1 ->
  0 <= epse < 1 ->
  0 <= etae ->
  0 <= epsp < 1 ->
  forall (W : list term) (m l u El Eu V : R) (N c : nat),
  Rep eps epsa epse etae epsp W m l u El Eu ->
  List.Forall
    (fun p : path => (adds p + rescales p + own p <= N)%nat /\ (exps p <= c)%nat)
    (map on W) ->
  (exists e : elt, In e (map (fun t : term => key (on t)) W) /\ fst e = m) ->
  (forall e : elt, In e (map (fun t : term => key (on t)) W) -> Rabs (snd e) <= V) ->
  List.Forall (fun p : path => (own p <= 1)%nat) (map on W) ->
  Rabs (u - TT m (map (fun t : term => key (on t)) W)) <=
  V * kappa eps epsa epse epsp N 1 c (length (map (fun t : term => key (on t)) W)) *
  SS m (map (fun t : term => key (on t)) W) +
  (V *
   (INR (length (map (fun t : term => key (on t)) W)) *
    (dust epse etae c * (up eps N * up epsp 1))) + Eu).
Proof. exact @RangeFree.error_u. Qed.
Theorem run_error :
  forall eps epsa epse etae epsp etal etau : R,
  0 <= eps < 1 ->
  0 <= epsa < 1 ->
  0 <= epse < 1 ->
  0 <= etae ->
  0 <= epsp < 1 ->
  0 <= etal ->
  0 <= etau ->
  forall (t : tree) (m l u : R) (P : list path) (N n c : nat) (V : R),
  run eps epsa epse etae epsp etal etau t m l u P N n c ->
  (exists e : elt, In e (leaves t) /\ fst e = m) ->
  (forall e : elt, In e (leaves t) -> Rabs (snd e) <= V) ->
  let k := length (leaves t) in
  let Kl := kappa eps epsa epse epsp n 0 c k in
  let Ku := kappa eps epsa epse epsp n 1 c k in
  let Dl := INR k * (dust epse etae c * up eps n) + INR N * etal * amp eps epse etae n c
    in
  let Du :=
    V * (INR k * (dust epse etae c * (up eps n * up epsp 1))) +
    INR N * etau * amp eps epse etae n c in
  Kl + Dl < 1 ->
  0 < l /\
  Rabs (u / l - TT m (leaves t) / SS m (leaves t)) <=
  ((Kl + Ku) * V + V * Dl + Du) / (1 - Kl - Dl).
Proof. exact @RangeFree.run_error. Qed.
Theorem attention_error :
  forall eps epsa epse etae epsp etal etau : R,
  0 <= eps < 1 ->
  0 <= epsa < 1 ->
  0 <= epse < 1 ->
  0 <= etae ->
  0 <= epsp < 1 ->
  0 <= etal ->
  0 <= etau ->
  forall (t : tree) (m l u : R) (P : list path) (N n c : nat) (V g : R),
  etae = 0 ->
  etal = 0 ->
  etau = 0 ->
  run eps epsa epse etae epsp etal etau t m l u P N n c ->
  (exists e : elt, In e (leaves t) /\ fst e = m) ->
  (forall e : elt, In e (leaves t) -> Rabs (snd e) <= V) ->
  eps * INR n + epsp + epse * INR c + epsa * ln (INR (length (leaves t))) <= g ->
  g < / 2 -> Rabs (u / l - TT m (leaves t) / SS m (leaves t)) <= V * (2 * g / (1 - 2 * g)).
Proof. exact @RangeFree.attention_error. Qed.
End SRangeFree.

(* ---- The a-posteriori bound as algebra ---- *)
Module SBound.
Import Sums Rounding Bound.
Theorem theorem_A :
  forall (A : Type) (W : list A) (p q r E Rj Sj D v al be : A -> R) (l u El Eu : R),
  (forall x : A, In x W -> 0 <= p x) ->
  (forall x : A, In x W -> p x * exp (- E x) <= q x <= p x * exp (E x)) ->
  (forall x : A, In x W -> Rabs (r x) <= D x) ->
  (forall x : A, In x W -> Rabs (al x - 1) <= Rj x) ->
  (forall x : A, In x W -> Rabs (be x - 1) <= Sj x) ->
  Rabs (l - sumf (fun x : A => (q x + r x) * al x) W) <= El ->
  Rabs (u - sumf (fun x : A => (q x + r x) * be x * v x) W) <= Eu ->
  forall o : R,
  sumf (fun x : A => p x * (v x - o)) W = 0 ->
  (forall x : A, In x W -> Rj x <= 1) ->
  0 < den_A W p E Rj D El ->
  Rabs (u / l - o) <= num_A W p E Rj Sj D v El Eu o / den_A W p E Rj D El.
Proof. exact @Bound.theorem_A. Qed.
Theorem shared_range :
  forall (A : Type) (W : list A) (p q E v : A -> R),
  (forall x : A, In x W -> p x * exp (- E x) <= q x <= p x * exp (E x)) ->
  forall t : R,
  sumf
    (fun x : A => p x * (if Rlt_dec t (v x) then exp (E x) else exp (- E x)) * (v x - t))
    W <= 0 -> sumf (fun x : A => q x * v x) W <= t * sumf q W.
Proof. exact @Bound.shared_range. Qed.
Theorem theorem_A_star :
  forall (A : Type) (W : list A) (p q r E Rj Sj D v al be : A -> R) (l u El Eu : R),
  (forall x : A, In x W -> 0 <= p x) ->
  (forall x : A, In x W -> p x * exp (- E x) <= q x <= p x * exp (E x)) ->
  (forall x : A, In x W -> Rabs (r x) <= D x) ->
  (forall x : A, In x W -> Rabs (al x - 1) <= Rj x) ->
  (forall x : A, In x W -> Rabs (be x - 1) <= Sj x) ->
  Rabs (l - sumf (fun x : A => (q x + r x) * al x) W) <= El ->
  Rabs (u - sumf (fun x : A => (q x + r x) * be x * v x) W) <= Eu ->
  forall o : R,
  (forall x : A, In x W -> Rj x <= 1) ->
  forall Tu Tl Rm : R,
  sumf (fun x : A => q x * (Sj x * Rabs (v x))) W <= Tu * sumf q W ->
  sumf (fun x : A => q x * Rj x) W <= Tl * sumf q W ->
  (forall x : A, In x W -> Rj x <= Rm) ->
  0 <= Tu ->
  0 <= Tl ->
  forall t w : R,
  o <= t ->
  sumf
    (fun x : A => p x * (if Rlt_dec t (v x) then exp (E x) else exp (- E x)) * (v x - t))
    W <= 0 ->
  0 < w <= sumf (fun x : A => p x * exp (- E x)) W ->
  (sumf (fun x : A => D x * (1 + Rj x)) W + El) / w < 1 - Rm ->
  u / l - o <=
  (t - o + Tu + Rabs o * Tl +
   (sumf (fun x : A => D x * Sj x * Rabs (v x)) W +
    Rabs o * sumf (fun x : A => D x * Rj x) W + sumf (fun x : A => D x * Rabs (v x - o)) W +
    Eu + Rabs o * El) / w) / (1 - Rm - (sumf (fun x : A => D x * (1 + Rj x)) W + El) / w).
Proof. exact @Bound.theorem_A_star. Qed.
Theorem lse_error :
  forall (A : Type) (W : list A) (p q r E Rj D al : A -> R) (l El : R),
  (forall x : A, In x W -> 0 <= p x) ->
  (forall x : A, In x W -> p x * exp (- E x) <= q x <= p x * exp (E x)) ->
  (forall x : A, In x W -> Rabs (r x) <= D x) ->
  (forall x : A, In x W -> Rabs (al x - 1) <= Rj x) ->
  Rabs (l - sumf (fun x : A => (q x + r x) * al x) W) <= El ->
  forall m lse : R,
  (forall x : A, In x W -> Rj x <= 1) ->
  0 < sumf p W ->
  lse = m + ln (sumf p W) ->
  let lo :=
    (sumf (fun x : A => p x * exp (- E x) * (1 - Rj x)) W -
     sumf (fun x : A => D x * (1 + Rj x)) W - El) / sumf p W in
  let hi := (sumf (fun x : A => (p x * exp (E x) + D x) * (1 + Rj x)) W + El) / sumf p W
    in
  0 < lo -> ln lo <= m + ln l - lse <= ln hi.
Proof. exact @Bound.lse_error. Qed.
Theorem lse_rounded :
  forall m L lse off eps e d : R,
  Rabs (m + L - lse) <= off ->
  Rabs d <= eps ->
  Rabs ((m + L * (1 + e)) * (1 + d) - lse) <=
  off + Rabs e * Rabs L + eps * (Rabs lse + off + Rabs e * Rabs L).
Proof. exact @Bound.lse_rounded. Qed.
Theorem score_perturbation :
  forall (W : list (R * R * R)) (V d : R),
  (forall x : R * R * R,
   In x W -> Rabs (fst (fst x) - snd (fst x)) <= d /\ Rabs (snd x) <= V) ->
  W <> [] ->
  let o :=
    fun f : R * R * R -> R =>
    sumf (fun x : R * R * R => exp (f x) * snd x) W /
    sumf (fun x : R * R * R => exp (f x)) W in
  Rabs (o (fun x : R * R * R => fst (fst x)) - o (fun x : R * R * R => snd (fst x))) <=
  2 * V * ((exp d - 1) * exp d).
Proof. exact @Bound.score_perturbation. Qed.
End SBound.

(* ---- The a-posteriori bound of a computed row ---- *)
Module SRowBound.
Import Sums Rounding Bound RowBound.
Theorem shared_error :
  forall epsa epse : R,
  0 <= epsa < 1 ->
  0 <= epse < 1 ->
  forall (z : judged) (m M f : R),
  m <= M ->
  fst (key (of z)) <= m ->
  Rabs (fst (key (of z)) - exact z) <= dev z ->
  (exps (of z) = 0%nat -> fst (key (of z)) = m) ->
  shape epsa epse (exps (of z)) m (fst (key (of z))) f ->
  p_of m z * exp (- E_of epsa epse M z) <= f <= p_of m z * exp (E_of epsa epse M z).
Proof. exact @RowBound.shared_error. Qed.
Theorem row_theorem_A :
  forall eps epsa epse etae epsp etal etau : R,
  0 <= eps < 1 ->
  0 <= epsa < 1 ->
  0 <= epse < 1 ->
  0 <= etae ->
  0 <= epsp < 1 ->
  0 <= etal ->
  0 <= etau ->
  forall (t : tree) (m l u : R) (P : list path) (N n c : nat) (Z : list judged) (M : R),
  run eps epsa epse etae epsp etal etau t m l u P N n c ->
  map of Z = P ->
  (forall z : judged, In z Z -> Rabs (fst (key (of z)) - exact z) <= dev z) ->
  m <= M ->
  Z <> [] ->
  (forall z : judged, In z Z -> R_of eps z <= 1) ->
  let den :=
    sumf (fun z : judged => p_of m z * exp (- E_of epsa epse M z) * (1 - R_of eps z)) Z -
    sumf (fun z : judged => D_of epse etae z * (1 + R_of eps z)) Z -
    INR N * etal * amp eps epse etae n c in
  let num :=
    sumf
      (fun z : judged =>
       p_of m z * (exp (E_of epsa epse M z) - 1) *
       Rabs (v_of z - sumf (fun z0 : judged => p_of m z0 * v_of z0) Z / sumf (p_of m) Z))
      Z +
    sumf
      (fun z : judged =>
       (p_of m z * exp (E_of epsa epse M z) + D_of epse etae z) * S_of eps epsp z *
       Rabs (v_of z)) Z +
    Rabs (sumf (fun z : judged => p_of m z * v_of z) Z / sumf (p_of m) Z) *
    sumf
      (fun z : judged =>
       (p_of m z * exp (E_of epsa epse M z) + D_of epse etae z) * R_of eps z) Z +
    sumf
      (fun z : judged =>
       D_of epse etae z *
       Rabs (v_of z - sumf (fun z0 : judged => p_of m z0 * v_of z0) Z / sumf (p_of m) Z))
      Z + INR N * etau * amp eps epse etae n c +
    Rabs (sumf (fun z : judged => p_of m z * v_of z) Z / sumf (p_of m) Z) *
    (INR N * etal * amp eps epse etae n c) in
  0 < den ->
  Rabs (u / l - sumf (fun z : judged => p_of m z * v_of z) Z / sumf (p_of m) Z) <=
  num / den.
Proof. exact @RowBound.row_theorem_A. Qed.
Theorem row_theorem_A_star :
  forall eps epsa epse etae epsp etal etau : R,
  0 <= eps < 1 ->
  0 <= epsa < 1 ->
  0 <= epse < 1 ->
  0 <= etae ->
  0 <= epsp < 1 ->
  0 <= etal ->
  0 <= etau ->
  forall (t : tree) (m l u : R) (P : list path) (N n c : nat) (Z : list judged) (M : R),
  run eps epsa epse etae epsp etal etau t m l u P N n c ->
  map of Z = P ->
  (forall z : judged, In z Z -> Rabs (fst (key (of z)) - exact z) <= dev z) ->
  m <= M ->
  Z <> [] ->
  (forall z : judged, In z Z -> R_of eps z <= 1) ->
  forall x Rm Sm : R,
  let W0 := sumf (fun z : judged => p_of m z * exp (- E_of epsa epse M z)) Z in
  let Tu :=
    Rmin
      (sumf
         (fun z : judged =>
          p_of m z * exp (E_of epsa epse M z) * (S_of eps epsp z * Rabs (v_of z))) Z / W0)
      Sm in
  let Tl :=
    Rmin
      (sumf (fun z : judged => p_of m z * exp (E_of epsa epse M z) * R_of eps z) Z / W0)
      Rm in
  let U :=
    sumf (fun z : judged => D_of epse etae z * S_of eps epsp z * Rabs (v_of z)) Z +
    Rabs (sumf (fun z : judged => p_of m z * v_of z) Z / sumf (p_of m) Z) *
    sumf (fun z : judged => D_of epse etae z * R_of eps z) Z +
    sumf
      (fun z : judged =>
       D_of epse etae z *
       Rabs (v_of z - sumf (fun z0 : judged => p_of m z0 * v_of z0) Z / sumf (p_of m) Z))
      Z + INR N * etau * amp eps epse etae n c +
    Rabs (sumf (fun z : judged => p_of m z * v_of z) Z / sumf (p_of m) Z) *
    (INR N * etal * amp eps epse etae n c) in
  let Ul :=
    sumf (fun z : judged => D_of epse etae z * (1 + R_of eps z)) Z +
    INR N * etal * amp eps epse etae n c in
  (forall z : judged, In z Z -> R_of eps z <= Rm) ->
  (forall z : judged, In z Z -> S_of eps epsp z * Rabs (v_of z) <= Sm) ->
  sumf (fun z : judged => p_of m z * v_of z) Z / sumf (p_of m) Z <= x ->
  sumf
    (fun z : judged =>
     p_of m z *
     (if Rlt_dec x (v_of z) then exp (E_of epsa epse M z) else exp (- E_of epsa epse M z)) *
     (v_of z - x)) Z <= 0 ->
  Ul / W0 < 1 - Rm ->
  u / l - sumf (fun z : judged => p_of m z * v_of z) Z / sumf (p_of m) Z <=
  (x - sumf (fun z : judged => p_of m z * v_of z) Z / sumf (p_of m) Z + Tu +
   Rabs (sumf (fun z : judged => p_of m z * v_of z) Z / sumf (p_of m) Z) * Tl + 
   U / W0) / (1 - Rm - Ul / W0).
Proof. exact @RowBound.row_theorem_A_star. Qed.
Theorem row_theorem_A_star_lower :
  forall eps epsa epse etae epsp etal etau : R,
  0 <= eps < 1 ->
  0 <= epsa < 1 ->
  0 <= epse < 1 ->
  0 <= etae ->
  0 <= epsp < 1 ->
  0 <= etal ->
  0 <= etau ->
  forall (t : tree) (m l u : R) (P : list path) (N n c : nat) (Z : list judged) (M : R),
  run eps epsa epse etae epsp etal etau t m l u P N n c ->
  map of Z = P ->
  (forall z : judged, In z Z -> Rabs (fst (key (of z)) - exact z) <= dev z) ->
  m <= M ->
  Z <> [] ->
  (forall z : judged, In z Z -> R_of eps z <= 1) ->
  forall x Rm Sm : R,
  let W0 := sumf (fun z : judged => p_of m z * exp (- E_of epsa epse M z)) Z in
  let Tu :=
    Rmin
      (sumf
         (fun z : judged =>
          p_of m z * exp (E_of epsa epse M z) * (S_of eps epsp z * Rabs (v_of z))) Z / W0)
      Sm in
  let Tl :=
    Rmin
      (sumf (fun z : judged => p_of m z * exp (E_of epsa epse M z) * R_of eps z) Z / W0)
      Rm in
  let U :=
    sumf (fun z : judged => D_of epse etae z * S_of eps epsp z * Rabs (v_of z)) Z +
    Rabs (sumf (fun z : judged => p_of m z * v_of z) Z / sumf (p_of m) Z) *
    sumf (fun z : judged => D_of epse etae z * R_of eps z) Z +
    sumf
      (fun z : judged =>
       D_of epse etae z *
       Rabs (v_of z - sumf (fun z0 : judged => p_of m z0 * v_of z0) Z / sumf (p_of m) Z))
      Z + INR N * etau * amp eps epse etae n c +
    Rabs (sumf (fun z : judged => p_of m z * v_of z) Z / sumf (p_of m) Z) *
    (INR N * etal * amp eps epse etae n c) in
  let Ul :=
    sumf (fun z : judged => D_of epse etae z * (1 + R_of eps z)) Z +
    INR N * etal * amp eps epse etae n c in
  (forall z : judged, In z Z -> R_of eps z <= Rm) ->
  (forall z : judged, In z Z -> S_of eps epsp z * Rabs (v_of z) <= Sm) ->
  x <= sumf (fun z : judged => p_of m z * v_of z) Z / sumf (p_of m) Z ->
  sumf
    (fun z : judged =>
     p_of m z *
     (if Rlt_dec (v_of z) x then exp (E_of epsa epse M z) else exp (- E_of epsa epse M z)) *
     (x - v_of z)) Z <= 0 ->
  Ul / W0 < 1 - Rm ->
  sumf (fun z : judged => p_of m z * v_of z) Z / sumf (p_of m) Z - u / l <=
  (sumf (fun z : judged => p_of m z * v_of z) Z / sumf (p_of m) Z - x + Tu +
   Rabs (sumf (fun z : judged => p_of m z * v_of z) Z / sumf (p_of m) Z) * Tl + 
   U / W0) / (1 - Rm - Ul / W0).
Proof. exact @RowBound.row_theorem_A_star_lower. Qed.
Theorem row_lse :
  forall eps epsa epse etae epsp etal etau : R,
  0 <= eps < 1 ->
  0 <= epsa < 1 ->
  0 <= epse < 1 ->
  0 <= etae ->
  0 <= epsp < 1 ->
  0 <= etal ->
  0 <= etau ->
  forall (t : tree) (m l u : R) (P : list path) (N n c : nat) (Z : list judged) (M : R),
  run eps epsa epse etae epsp etal etau t m l u P N n c ->
  map of Z = P ->
  (forall z : judged, In z Z -> Rabs (fst (key (of z)) - exact z) <= dev z) ->
  m <= M ->
  Z <> [] ->
  (forall z : judged, In z Z -> R_of eps z <= 1) ->
  let lo :=
    (sumf (fun z : judged => p_of m z * exp (- E_of epsa epse M z) * (1 - R_of eps z)) Z -
     sumf (fun z : judged => D_of epse etae z * (1 + R_of eps z)) Z -
     INR N * etal * amp eps epse etae n c) / sumf (p_of m) Z in
  let hi :=
    (sumf
       (fun z : judged =>
        (p_of m z * exp (E_of epsa epse M z) + D_of epse etae z) * (1 + R_of eps z)) Z +
     INR N * etal * amp eps epse etae n c) / sumf (p_of m) Z in
  0 < lo -> ln lo <= m + ln l - ln (sumf (fun z : judged => exp (exact z)) Z) <= ln hi.
Proof. exact @RowBound.row_lse. Qed.
End SRowBound.

(* ---- Rows of at_row.h in an IEEE format ---- *)
Module SFormats.
Import Sums Rounding RangeFree Formats.
Theorem row_run :
  forall (emin prec : Z) (choice : Z -> bool),
  (0 < prec)%Z ->
  forall (fexpf narrow : R -> R) (V epse etae : R),
  0 <= epse < 1 ->
  (forall x : R, generic_format radix2 (FLT_exp emin prec) (fexpf x)) ->
  fexpf 0 = 1 ->
  (forall x : R,
   generic_format radix2 (FLT_exp emin prec) x ->
   x <= 0 ->
   exists e h : R, Rabs e <= epse /\ Rabs h <= etae /\ fexpf x = exp x * (1 + e) + h) ->
  forall epsp etap : R,
  0 <= epsp < 1 ->
  0 <= etap ->
  0 <= V ->
  narrow 1 = 1 ->
  (forall x : R,
   generic_format radix2 (FLT_exp emin prec) x ->
   exists e h : R, Rabs e <= epsp /\ Rabs h <= etap /\ narrow x = x * (1 + e) + h) ->
  forall x : prog,
  inF emin prec V (keys x) ->
  exists (P : list path) (N n c : nat),
    run (eps prec) (eps prec) epse etae epsp (eta emin) (etau emin prec V etap)
      (tree_of x) (fm emin prec choice fexpf narrow x)
      (fl_l emin prec choice fexpf narrow x) (fl_u emin prec choice fexpf narrow x) P N n
      c /\
    ((N <= products x)%nat /\ (n <= budget x)%nat /\ (c <= most_rescales x + 1)%nat) /\
    List.Forall (counted x) P.
Proof. exact @Formats.row_run. Qed.
Theorem attention_FLT :
  forall (emin prec : Z) (choice : Z -> bool),
  (0 < prec)%Z ->
  forall (fexpf narrow : R -> R) (V epse etae : R),
  0 <= epse < 1 ->
  0 <= etae ->
  (forall x : R, generic_format radix2 (FLT_exp emin prec) (fexpf x)) ->
  fexpf 0 = 1 ->
  (forall x : R,
   generic_format radix2 (FLT_exp emin prec) x ->
   x <= 0 ->
   exists e h : R, Rabs e <= epse /\ Rabs h <= etae /\ fexpf x = exp x * (1 + e) + h) ->
  forall epsp etap : R,
  0 <= epsp < 1 ->
  0 <= etap ->
  0 <= V ->
  narrow 1 = 1 ->
  (forall x : R,
   generic_format radix2 (FLT_exp emin prec) x ->
   exists e h : R, Rabs e <= epsp /\ Rabs h <= etap /\ narrow x = x * (1 + e) + h) ->
  forall x : prog,
  inF emin prec V (keys x) ->
  let n := length (keys x) in
  let Kl := kappa (eps prec) (eps prec) epse epsp (budget x) 0 (worst_c x) n in
  let Ku := kappa (eps prec) (eps prec) epse epsp (budget x) 1 (worst_c x) n in
  let Dl :=
    INR n * (dust epse etae (worst_c x) * up (eps prec) (budget x)) +
    lost_l emin prec epse etae x in
  let Du :=
    V * (INR n * (dust epse etae (worst_c x) * (up (eps prec) (budget x) * up epsp 1))) +
    lost_u emin prec V epse etae etap x in
  let exact :=
    TT (fm emin prec choice fexpf narrow x) (keys x) /
    SS (fm emin prec choice fexpf narrow x) (keys x) in
  let bound := ((Kl + Ku) * V + V * Dl + Du) / (1 - Kl - Dl) in
  Kl + Dl < 1 ->
  0 < fl_l emin prec choice fexpf narrow x /\
  Rabs
    (fl_u emin prec choice fexpf narrow x / fl_l emin prec choice fexpf narrow x - exact) <=
  bound /\
  Rabs
    (fl emin prec choice
       (fl_u emin prec choice fexpf narrow x / fl_l emin prec choice fexpf narrow x) -
     exact) <= bound * (1 + eps prec) + eps prec * V + eta emin.
Proof. exact @Formats.attention_FLT. Qed.
Theorem stream_depth :
  forall (b : nat) (T : list (elt * list elt)) (x : prog),
  List.Forall (fun t : elt * list elt => (length (snd t) <= b)%nat) T ->
  (most_adds (stream x T) <= Init.Nat.max (most_adds x) b + length T)%nat /\
  most_rescales (stream x T) = (most_rescales x + length T)%nat.
Proof. exact @Formats.stream_depth. Qed.
Theorem fm_attained :
  forall (emin prec : Z) (choice : Z -> bool) (fexpf narrow : R -> R) (p : prog),
  exists e : elt, In e (keys p) /\ fst e = fm emin prec choice fexpf narrow p.
Proof. exact @Formats.fm_attained. Qed.
End SFormats.

(* ---- No error analysis: order, range ---- *)
Module SRange.
Import Sums Rounding Formats Range.
Theorem merge_comm_bits :
  forall (emin prec : Z) (choice : Z -> bool) (fexpf : R -> R) (x y : st),
  row_merge emin prec choice fexpf x y = row_merge emin prec choice fexpf y x.
Proof. exact @Range.merge_comm_bits. Qed.
Theorem range_fp :
  forall (emin prec : Z) (choice : Z -> bool),
  (0 < prec)%Z ->
  forall fexpf narrow : R -> R,
  (forall x : R, generic_format radix2 (FLT_exp emin prec) (fexpf x)) ->
  fexpf 0 = 1 ->
  (forall x : R,
   generic_format radix2 (FLT_exp emin prec) x -> x <= 0 -> 0 <= fexpf x <= 1) ->
  (forall x : R,
   generic_format radix2 (FLT_exp emin prec) x -> 0 <= x <= 1 -> 0 <= narrow x <= 1) ->
  (emin <= 0)%Z ->
  forall kv : Z,
  (0 <= kv)%Z ->
  forall (V : R) (x : prog),
  ok emin prec kv V x ->
  INR (length (keys x)) <= bpow radix2 prec ->
  1 <= fl_l emin prec choice fexpf narrow x <= INR (length (keys x)) /\
  Rabs (fl_u emin prec choice fexpf narrow x) <= INR (length (keys x)) * bpow radix2 kv.
Proof. exact @Range.range_fp. Qed.
End SRange.

(* ---- IEEE numbers: finite, no NaN ---- *)
Module SIeee.
Import Sums Rounding Formats Range Ieee.
Theorem row_is :
  forall (prec emax : Z) (prec_gt_0_ : Prec_gt_0 prec)
    (prec_lt_emax_ : Prec_lt_emax prec emax)
    (bexp : binary_float prec emax -> binary_float prec emax) 
    (fexpf : R -> R),
  (forall x : binary_float prec emax,
   BinarySingleNaN.is_finite x = true ->
   B2R x <= 0 -> BinarySingleNaN.is_finite (bexp x) = true /\ B2R (bexp x) = fexpf (B2R x)) ->
  (forall x : R, generic_format radix2 (FLT_exp (3 - emax - prec) prec) (fexpf x)) ->
  fexpf 0 = 1 ->
  (forall x : R,
   generic_format radix2 (FLT_exp (3 - emax - prec) prec) x -> x <= 0 -> 0 <= fexpf x <= 1) ->
  forall ks kv : Z,
  (0 <= ks)%Z /\ (ks + 1 < emax)%Z ->
  (0 <= kv)%Z /\ (prec + kv < emax)%Z ->
  forall x : bprog prec emax,
  okrow prec emax ks kv x ->
  INR (length (keys (rprog prec emax x))) <= bpow radix2 prec ->
  (is prec emax (bm prec emax prec_gt_0_ prec_lt_emax_ bexp x)
     (fm (3 - emax - prec) prec (fun x0 : Z => negb (Z.even x0)) fexpf 
        (fun p : R => p) (rprog prec emax x)) /\
   within_ks ks
     (fm (3 - emax - prec) prec (fun x0 : Z => negb (Z.even x0)) fexpf 
        (fun p : R => p) (rprog prec emax x))) /\
  is prec emax (bl prec emax prec_gt_0_ prec_lt_emax_ bexp x)
    (fl_l (3 - emax - prec) prec (fun x0 : Z => negb (Z.even x0)) fexpf 
       (fun p : R => p) (rprog prec emax x)) /\
  is prec emax (bu prec emax prec_gt_0_ prec_lt_emax_ bexp x)
    (fl_u (3 - emax - prec) prec (fun x0 : Z => negb (Z.even x0)) fexpf 
       (fun p : R => p) (rprog prec emax x)).
Proof. exact @Ieee.row_is. Qed.
Theorem out_is :
  forall (prec emax : Z) (prec_gt_0_ : Prec_gt_0 prec)
    (prec_lt_emax_ : Prec_lt_emax prec emax)
    (bexp : binary_float prec emax -> binary_float prec emax) 
    (fexpf : R -> R),
  (forall x : binary_float prec emax,
   BinarySingleNaN.is_finite x = true ->
   B2R x <= 0 -> BinarySingleNaN.is_finite (bexp x) = true /\ B2R (bexp x) = fexpf (B2R x)) ->
  (forall x : R, generic_format radix2 (FLT_exp (3 - emax - prec) prec) (fexpf x)) ->
  fexpf 0 = 1 ->
  (forall x : R,
   generic_format radix2 (FLT_exp (3 - emax - prec) prec) x -> x <= 0 -> 0 <= fexpf x <= 1) ->
  forall ks kv : Z,
  (0 <= ks)%Z /\ (ks + 1 < emax)%Z ->
  (0 <= kv)%Z /\ (prec + kv < emax)%Z ->
  forall x : bprog prec emax,
  okrow prec emax ks kv x ->
  INR (length (keys (rprog prec emax x))) <= bpow radix2 prec ->
  is prec emax (bout prec emax prec_gt_0_ prec_lt_emax_ bexp x)
    (fl (3 - emax - prec) prec (fun x0 : Z => negb (Z.even x0))
       (fl_u (3 - emax - prec) prec (fun x0 : Z => negb (Z.even x0)) fexpf
          (fun p : R => p) (rprog prec emax x) /
        fl_l (3 - emax - prec) prec (fun x0 : Z => negb (Z.even x0)) fexpf
          (fun p : R => p) (rprog prec emax x))).
Proof. exact @Ieee.out_is. Qed.
End SIeee.

(* ---- at_exp32 ---- *)
Module SExp32.
Import Exp32.
Theorem exp32_error :
  forall x : R,
  F x ->
  x <= 0 ->
  exists e h : R,
    Rabs e <= 23 * bpow radix2 (-28) /\ Rabs h <= tiny /\ exp32 x = exp x * (1 + e) + h.
Proof. exact @Exp32.exp32_error. Qed.
Theorem exp32_relative :
  forall x : R,
  F x ->
  -86 <= x <= 0 ->
  exists e : R, Rabs e <= 23 * bpow radix2 (-28) /\ exp32 x = exp x * (1 + e).
Proof. exact @Exp32.exp32_relative. Qed.
Theorem exp32_ulp :
  forall x : R,
  F x ->
  -86 <= x <= 0 ->
  Rabs (exp32 x - exp x) <= 31 / 32 * ulp radix2 (FLT_exp (-149) 24) (exp x).
Proof. exact @Exp32.exp32_ulp. Qed.
Theorem exp32_0 :
  exp32 0 = 1.
Proof. exact @Exp32.exp32_0. Qed.
Theorem exp32_01 :
  forall x : R, F x -> x <= 0 -> 0 <= exp32 x <= 1.
Proof. exact @Exp32.exp32_01. Qed.
End SExp32.

(* ---- at_exp64 ---- *)
Module SExp64.
Import Exp64.
Theorem exp64_error :
  forall x : R,
  F x ->
  x <= 0 ->
  exists e h : R,
    Rabs e <= 23 * bpow radix2 (-57) /\ Rabs h <= tiny /\ exp64 x = exp x * (1 + e) + h.
Proof. exact @Exp64.exp64_error. Qed.
Theorem exp64_relative :
  forall x : R,
  F x ->
  -708 <= x <= 0 ->
  exists e : R, Rabs e <= 23 * bpow radix2 (-57) /\ exp64 x = exp x * (1 + e).
Proof. exact @Exp64.exp64_relative. Qed.
Theorem exp64_ulp :
  forall x : R,
  F x ->
  -708 <= x <= 0 ->
  Rabs (exp64 x - exp x) <= 31 / 32 * ulp radix2 (FLT_exp (-1074) 53) (exp x).
Proof. exact @Exp64.exp64_ulp. Qed.
Theorem exp64_0 :
  exp64 0 = 1.
Proof. exact @Exp64.exp64_0. Qed.
Theorem exp64_01 :
  forall x : R, F x -> x <= 0 -> 0 <= exp64 x <= 1.
Proof. exact @Exp64.exp64_01. Qed.
End SExp64.

(* ---- One concrete number ---- *)
Module SCapstone.
Import Sums Rounding RangeFree Formats Range Ieee.
Theorem attention_row :
  forall prec emin : Z,
  (24 <= prec)%Z ->
  (emin <= -149 /\ emin + prec + 30 <= 0)%Z ->
  forall fexp : R -> R,
  (forall x : R, generic_format radix2 (FLT_exp emin prec) (fexp x)) ->
  fexp 0 = 1 ->
  (forall x : R,
   generic_format radix2 (FLT_exp emin prec) x ->
   x <= 0 ->
   exists e h : R,
     Rabs e <= 23 * bpow radix2 (- prec - 4) /\ Rabs h <= bpow radix2 (emin - 1) /\
     fexp x = exp x * (1 + e) + h) ->
  forall (x : prog) (V : R),
  inF emin prec V (keys x) ->
  0 <= V ->
  (Z.of_nat (budget x) <= 320)%Z ->
  (Z.of_nat (worst_c x) <= 128)%Z ->
  (Z.of_nat (products x) <= 4194304)%Z ->
  (Z.of_nat (length (keys x)) <= 1048576)%Z ->
  let nearest := fun z : Z => negb (Z.even z) in
  let m := fm emin prec nearest fexp (fun p : R => p) x in
  let u := fl_u emin prec nearest fexp (fun p : R => p) x in
  let l := fl_l emin prec nearest fexp (fun p : R => p) x in
  Rabs (fl emin prec nearest (u / l) - TT m (keys x) / SS m (keys x)) <=
  1100 * bpow radix2 (- prec) * V + bpow radix2 (emin + 24).
Proof. exact @Capstone.attention_row. Qed.
Theorem attention_ieee :
  forall (prec emax : Z) (Hp : Prec_gt_0 prec) (He : Prec_lt_emax prec emax),
  (24 <= prec)%Z ->
  (prec + 104 <= emax)%Z ->
  forall (bexp : binary_float prec emax -> binary_float prec emax) (fexp : R -> R),
  (forall x : R, generic_format radix2 (FLT_exp (3 - emax - prec) prec) (fexp x)) ->
  fexp 0 = 1 ->
  (forall x : R, generic_format radix2 (FLT_exp (3 - emax - prec) prec) x -> x <= 0 -> 0 <= fexp x <= 1) ->
  (forall x : R,
   generic_format radix2 (FLT_exp (3 - emax - prec) prec) x ->
   x <= 0 ->
   exists e h : R,
     Rabs e <= 23 * bpow radix2 (- prec - 4) /\ Rabs h <= bpow radix2 (3 - emax - prec - 1) /\
     fexp x = exp x * (1 + e) + h) ->
  (forall y : binary_float prec emax,
   BinarySingleNaN.is_finite y = true ->
   B2R y <= 0 -> BinarySingleNaN.is_finite (bexp y) = true /\ B2R (bexp y) = fexp (B2R y)) ->
  forall (x : bprog prec emax) (V : R),
  okrow prec emax (emax - 2) (emax - prec - 4) x ->
  (forall e : elt, In e (keys (rprog prec emax x)) -> Rabs (snd e) <= V) ->
  0 <= V ->
  (Z.of_nat (budget (rprog prec emax x)) <= 320)%Z ->
  (Z.of_nat (worst_c (rprog prec emax x)) <= 128)%Z ->
  (Z.of_nat (products (rprog prec emax x)) <= 4194304)%Z ->
  (Z.of_nat (length (keys (rprog prec emax x))) <= 1048576)%Z ->
  let L := keys (rprog prec emax x) in
  let o := bout prec emax Hp He bexp x in
  BinarySingleNaN.is_finite o = true /\
  Rabs
    (B2R o -
     sumf (fun e : elt => exp (fst e) * snd e) L / sumf (fun e : elt => exp (fst e)) L) <=
  1100 * bpow radix2 (- prec) * V + bpow radix2 (3 - emax - prec + 24).
Proof. exact @Capstone.attention_ieee. Qed.
End SCapstone.

(* ---- The program itself ---- *)
Module SExpIeee.
Import Sums Rounding RangeFree Formats Range Ieee ExpIeee.
Theorem twin_exp32 (x : binary_float 24 128) : BinarySingleNaN.is_finite x = true -> B2R x <= 0 ->
  BinarySingleNaN.is_finite (Twin.exp32 x) = true /\ B2R (Twin.exp32 x) = Exp32.exp32 (B2R x).
Proof. exact (@ExpIeee.twin_exp32 x). Qed.
Theorem twin_exp64 (x : binary_float 53 1024) : BinarySingleNaN.is_finite x = true -> B2R x <= 0 ->
  BinarySingleNaN.is_finite (Twin.exp64 x) = true /\ B2R (Twin.exp64 x) = Exp64.exp64 (B2R x).
Proof. exact (@ExpIeee.twin_exp64 x). Qed.
Theorem attention_binary32_shipped (x : bprog 24 128) V :
  okrow 24 128 126 100 x -> counted 24 128 x -> values_within 24 128 x V -> 0 <= V ->
  let o := bout 24 128 Twin.p24 Twin.p128 Twin.exp32 x in
  BinarySingleNaN.is_finite o = true /\
  Rabs (B2R o - average 24 128 x) <= 7 / 100000 * V + / 10 ^ 36.
Proof. exact (@ExpIeee.attention_binary32_shipped x V). Qed.
Theorem attention_binary64_shipped (x : bprog 53 1024) V :
  okrow 53 1024 1022 967 x -> counted 53 1024 x -> values_within 53 1024 x V -> 0 <= V ->
  let o := bout 53 1024 Twin.p53 Twin.p1024 Twin.exp64 x in
  BinarySingleNaN.is_finite o = true /\
  Rabs (B2R o - average 53 1024 x) <= 13 / 10 ^ 14 * V + / 10 ^ 300.
Proof. exact (@ExpIeee.attention_binary64_shipped x V). Qed.
End SExpIeee.

(* ---- The backward pass ---- *)
Module SBackward.
Import Exact Backward.
Theorem deriv_score :
  forall (A B : list elt) (s : R_AbsRing) (v : R),
  is_derive (fun x : R_AbsRing => o A B x v) s (p A B s v * (v - o A B s v)).
Proof. exact @Backward.deriv_score. Qed.
Theorem deriv_value :
  forall (A B : list elt) (s : R) (v : R_AbsRing),
  is_derive (fun y : R_AbsRing => o A B s y) v (p A B s v).
Proof. exact @Backward.deriv_value. Qed.
Theorem p_recompute :
  forall (A B : list elt) (s v : R), p A B s v = exp (s - lse (direct (at_ A B s v))).
Proof. exact @Backward.p_recompute. Qed.
Theorem flash_backward :
  forall (C : list col) (s P : R),
  (forall (A B : list elt) (v g : R), In (A, B, v, g) C -> p A B s v = P) ->
  is_derive (loss C) s (P * (dP C - D C s)).
Proof. exact @Backward.flash_backward. Qed.
End SBackward.

(* ---- The definitions that the statements rest on ---- *)
Module SExactDefinitions.
Import Exact.
Theorem merge_is a b : merge a b = let m := omax (sm a) (sm b) in
  St m (w (sm a) m * sl a + w (sm b) m * sl b) (w (sm a) m * su a + w (sm b) m * su b).
Proof. reflexivity. Qed.
Theorem update_is a s v : update a (s, v) = let m := omax (sm a) s in
  St m (w (sm a) m * sl a + w s m) (w (sm a) m * su a + w s m * v).
Proof. reflexivity. Qed.
Theorem weight_is x y : w (Some x) (Some y) = exp (x - y) /\ w None (Some y) = 0.
Proof. split; reflexivity. Qed.
Theorem average_is L : softmax_avg L = evsum L / esum L. Proof. reflexivity. Qed.
End SExactDefinitions.

Module SModelDefinitions.
Import Sums Rounding RangeFree Bound RowBound.
Theorem SS_is m L : SS m L = sumf (fun e => exp (fst e - m)) L. Proof. reflexivity. Qed.
Theorem TT_is m L : TT m L = sumf (fun e => exp (fst e - m) * snd e) L. Proof. reflexivity. Qed.
Theorem rnd_is eps x y : rnd eps x y = exists d, Rabs d <= eps /\ y = x * (1 + d).
Proof. reflexivity. Qed.
Theorem factor_is epsa epse etae m1 m f k : factor epsa epse etae m1 m f k <->
  (k = O /\ m1 = m /\ f = 1) \/ (k = 1%nat /\ exists d e h, Rabs d <= epsa /\ Rabs e <= epse /\
    Rabs h <= etae /\ f = exp ((m1 - m) * (1 + d)) * (1 + e) + h).
Proof.
  split.
  - intros [H1 H2|d e h H1 H2 H3 H4]; [left; auto|right; split; [auto|exists d, e, h; auto]].
  - intros [(-> & H1 & H2)|(-> & d & e & h & H1 & H2 & H3 & H4)];
      [now apply factor_one|now apply (factor_exp _ _ _ _ _ _ d e h)].
Qed.
Theorem times_is eps eta f x y : times eps eta f 0 x y = (y = x) /\
  times eps eta f 1 x y = exists d h, Rabs d <= eps /\ Rabs h <= eta /\ y = f * x * (1 + d) + h.
Proof. split; reflexivity. Qed.
Theorem weighted_is eps epsp etau p v pv : weighted eps epsp etau p 0 v pv = (pv = v) /\
  weighted eps epsp etau p 1 v pv = exists e d h, Rabs e <= epsp /\ Rabs d <= eps /\ Rabs h <= etau /\
    pv = p * (1 + e) * v * (1 + d) + h.
Proof. split; reflexivity. Qed.
Theorem merged_is eps epsa epse etae etal etau mA lA uA mB lB uB m l u kA kB :
  merged eps epsa epse etae etal etau mA lA uA mB lB uB m l u kA kB =
  (mA <= m /\ mB <= m /\ exists fA fB pA pB rA rB,
    factor epsa epse etae mA m fA kA /\ factor epsa epse etae mB m fB kB /\
    times eps etal fA kA lA pA /\ times eps etau fA kA uA rA /\
    times eps etal fB kB lB pB /\ times eps etau fB kB uB rB /\
    rnd eps (pA + pB) l /\ rnd eps (rA + rB) u).
Proof. reflexivity. Qed.
Theorem kappa_is eps epsa epse epsp N k c n : kappa eps epsa epse epsp N k c n =
  (1 + eps) ^ N * (1 + epsp) ^ k * (1 + epse) ^ c * exp (epsa * ln (INR n)) - 1.
Proof. reflexivity. Qed.
Theorem dust_is epse etae c : dust epse etae c = (1 + (epse + etae)) ^ c - (1 + epse) ^ c.
Proof. reflexivity. Qed.
Theorem amp_is eps epse etae n c : amp eps epse etae n c = (1 + eps) ^ n * (1 + (epse + etae)) ^ c.
Proof. reflexivity. Qed.
Theorem E_is epsa epse M z : E_of epsa epse M z = dev z
  + match (rescales (of z) + own (of z))%nat with O => 0
    | S _ => epsa * (M - exact z + dev z) end
  + INR (rescales (of z) + own (of z)) * - ln (1 - epse).
Proof. reflexivity. Qed.
Theorem R_is eps z : R_of eps z = (1 + eps) ^ (adds (of z) + rescales (of z)) - 1.
Proof. reflexivity. Qed.
Theorem S_is eps epsp z : S_of eps epsp z =
  (1 + eps) ^ (adds (of z) + rescales (of z) + own (of z)) * (1 + epsp) ^ own (of z) - 1.
Proof. reflexivity. Qed.
Theorem numerator_is {A} (W : list A) p E Rj Sj D v El Eu o : num_A W p E Rj Sj D v El Eu o =
  sumf (fun x => p x * (exp (E x) - 1) * Rabs (v x - o)) W
  + sumf (fun x => (p x * exp (E x) + D x) * Sj x * Rabs (v x)) W
  + Rabs o * sumf (fun x => (p x * exp (E x) + D x) * Rj x) W
  + sumf (fun x => D x * Rabs (v x - o)) W + Eu + Rabs o * El.
Proof. reflexivity. Qed.
Theorem denominator_is {A} (W : list A) p E Rj D El : den_A W p E Rj D El =
  sumf (fun x => p x * exp (- E x) * (1 - Rj x)) W - sumf (fun x => D x * (1 + Rj x)) W - El.
Proof. reflexivity. Qed.
End SModelDefinitions.

Module SScoreDefinitions.
Import Score.
Theorem rounds_is eps eta x y : rounds eps eta x y =
  exists d h, Rabs d <= eps /\ Rabs h <= eta /\ y = x * (1 + d) + h.
Proof. reflexivity. Qed.
Theorem computed_is eps eta L x n N : computed eps eta L x n N <->
  (L = [] /\ x = 0 /\ n = 0%nat /\ N = 0%nat) \/
  (exists q k, L = [(q, k)] /\ n = 1%nat /\ N = 1%nat /\ rounds eps eta (q * k) x) \/
  (exists q k, L = [(q, k)] /\ n = 0%nat /\ N = 0%nat /\ x = q * k) \/
  (exists q k M y m K, L = (q, k) :: M /\ n = S m /\ N = S K /\ computed eps eta M y m K /\
    rounds eps eta (q * k + y) x) \/
  (exists M M' y y' m m' K K' d, L = M ++ M' /\ n = S (max m m') /\ N = (K + K')%nat /\
    computed eps eta M y m K /\ computed eps eta M' y' m' K' /\ Rabs d <= eps /\ x = (y + y') * (1 + d)).
Proof.
  split.
  - intros [|q k y H|q k|M y m K q k z H HR|M M' y y' z m m' K K' H H' (d & Hd & E)];
      [left|right; left|right; right; left|right; right; right; left|right; right; right; right]; auto.
    + exists q, k; auto.
    + exists q, k; auto.
    + exists q, k, M, y, m, K; auto.
    + exists M, M', y, y', m, m', K, K', d. auto 8.
  - intros [(-> & -> & -> & ->)|[(q & k & -> & -> & -> & H)|[(q & k & -> & -> & -> & ->)|
      [(q & k & M & y & m & K & -> & -> & -> & H & HR)|
       (M & M' & y & y' & m & m' & K & K' & d & -> & -> & -> & H & H' & Hd & E)]]]].
    + apply Nothing.
    + now apply Product.
    + apply Exact.
    + now apply (Fused _ _ _ y).
    + apply (Sum _ _ _ _ y y'); eauto.
Qed.
Theorem chain_is eps eta e L x : (chain eps eta [] x = (x = 0)) /\ chain eps eta (e :: L) x =
  exists y, chain eps eta L y /\ rounds eps eta (fst e * snd e + y) x.
Proof. split; reflexivity. Qed.
End SScoreDefinitions.

Module SOrderedDefinitions.
Import Ordered.
Theorem exact_of_order x s a t u : exact (Key x s) = x /\ exact (Rescaled a t) = a * exact t /\
  exact (Added t u) = exact t + exact u /\ exact (Joined t u) = exact t + exact u.
Proof. repeat split; reflexivity. Qed.
Theorem roundings_of_order x s a t u : roundings (Key x s) = 0%nat /\
  roundings (Rescaled a t) = S (roundings t) /\
  roundings (Added t u) = S (max (roundings t) (roundings u)) /\
  roundings (Joined t u) = max (roundings t) (roundings u).
Proof. repeat split; reflexivity. Qed.
Theorem computed_in_order eps x s a t u v : computed eps (Key x s) v = (Rabs (v - x) <= s) /\
  computed eps (Rescaled a t) v =
    (exists w d, computed eps t w /\ Rabs d <= eps /\ v = a * w * (1 + d)) /\
  computed eps (Added t u) v =
    (exists w z d, computed eps t w /\ computed eps u z /\ Rabs d <= eps /\ v = (w + z) * (1 + d)) /\
  computed eps (Joined t u) v = exists w z, computed eps t w /\ computed eps u z /\ v = w + z.
Proof. repeat split; reflexivity. Qed.
Theorem charge_of_order eps f x s a t u : charge eps f (Key x s) = f * s /\
  charge eps f (Rescaled a t) = eps * (f * Rabs (a * exact t)) + charge eps (f * a) t /\
  charge eps f (Added t u) =
    eps * (f * Rabs (exact t + exact u)) + charge eps f t + charge eps f u /\
  charge eps f (Joined t u) = charge eps f t + charge eps f u.
Proof. repeat split; reflexivity. Qed.
End SOrderedDefinitions.

Module SRowDefinitions.
Import Sums Rounding Formats.
Section Program.
Variables (emin prec : Z) (choice : Z -> bool) (fexpf narrow : R -> R).
Notation fl := (fl emin prec choice).
Theorem fl_is x : fl x = round radix2 (FLT_exp emin prec) (Znearest choice) x. Proof. reflexivity. Qed.
Theorem worth_is m to : worth emin prec choice fexpf m to
  = if Req_EM_T m to then 1 else fexpf (fl (m - to)).
Proof. reflexivity. Qed.
Theorem take_is a x t : take emin prec choice a x t = fl (fl (a * x) + t). Proof. reflexivity. Qed.
Theorem join_is a x b y : join emin prec choice a x b y = fl (fl (a * x) + fl (b * y)).
Proof. reflexivity. Qed.
Theorem tile_add_is m l u s v : tile_add emin prec choice fexpf narrow m (l, u) (s, v)
  = let p := fexpf (fl (s - m)) in (fl (l + p), fl (narrow p * v + u)).
Proof. reflexivity. Qed.
Theorem row_take_is mx lx ux e L : row_take emin prec choice fexpf narrow (mx, lx, ux) e L =
  let m := tile_max (Rmax mx (fst e)) L in let a := worth emin prec choice fexpf mx m in
  let t := fold_left (tile_add emin prec choice fexpf narrow m) (e :: L) (0, 0) in
  (m, take emin prec choice a lx (fst t), take emin prec choice a ux (snd t)).
Proof. reflexivity. Qed.
Theorem row_merge_is mx lx ux my ly uy :
  row_merge emin prec choice fexpf (mx, lx, ux) (my, ly, uy) =
  let m := Rmax mx my in let a := worth emin prec choice fexpf mx m in
  let b := worth emin prec choice fexpf my m in
  (m, join emin prec choice a lx b ly, join emin prec choice a ux b uy).
Proof. reflexivity. Qed.
End Program.
End SRowDefinitions.

Module SCapstoneDefinitions.
Import Sums Rounding RangeFree Formats Ieee ExpIeee.
Theorem counted_is prec emax x : counted prec emax x <->
  (Z.of_nat (budget (rprog prec emax x)) <= 320)%Z /\
  (Z.of_nat (worst_c (rprog prec emax x)) <= 128)%Z /\
  (Z.of_nat (products (rprog prec emax x)) <= 4194304)%Z /\
  (Z.of_nat (length (keys (rprog prec emax x))) <= 1048576)%Z.
Proof. reflexivity. Qed.
Theorem average_is prec emax x : let L := keys (rprog prec emax x) in average prec emax x =
  sumf (fun e : elt => exp (fst e) * snd e) L / sumf (fun e : elt => exp (fst e)) L.
Proof. reflexivity. Qed.
Theorem values_are prec emax x V : values_within prec emax x V <->
  forall e : elt, In e (keys (rprog prec emax x)) -> Rabs (snd e) <= V.
Proof. reflexivity. Qed.
End SCapstoneDefinitions.

Module SExp32Definitions.
Import Gappa_library Constants Exp32.
Theorem rounding_is x : n_of x = rnd (rnd (x * L2E + IZR (Fnum SHIFT_32)) - IZR (Fnum SHIFT_32)).
Proof. reflexivity. Qed.
Theorem reduction_is x : r_of x = let n := n_of x in rnd (n * NLO + rnd (n * NHI + x)).
Proof. reflexivity. Qed.
Theorem polynomial_is r : y_of r = let q5 := rnd (float2R c6_32 * r + float2R c5_32) in
  let q4 := rnd (q5 * r + float2R c4_32) in let q3 := rnd (q4 * r + float2R c3_32) in
  let q2 := rnd (q3 * r + float2R c2_32) in let q1 := rnd (q2 * r + 1) in rnd (q1 * r + 1).
Proof. reflexivity. Qed.
Theorem scaling_is x : core x =
  rnd (rnd (y_of (r_of x) * bpow radix2 (Ztrunc (n_of x) - -64)) * bpow radix2 (-64)).
Proof. reflexivity. Qed.
Theorem clamp_is x : exp32 x = core (if Rlt_dec x (float2R LEAST_32) then float2R LEAST_32 else x).
Proof. reflexivity. Qed.
End SExp32Definitions.

Module SExp64Definitions.
Import Gappa_library Constants Exp64.
Theorem rounding_is x : n_of x = rnd (rnd (x * L2E + IZR (Fnum SHIFT_64)) - IZR (Fnum SHIFT_64)).
Proof. reflexivity. Qed.
Theorem reduction_is x : r_of x = let n := n_of x in rnd (n * NLO + rnd (n * NHI + x)).
Proof. reflexivity. Qed.
Theorem scaling_is x : core x =
  rnd (rnd (y_of (r_of x) * bpow radix2 (Ztrunc (n_of x) - -600)) * bpow radix2 (-600)).
Proof. reflexivity. Qed.
Theorem clamp_is x : exp64 x = core (if Rlt_dec x (float2R LEAST_64) then float2R LEAST_64 else x).
Proof. reflexivity. Qed.
End SExp64Definitions.
