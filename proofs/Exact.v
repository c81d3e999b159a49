(* SPDX-License-Identifier: MIT *)
(* Exact theory of the online-softmax state (m, l, u), over the real numbers: every bracketing,
   Standard library only.  One coordinate of the value vector; see the end of
   the file for the lifting to vectors. *)
From Coq Require Import Reals Lra List Permutation.
Import ListNotations.
Local Open Scope R_scope.

(* ------------------------------------------------------------------ *)
(* Scores are [option R]; [None] is minus infinity (masked).           *)

Definition omax (a b : option R) : option R :=
  match a, b with
  | None, _ => b
  | _, None => a
  | Some x, Some y => Some (Rmax x y)
  end.

(* e^{a-m}; e^{-inf-m}=0, and the guarded case e^{-inf-(-inf)} is 0 too. *)
Definition w (a m : option R) : R :=
  match a, m with
  | Some x, Some y => exp (x - y)
  | _, _ => 0
  end.

(* e^{a}, with e^{-inf}=0 *)
Definition oexp (a : option R) : R := match a with Some x => exp x | None => 0 end.

Record state := St { sm : option R; sl : R; su : R }.
Definition elt := (option R * R)%type.   (* (score, value) *)

Definition ident : state := St None 0 0.

Definition update (a : state) (e : elt) : state :=
  let (s, v) := e in
  let m := omax (sm a) s in
  St m (w (sm a) m * sl a + w s m) (w (sm a) m * su a + w s m * v).

Definition merge (a b : state) : state :=
  let m := omax (sm a) (sm b) in
  St m (w (sm a) m * sl a + w (sm b) m * sl b)
       (w (sm a) m * su a + w (sm b) m * su b).

Definition singleton (e : elt) : state :=
  let (s, v) := e in St s (w s s) (w s s * v).

(* the direct two-pass computation *)
Fixpoint lmax (L : list elt) : option R :=
  match L with [] => None | (s, _) :: L => omax s (lmax L) end.
Fixpoint wsum (m : option R) (L : list elt) : R :=
  match L with [] => 0 | (s, _) :: L => w s m + wsum m L end.
Fixpoint wvsum (m : option R) (L : list elt) : R :=
  match L with [] => 0 | (s, v) :: L => w s m * v + wvsum m L end.
Definition direct (L : list elt) : state :=
  let m := lmax L in St m (wsum m L) (wvsum m L).

(* plain unshifted sums *)
Fixpoint esum (L : list elt) : R :=
  match L with [] => 0 | (s, _) :: L => oexp s + esum L end.
Fixpoint evsum (L : list elt) : R :=
  match L with [] => 0 | (s, v) :: L => oexp s * v + evsum L end.

(* any bracketing: blocks are computed two-pass, then merged / extended *)
Inductive tree :=
  | Empty
  | Leaf (e : elt)
  | Block (L : list elt)               (* a block, evaluated by two passes *)
  | Upd (t : tree) (e : elt)           (* one streaming step *)
  | Node (t1 t2 : tree).               (* a merge *)

Fixpoint leaves (t : tree) : list elt :=
  match t with
  | Empty => [] | Leaf e => [e] | Block L => L
  | Upd t e => leaves t ++ [e]
  | Node a b => leaves a ++ leaves b
  end.
Fixpoint eval (t : tree) : state :=
  match t with
  | Empty => ident | Leaf e => singleton e | Block L => direct L
  | Upd t e => update (eval t) e
  | Node a b => merge (eval a) (eval b)
  end.

(* ------------------------------------------------------------------ *)
(* The isomorphism with (max,+,+).                                     *)

Definition wf (a : state) := sm a = None -> sl a = 0 /\ su a = 0.

Lemma omax_assoc a b c : omax a (omax b c) = omax (omax a b) c.
Proof. destruct a, b, c; simpl; try reflexivity. now rewrite Rmax_assoc. Qed.
Lemma omax_comm a b : omax a b = omax b a.
Proof. destruct a, b; simpl; try reflexivity. now rewrite Rmax_comm. Qed.
Lemma omax_none_r a : omax a None = a. Proof. now destruct a. Qed.

Lemma oexp_w a m : (m = None -> a = None) -> oexp m * w a m = oexp a.
Proof.
  destruct a as [x|], m as [y|]; simpl; intros H; try lra.
  - rewrite <- exp_plus. f_equal; lra.
  - discriminate (H eq_refl).
Qed.
Lemma oexp_w_l a b : oexp (omax a b) * w a (omax a b) = oexp a.
Proof. apply oexp_w. now destruct a, b. Qed.
Lemma oexp_w_r a b : oexp (omax a b) * w b (omax a b) = oexp b.
Proof. apply oexp_w. now destruct a, b. Qed.

Lemma state_ext a b : wf a -> wf b -> sm a = sm b ->
  oexp (sm a) * sl a = oexp (sm b) * sl b ->
  oexp (sm a) * su a = oexp (sm b) * su b -> a = b.
Proof.
  destruct a as [m l u], b as [m' l' u']; unfold wf; simpl.
  intros Ha Hb <- Hl Hu. destruct m as [x|].
  - simpl in *. pose proof (exp_pos x).
    f_equal; [apply Rmult_eq_reg_l in Hl | apply Rmult_eq_reg_l in Hu]; auto; lra.
  - destruct (Ha eq_refl), (Hb eq_refl). now subst.
Qed.

Lemma merge_wf a b : wf (merge a b).
Proof.
  destruct a as [[x|] l u], b as [[y|] l' u']; unfold wf; simpl; intros H;
    try discriminate; split; lra.
Qed.

Lemma merge_l a b :
  oexp (sm (merge a b)) * sl (merge a b) = oexp (sm a) * sl a + oexp (sm b) * sl b.
Proof.
  unfold merge; cbn [sm sl]. rewrite Rmult_plus_distr_l, <- !Rmult_assoc.
  now rewrite oexp_w_l, oexp_w_r.
Qed.
Lemma merge_u a b :
  oexp (sm (merge a b)) * su (merge a b) = oexp (sm a) * su a + oexp (sm b) * su b.
Proof.
  unfold merge; cbn [sm su]. rewrite Rmult_plus_distr_l, <- !Rmult_assoc.
  now rewrite oexp_w_l, oexp_w_r.
Qed.

(* ------------------------------------------------------------------ *)
(* 1. Monoid laws                                                      *)

Theorem merge_comm a b : merge a b = merge b a.
Proof. unfold merge. rewrite (omax_comm (sm b)). f_equal; ring. Qed.

Theorem merge_assoc a b c : merge a (merge b c) = merge (merge a b) c.
Proof.
  apply state_ext; try apply merge_wf.
  - simpl. apply omax_assoc.
  - rewrite !merge_l. ring.
  - rewrite !merge_u. ring.
Qed.

Theorem merge_id_r a : wf a -> merge a ident = a.
Proof.
  intros H. apply state_ext; auto using merge_wf.
  - simpl. apply omax_none_r.
  - rewrite merge_l. simpl. ring.
  - rewrite merge_u. simpl. ring.
Qed.
Theorem merge_id_l a : wf a -> merge ident a = a.
Proof. rewrite merge_comm. apply merge_id_r. Qed.

(* 2. A streaming step is a merge with a singleton                     *)
Theorem update_is_merge a e : update a e = merge a (singleton e).
Proof.
  destruct e as [s v].
  assert (E : w s s * w s (omax (sm a) s) = w s (omax (sm a) s)
           /\ w s (omax (sm a) s) * w s s = w s (omax (sm a) s)).
  { destruct s as [x|]; simpl; [|split; ring].
    rewrite Rminus_diag_eq, exp_0 by reflexivity. split; ring. }
  destruct E as [E1 E2].
  unfold update, merge, singleton; cbn [sm sl su].
  f_equal; [now rewrite E2 | now rewrite <- Rmult_assoc, E2].
Qed.

(* 3. Masked elements drop out                                         *)
Theorem masked_is_ident v : singleton (None, v) = ident.
Proof. unfold singleton, ident; simpl; f_equal; ring. Qed.
Theorem update_masked a v : wf a -> update a (None, v) = a.
Proof. intros. now rewrite update_is_merge, masked_is_ident, merge_id_r. Qed.

(* ------------------------------------------------------------------ *)
(* 4. The direct two-pass sums                                         *)

Lemma lmax_app A B : lmax (A ++ B) = omax (lmax A) (lmax B).
Proof.
  induction A as [|[s v] A IH]; simpl; auto. now rewrite IH, omax_assoc.
Qed.
Lemma lmax_none L : lmax L = None -> forall e, In e L -> fst e = None.
Proof.
  induction L as [|[s v] L IH]; simpl; [tauto|].
  intros H e [<-|He]; destruct s, (lmax L); try discriminate; auto.
Qed.
Lemma wsum_oexp m L : (m = None -> forall e, In e L -> fst e = None) ->
  oexp m * wsum m L = esum L.
Proof.
  induction L as [|[s v] L IH]; simpl; intros H; [ring|].
  rewrite Rmult_plus_distr_l, IH, oexp_w; auto.
  intros ->. apply (H eq_refl (s, v)); auto.
Qed.
Lemma wvsum_oexp m L : (m = None -> forall e, In e L -> fst e = None) ->
  oexp m * wvsum m L = evsum L.
Proof.
  induction L as [|[s v] L IH]; simpl; intros H; [ring|].
  rewrite Rmult_plus_distr_l, IH, <- Rmult_assoc, oexp_w; auto.
  intros ->. apply (H eq_refl (s, v)); auto.
Qed.

Theorem direct_l L : oexp (sm (direct L)) * sl (direct L) = esum L.
Proof. apply wsum_oexp. apply lmax_none. Qed.
Theorem direct_u L : oexp (sm (direct L)) * su (direct L) = evsum L.
Proof. apply wvsum_oexp. apply lmax_none. Qed.

Lemma w_none a : w a None = 0. Proof. now destruct a. Qed.
Lemma direct_wf L : wf (direct L).
Proof.
  unfold wf, direct; simpl. intros ->.
  split; induction L as [|[s v] L IH]; simpl; auto; rewrite IH, w_none; ring.
Qed.

Lemma esum_app A B : esum (A ++ B) = esum A + esum B.
Proof. induction A as [|[s v] A IH]; simpl; [ring|]. rewrite IH; ring. Qed.
Lemma evsum_app A B : evsum (A ++ B) = evsum A + evsum B.
Proof. induction A as [|[s v] A IH]; simpl; [ring|]. rewrite IH; ring. Qed.

Theorem direct_app A B : direct (A ++ B) = merge (direct A) (direct B).
Proof.
  apply state_ext; auto using merge_wf, direct_wf.
  - simpl. apply lmax_app.
  - rewrite merge_l, !direct_l. apply esum_app.
  - rewrite merge_u, !direct_u. apply evsum_app.
Qed.
Lemma direct_singleton e : direct [e] = singleton e.
Proof.
  destruct e as [s v]. unfold direct, singleton; simpl.
  rewrite omax_none_r. f_equal; ring.
Qed.

(* 5. MAIN: every bracketing, blocking and split, at once, as an equality
   of states: same max, same l, same u as the two-pass computation.     *)
Theorem eval_direct t : eval t = direct (leaves t).
Proof.
  induction t as [|e|L|t IH e|a IHa b IHb]; simpl.
  - reflexivity.
  - now rewrite direct_singleton.
  - reflexivity.
  - now rewrite direct_app, update_is_merge, IH, direct_singleton.
  - now rewrite direct_app, IHa, IHb.
Qed.

Corollary fold_direct L : fold_left update L ident = direct L.
Proof.
  assert (H : forall P, fold_left update L (direct P) = direct (P ++ L)).
  { induction L as [|e L IH]; intros P; simpl; [now rewrite app_nil_r|].
    rewrite update_is_merge, <- direct_singleton, <- direct_app, IH.
    now rewrite <- app_assoc. }
  apply (H []).
Qed.

Corollary eval_sums t :
  oexp (sm (eval t)) * sl (eval t) = esum (leaves t) /\
  oexp (sm (eval t)) * su (eval t) = evsum (leaves t).
Proof. rewrite eval_direct. split; [apply direct_l|apply direct_u]. Qed.

(* 6. Order does not matter                                             *)
Theorem direct_perm A B : Permutation A B -> direct A = direct B.
Proof.
  intros H.
  assert (E : lmax A = lmax B /\ esum A = esum B /\ evsum A = evsum B).
  { induction H as [|[s v] A B H IH|[s v] [s' v'] A|A B C H1 IH1 H2 IH2]; simpl.
    - auto.
    - destruct IH as (-> & -> & ->); auto.
    - repeat split; [|ring|ring]. rewrite !omax_assoc, (omax_comm s); auto.
    - destruct IH1 as (-> & -> & ->), IH2 as (-> & -> & ->); auto. }
  destruct E as (E1 & E2 & E3).
  apply state_ext; auto using direct_wf.
  - rewrite !direct_l; auto.
  - rewrite !direct_u; auto.
Qed.

Corollary eval_order_free t t' :
  Permutation (leaves t) (leaves t') -> eval t = eval t'.
Proof. intros. rewrite !eval_direct. now apply direct_perm. Qed.

Lemma direct_cons e L : direct (e :: L) = merge (singleton e) (direct L).
Proof. rewrite <- direct_singleton. apply (direct_app [e] L). Qed.

Corollary masked_drop L :
  direct (filter (fun e => match fst e with None => false | _ => true end) L) = direct L.
Proof.
  induction L as [|[s v] L IH]; auto.
  rewrite direct_cons. destruct s as [x|]; cbn [filter fst].
  - now rewrite direct_cons, IH.
  - rewrite masked_is_ident, merge_id_l; auto using direct_wf.
Qed.

(* ------------------------------------------------------------------ *)
(* 7. The output is the softmax average                                *)

Definition out (a : state) : R := su a / sl a.
Definition softmax_avg (L : list elt) : R := evsum L / esum L.
Definition live (L : list elt) := exists e x, In e L /\ fst e = Some x.

Lemma w_nonneg a m : 0 <= w a m.
Proof. destruct a, m; simpl; try lra. left; apply exp_pos. Qed.
Lemma oexp_nonneg a : 0 <= oexp a.
Proof. destruct a; simpl; try lra. left; apply exp_pos. Qed.
Lemma esum_nonneg L : 0 <= esum L.
Proof.
  induction L as [|[s v] L IH]; simpl; [lra|]. pose proof (oexp_nonneg s); lra.
Qed.
Lemma live_lmax L : live L <-> lmax L <> None.
Proof.
  split.
  - intros (e & x & He & Hx) H. rewrite (lmax_none _ H _ He) in Hx. discriminate.
  - induction L as [|[s v] L IH]; simpl; [tauto|]. destruct s as [x|]; intros H.
    + exists (Some x, v), x. split; simpl; auto.
    + simpl in H. destruct (IH H) as (e & x & He & Hx). exists e, x; split; simpl; auto.
Qed.
Lemma esum_pos L : live L -> 0 < esum L.
Proof.
  intros (e & x & He & Hx). induction L as [|[s v] L IH]; simpl in *; [tauto|].
  pose proof (oexp_nonneg s); pose proof (esum_nonneg L). destruct He as [<-|He].
  - simpl in Hx; subst. simpl. pose proof (exp_pos x). lra.
  - specialize (IH He). lra.
Qed.

Theorem out_softmax t : live (leaves t) -> out (eval t) = softmax_avg (leaves t).
Proof.
  intros H. destruct (eval_sums t) as (Hl & Hu).
  assert (Hm : sm (eval t) <> None) by (rewrite eval_direct; now apply live_lmax).
  unfold out, softmax_avg. rewrite <- Hl, <- Hu.
  pose proof (esum_pos _ H) as HP. rewrite <- Hl in HP.
  destruct (sm (eval t)) as [x|]; [|tauto]. simpl in *.
  pose proof (exp_pos x). field. split; [|lra].
  intros E; rewrite E in HP; lra.
Qed.

Lemma le_div_r a b c : 0 < b -> a * b <= c -> a <= c / b.
Proof.
  intros Hb H. apply (Rmult_le_reg_r b); auto. unfold Rdiv.
  rewrite Rmult_assoc, Rinv_l; lra.
Qed.
Lemma le_div_l a b c : 0 < b -> a <= c * b -> a / b <= c.
Proof.
  intros Hb H. apply (Rmult_le_reg_r b); auto. unfold Rdiv.
  rewrite Rmult_assoc, Rinv_l; lra.
Qed.

(* 8. It lies in the convex hull of the (unmasked) values               *)
Theorem out_hull lo hi t : live (leaves t) ->
  (forall e x, In e (leaves t) -> fst e = Some x -> lo <= snd e <= hi) ->
  lo <= out (eval t) <= hi.
Proof.
  intros HL H. rewrite out_softmax by auto. unfold softmax_avg.
  pose proof (esum_pos _ HL) as HP.
  assert (B : lo * esum (leaves t) <= evsum (leaves t) <= hi * esum (leaves t)).
  { clear HL HP. induction (leaves t) as [|[s v] L IH]; simpl; [lra|].
    assert (lo * oexp s <= oexp s * v <= hi * oexp s).
    { destruct s as [x|]; simpl; [|lra].
      destruct (H (Some x, v) x) as [h1 h2]; simpl in *; auto.
      pose proof (exp_pos x). split; rewrite (Rmult_comm _ (exp x));
        apply Rmult_le_compat_l; lra. }
    destruct IH as [i1 i2]; [|lra].
    intros e x He. apply H. now right. }
  split; [apply le_div_r|apply le_div_l]; lra.
Qed.

(* 9. Shift invariance                                                  *)
Definition oshift c (a : option R) := match a with Some x => Some (x + c) | None => None end.
Definition shift c : list elt -> list elt := map (fun e => (oshift c (fst e), snd e)).

Lemma w_shift c a m : w (oshift c a) (oshift c m) = w a m.
Proof. destruct a, m; simpl; auto. f_equal; ring. Qed.
Lemma omax_shift c a b : omax (oshift c a) (oshift c b) = oshift c (omax a b).
Proof.
  destruct a as [x|], b as [y|]; simpl; auto. f_equal.
  unfold Rmax. destruct (Rle_dec x y), (Rle_dec (x + c) (y + c)); lra.
Qed.
Theorem direct_shift c L :
  direct (shift c L) = St (oshift c (lmax L)) (sl (direct L)) (su (direct L)).
Proof.
  assert (E : lmax (shift c L) = oshift c (lmax L)).
  { induction L as [|[s v] L IH]; simpl; auto. fold (shift c L).
    now rewrite IH, omax_shift. }
  unfold direct; cbn [sm sl su]. rewrite E. generalize (lmax L); intros m.
  f_equal; clear E; induction L as [|[s v] L IH]; simpl; auto; fold (shift c L);
    now rewrite IH, w_shift.
Qed.
Corollary out_shift c L : out (direct (shift c L)) = out (direct L).
Proof. now rewrite direct_shift. Qed.

(* 10. l is between 1 and the number of unmasked elements; |u| <= l max|v|:
   no division by zero, and no overflow unless n or the values are huge  *)
Lemma omax_ge_l x b : exists y, omax (Some x) b = Some y /\ x <= y.
Proof. destruct b as [y|]; simpl; eexists; split; eauto; [apply Rmax_l|lra]. Qed.
Lemma lmax_ub L : forall e x, In e L -> fst e = Some x -> exists y, lmax L = Some y /\ x <= y.
Proof.
  induction L as [|[s v] L IH]; simpl; [tauto|].
  intros e x [<-|He] Hx.
  - simpl in Hx; subst. apply omax_ge_l.
  - destruct (IH _ _ He Hx) as (y & -> & Hy).
    destruct s as [z|]; simpl; eexists; split; eauto.
    eapply Rle_trans; [exact Hy|apply Rmax_r].
Qed.
Lemma lmax_attained L y : lmax L = Some y -> exists e, In e L /\ fst e = Some y.
Proof.
  revert y; induction L as [|[s v] L IH]; simpl; [discriminate|]. intros y.
  destruct s as [z|], (lmax L) as [y'|]; simpl; intros E; inversion E; subst.
  - destruct (Rle_dec z y').
    + rewrite Rmax_right in * by auto. destruct (IH y' eq_refl) as (e & He & Hx).
      exists e; auto.
    + rewrite Rmax_left in * by lra. eexists; split; [left; reflexivity|reflexivity].
  - eexists; split; [left; reflexivity|reflexivity].
  - destruct (IH y eq_refl) as (e & He & Hx). exists e; auto.
Qed.
Lemma wsum_nonneg m L : 0 <= wsum m L.
Proof. induction L as [|[s v] L IH]; simpl; [lra|]. pose proof (w_nonneg s m); lra. Qed.
Lemma wsum_ge m L e : In e L -> w (fst e) m <= wsum m L.
Proof.
  induction L as [|[s v] L IH]; simpl; [tauto|]. pose proof (wsum_nonneg m L).
  pose proof (w_nonneg s m). intros [<-|He]; simpl; [lra|]. specialize (IH He); lra.
Qed.

Theorem l_bounds t : live (leaves t) ->
  1 <= sl (eval t) <= INR (length (leaves t)).
Proof.
  intros HL. rewrite eval_direct. generalize dependent (leaves t); intros L HL.
  apply live_lmax in HL. unfold direct; cbn [sl].
  destruct (lmax L) as [y|] eqn:E; [|tauto]. clear HL. split.
  - destruct (lmax_attained _ _ E) as (e & He & Hx).
    eapply Rle_trans; [|apply (wsum_ge _ _ _ He)]. rewrite Hx; simpl.
    rewrite Rminus_diag_eq, exp_0; lra.
  - assert (H : forall e, In e L -> w (fst e) (Some y) <= 1).
    { intros [s v] He. destruct s as [x|]; simpl; [|lra].
      destruct (lmax_ub L _ x He eq_refl) as (y' & E' & Hy).
      rewrite E in E'; injection E' as <-. rewrite <- exp_0.
      destruct Hy as [Hy| ->]; [left; apply exp_increasing; lra|].
      right; f_equal; ring. }
    clear E. induction L as [|[s v] L IH]; [simpl; lra|].
    change (length ((s, v) :: L)) with (S (length L)). rewrite S_INR. cbn [wsum].
    pose proof (H (s, v) (or_introl eq_refl)) as H1; simpl in H1.
    assert (wsum (Some y) L <= INR (length L)) by (apply IH; intros; apply H; now right).
    lra.
Qed.

Theorem u_bound t V : (forall e x, In e (leaves t) -> fst e = Some x -> Rabs (snd e) <= V) ->
  Rabs (su (eval t)) <= sl (eval t) * V.
Proof.
  rewrite eval_direct. generalize (leaves t); intros L H.
  unfold direct; cbn [sl su]. generalize (lmax L); intros m.
  induction L as [|[s v] L IH]; simpl; [rewrite Rabs_R0; lra|].
  eapply Rle_trans; [apply Rabs_triang|].
  rewrite Rmult_plus_distr_r, Rabs_mult, (Rabs_pos_eq (w s m)) by apply w_nonneg.
  apply Rplus_le_compat.
  - destruct s as [x|]; [|simpl; destruct m; lra].
    apply Rmult_le_compat_l; [apply w_nonneg|]. apply (H (Some x, v) x); simpl; auto.
  - apply IH. intros; eapply H; eauto. now right.
Qed.

(* ------------------------------------------------------------------ *)
(* 11. Any reference point, not only the running max (lazy rescaling,
   stale max, power-of-two reference): rescaling a state to reference r
   changes neither e^m l nor e^m u, so the output is the same.           *)
Definition rescale (r : R) (a : state) : state :=
  St (Some r) (w (sm a) (Some r) * sl a) (w (sm a) (Some r) * su a).
Definition merge_ref (r : R) (a b : state) : state :=
  St (Some r) (w (sm a) (Some r) * sl a + w (sm b) (Some r) * sl b)
              (w (sm a) (Some r) * su a + w (sm b) (Some r) * su b).
Theorem merge_ref_spec r a b : merge_ref r a b = rescale r (merge a b).
Proof.
  apply state_ext; try (intros ?; discriminate).
  - reflexivity.
  - transitivity (oexp (sm (merge a b)) * sl (merge a b)).
    + rewrite merge_l. unfold merge_ref; cbn [sm sl].
      rewrite Rmult_plus_distr_l, <- !Rmult_assoc.
      now rewrite !oexp_w by discriminate.
    + unfold rescale; cbn [sm sl]. rewrite <- !Rmult_assoc.
      now rewrite (oexp_w (sm (merge a b)) (Some r)) by discriminate.
  - transitivity (oexp (sm (merge a b)) * su (merge a b)).
    + rewrite merge_u. unfold merge_ref; cbn [sm su].
      rewrite Rmult_plus_distr_l, <- !Rmult_assoc.
      now rewrite !oexp_w by discriminate.
    + unfold rescale; cbn [sm su]. rewrite <- !Rmult_assoc.
      now rewrite (oexp_w (sm (merge a b)) (Some r)) by discriminate.
Qed.
Theorem out_rescale r a : sm a <> None -> sl a <> 0 -> out (rescale r a) = out a.
Proof.
  destruct a as [[x|] l u]; [intros _|tauto]. unfold out; simpl. intros Hl.
  pose proof (exp_pos (x - r)). field. lra.
Qed.

(* 12. The (output, log-sum-exp) form that flash-decoding merges         *)
Definition lse (a : state) : R := match sm a with Some x => x + ln (sl a) | None => 0 end.
Lemma exp_lse a : sm a <> None -> 0 < sl a -> exp (lse a) = oexp (sm a) * sl a.
Proof.
  destruct a as [[x|] l u]; [intros _|tauto]. unfold lse; simpl. intros.
  now rewrite exp_plus, exp_ln.
Qed.
Lemma oexp_pos_some a x : a = Some x -> 0 < oexp a.
Proof. intros ->. simpl. apply exp_pos. Qed.
Theorem merge_lse a b x y : sm a = Some x -> sm b = Some y -> 0 < sl a -> 0 < sl b ->
  lse (merge a b) = ln (exp (lse a) + exp (lse b)) /\
  out (merge a b) = exp (lse a - lse (merge a b)) * out a
                  + exp (lse b - lse (merge a b)) * out b.
Proof.
  intros Ha Hb La Lb.
  assert (Na : sm a <> None) by congruence. assert (Nb : sm b <> None) by congruence.
  assert (Hm : sm (merge a b) = Some (Rmax x y)) by (simpl; now rewrite Ha, Hb).
  assert (Nm : sm (merge a b) <> None) by congruence.
  pose proof (oexp_pos_some _ _ Ha) as Pa. pose proof (oexp_pos_some _ _ Hb) as Pb.
  pose proof (oexp_pos_some _ _ Hm) as Pm.
  pose proof (merge_l a b) as Hl. pose proof (merge_u a b) as Hu.
  pose proof (Rmult_lt_0_compat _ _ Pa La) as Qa.
  pose proof (Rmult_lt_0_compat _ _ Pb Lb) as Qb.
  assert (Lm : 0 < sl (merge a b)).
  { apply (Rmult_lt_reg_l (oexp (sm (merge a b)))); auto. rewrite Hl, Rmult_0_r. lra. }
  assert (Em : exp (lse (merge a b)) = exp (lse a) + exp (lse b)).
  { rewrite !exp_lse by auto. exact Hl. }
  split.
  - rewrite <- Em. now rewrite ln_exp.
  - unfold Rminus. rewrite !exp_plus, !exp_Ropp, Em, !exp_lse by auto. unfold out.
    assert (Q : su (merge a b) / sl (merge a b)
      = (oexp (sm (merge a b)) * su (merge a b)) / (oexp (sm (merge a b)) * sl (merge a b))).
    { field. split; lra. }
    rewrite Q, Hl, Hu. field. repeat split; lra.
Qed.

(* ------------------------------------------------------------------ *)
(* 13. Vectors: the same m and l, u coordinatewise.  No axiom of
   functional extensionality is used by these: coordinate k of the vector
   computation IS the scalar computation on coordinate k.               *)
Record vstate := VSt { vm : option R; vl : R; vu : nat -> R }.
Definition velt := (option R * (nat -> R))%type.
Definition proj (k : nat) (a : vstate) : state := St (vm a) (vl a) (vu a k).
Definition eproj (k : nat) (e : velt) : elt := (fst e, snd e k).
Definition vident : vstate := VSt None 0 (fun _ => 0).
Definition vupdate (a : vstate) (e : velt) : vstate :=
  let m := omax (vm a) (fst e) in
  VSt m (w (vm a) m * vl a + w (fst e) m)
        (fun k => w (vm a) m * vu a k + w (fst e) m * snd e k).
Definition vmerge (a b : vstate) : vstate :=
  let m := omax (vm a) (vm b) in
  VSt m (w (vm a) m * vl a + w (vm b) m * vl b)
        (fun k => w (vm a) m * vu a k + w (vm b) m * vu b k).
Theorem proj_vmerge k a b : proj k (vmerge a b) = merge (proj k a) (proj k b).
Proof. reflexivity. Qed.
Theorem proj_vupdate k a e : proj k (vupdate a e) = update (proj k a) (eproj k e).
Proof. destruct e; reflexivity. Qed.
Theorem proj_fold k L :
  proj k (fold_left vupdate L vident) = direct (map (eproj k) L).
Proof.
  rewrite <- fold_direct. change ident with (proj k vident).
  generalize vident; induction L as [|e L IH]; intros a; simpl; auto.
  now rewrite IH, proj_vupdate.
Qed.
