;; The clock, as a policy that is read from a file: the oldest page leaves, unless it was used
;; since it was last looked at. docs/formats/policy-module-v1.md describes the functions.
(module
  (import "tidemark" "may_leave" (func $may_leave (param i32) (result i32)))
  (import "tidemark" "take_referenced" (func $take_referenced (param i32) (result i32)))

  ;; Eight bytes a frame: the next and the previous frame on a ring, whose head is the frame after
  ;; the last. The first 256 bytes hold the texts.
  (memory (export "memory") 1)
  (data (i32.const 16) "the clock, from a file: oldest first, with a second chance\00")
  (data (i32.const 128) "Corbat\c3\b3 1968, \"A paging experiment with the Multics system\"\00")
  (global $head (mut i32) (i32.const 0))
  (global $count (mut i32) (i32.const 0))

  (func (export "tidemark_policy_v1") (result i32) (i32.const 1)) ;; sees bits
  (func (export "summary") (result i32) (i32.const 16))
  (func (export "lineage") (result i32) (i32.const 128))

  (func $at (param $frame i32) (result i32)
    (i32.add (i32.const 256) (i32.shl (local.get $frame) (i32.const 3))))

  (func (export "start") (param $frames_max i32) (param $frames i32) (param $seed i64)
    (local $bytes i32)
    (global.set $head (local.get $frames_max))
    (local.set $bytes (call $at (i32.add (local.get $frames_max) (i32.const 1))))
    ;; The first page of memory is there.
    (if (i32.eq (i32.const -1)
          (memory.grow (i32.shr_u (local.get $bytes) (i32.const 16))))
      (then unreachable))
    (i32.store (call $at (global.get $head)) (global.get $head))
    (i32.store offset=4 (call $at (global.get $head)) (global.get $head)))

  ;; Puts a frame that is on no ring to the end: before the head.
  (func $push (param $frame i32)
    (local $last i32)
    (local.set $last (i32.load offset=4 (call $at (global.get $head))))
    (i32.store (call $at (local.get $frame)) (global.get $head))
    (i32.store offset=4 (call $at (local.get $frame)) (local.get $last))
    (i32.store (call $at (local.get $last)) (local.get $frame))
    (i32.store offset=4 (call $at (global.get $head)) (local.get $frame)))

  (func $take (param $frame i32)
    (local $next i32)
    (local $previous i32)
    (local.set $next (i32.load (call $at (local.get $frame))))
    (local.set $previous (i32.load offset=4 (call $at (local.get $frame))))
    (i32.store (call $at (local.get $previous)) (local.get $next))
    (i32.store offset=4 (call $at (local.get $next)) (local.get $previous)))

  (func (export "page_entered")
    (param $frame i32) (param $object i32) (param $index i64)
    (param $cause i32) (param $space i32) (param $is_external i32)
    (call $push (local.get $frame))
    (global.set $count (i32.add (global.get $count) (i32.const 1))))

  (func (export "page_left")
    (param $frame i32) (param $object i32) (param $index i64) (param $departure i32)
    (call $take (local.get $frame))
    (global.set $count (i32.sub (global.get $count) (i32.const 1))))

  ;; One round clears every bit, so that the second finds a page if any may leave.
  (func (export "choose") (result i32)
    (local $frame i32)
    (local $left i32)
    (local.set $left (i32.shl (global.get $count) (i32.const 1)))
    (block $none
      (loop $again
        (br_if $none (i32.eqz (local.get $left)))
        (local.set $left (i32.sub (local.get $left) (i32.const 1)))
        (local.set $frame (i32.load (call $at (global.get $head))))
        (if (call $may_leave (local.get $frame))
          (then
            (if (i32.eqz (call $take_referenced (local.get $frame)))
              (then (return (local.get $frame))))))
        (call $take (local.get $frame))
        (call $push (local.get $frame))
        (br $again)))
    (i32.const -1)))
