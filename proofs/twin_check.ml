(* Repeats every operand set of twin.c over Flocq's numbers: the same bits, or a line that says where.
   SPDX-License-Identifier: MIT *)
open Twin

let rec positive n =
  if n = 1L then XH
  else
    let rest = positive (Int64.shift_right_logical n 1) in
    if Int64.logand n 1L = 1L then XI rest else XO rest

let z n = if n = 0L then Z0 else Zpos (positive n)

let rec of_positive = function
  | XH -> 1L
  | XO p -> Int64.shift_left (of_positive p) 1
  | XI p -> Int64.logor (Int64.shift_left (of_positive p) 1) 1L

let of_z = function Z0 -> 0L | Zpos p -> of_positive p | Zneg _ -> -1L

let results number bits exp push take merge finish op x =
  let x i = number (z x.(i)) in
  let row ((m, l), u) = [| of_z (bits m); of_z (bits l); of_z (bits u) |] in
  let one y = [| of_z (bits y); 0L; 0L |] in
  let mine () = ((x 0, x 1), x 2) in
  match op with
  | 0L -> one (exp (x 0))
  | 1L -> row (push (mine ()) (x 3) (x 4))
  | 2L -> row (take (mine ()) (x 3) (x 4) (x 5) (x 6))
  | 3L -> row (merge (mine ()) ((x 3, x 4), x 5))
  | _ -> one (finish (mine ()))

let () =
  let repeat =
    if Sys.argv.(1) = "32" then results of_bits32 bits32 exp32 push32 take32 merge32 finish32
    else results of_bits64 bits64 exp64 push64 take64 merge64 finish64
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
