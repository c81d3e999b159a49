(* Repeats every operand set of twin.c over Flocq's numbers: the same bits, or a line that says where.
   SPDX-License-Identifier: MIT *)
open Big_int_Z

(* Words hold numbers from 0 to 2^64 - 1; Flocq's bits of any NaN are -1. *)
let word_count = power_int_positive_int 2 64
let of_word n =
  let z = big_int_of_int64 n in
  if Int64.compare n 0L < 0 then add_big_int z word_count else z

let to_word z =
  let half = power_int_positive_int 2 63 in
  int64_of_big_int (if ge_big_int z half then sub_big_int z word_count else z)

let results number bits exp push take merge finish op x =
  let x i = number (of_word x.(i)) in
  let row ((m, l), u) = [| to_word (bits m); to_word (bits l); to_word (bits u) |] in
  let one y = [| to_word (bits y); 0L; 0L |] in
  let mine () = ((x 0, x 1), x 2) in
  match op with
  | 0L -> one (exp (x 0))
  | 1L -> row (push (mine ()) (x 3) (x 4))
  | 2L -> row (take (mine ()) (x 3) (x 4) (x 5) (x 6))
  | 3L -> row (merge (mine ()) ((x 3, x 4), x 5))
  | _ -> one (finish (mine ()))

let () =
  let repeat =
    if Sys.argv.(1) = "32" then Twin.(results of_bits32 bits32 exp32 push32 take32 merge32 finish32)
    else Twin.(results of_bits64 bits64 exp64 push64 take64 merge64 finish64)
  in
  let buffer = Bytes.create 88 and sets = ref 0 and wrong = ref 0 in
  (try
     while true do
       really_input stdin buffer 0 88;
       let word i = Bytes.get_int64_le buffer (8 * i) in
       let ours = repeat (word 0) (Array.init 7 (fun i -> word (1 + i))) in
       let theirs = Array.init 3 (fun i -> word (8 + i)) in
       incr sets;
       if ours <> theirs then begin
         incr wrong;
         if !wrong <= 5 then begin
           Printf.printf "operation %Ld on" (word 0);
           for i = 1 to 7 do Printf.printf " %Lx" (word i) done;
           Printf.printf ": C";
           Array.iter (Printf.printf " %Lx") theirs;
           Printf.printf ", Flocq";
           Array.iter (Printf.printf " %Lx") ours;
           print_newline ()
         end
       end
     done
   with End_of_file -> ());
  Printf.printf "%d sets, %d differ\n" !sets !wrong;
  exit (if !wrong = 0 then 0 else 1)
