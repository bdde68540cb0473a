// The life of collectives among participants that meet in shared memory. docs/engine.md explains it, scripts/model.sh runs
// it. Memory is sequentially consistent. What the engine keeps is named as there; what only the model keeps, to see errors,
// is called ghost.
//
// A step is one access to shared memory, with whatever the participant does by itself before the next. Where a step looks
// at all participants at once, what it looks for stays true once it is (stamps and counters only grow), so that looking at
// one after the other ends at the same moment. Bodies call and wait in any order that they could; when the last one is out,
// everything starts over from the first state, so the finite model covers any number of launches.
//
// Given with -D:
//   PARTICIPANTS  2 or 3
//   CALLS         operations in a launch, numbered from 1; bit s - 1 of DIRECT: operation s moves data directly
//   SLICES        of each region
//   ABORTS        1: bodies may throw at any time
//   LEAVES        1: bodies may return before their last call
//   DEADLINES     1: any wait may take too long (somebody can always go on then, so deadlocks show without only)
//   OUTSIDER      1: somebody who is no participant may abort the group at any time
//   TESTS         1: operations may be polled
//   TEXTS         1: texts of errors are read from the posts
//   MISMATCH      the operation in which the call of participant 0 differs, 0 for none
//   SLEEPS        1: who waits sleeps until somebody wakes all
//   SMALL         1: operations are so small that nobody looks at the others' regions unless somebody sleeps, or for long
//   FAULT         one of the seeded faults

#ifndef PARTICIPANTS
#define PARTICIPANTS 3
#endif
#ifndef CALLS
#define CALLS 3
#endif
#ifndef SLICES
#define SLICES 1
#endif
#ifndef DIRECT
#define DIRECT 0
#endif
#ifndef ABORTS
#define ABORTS 0
#endif
#ifndef LEAVES
#define LEAVES 0
#endif
#ifndef DEADLINES
#define DEADLINES 0
#endif
#ifndef OUTSIDER
#define OUTSIDER 0
#endif
#ifndef TESTS
#define TESTS 0
#endif
#ifndef TEXTS
#define TEXTS 0
#endif
#ifndef MISMATCH
#define MISMATCH 0
#endif
#ifndef SLEEPS
#define SLEEPS 0
#endif
#ifndef SMALL
#define SMALL 0
#endif
#ifndef FAULT
#define FAULT 0
#endif

// The faults.
#define NO_LOOK_AT_FAILED 1     // moving is announced, but nobody looks whether the group has failed
#define LOOK_THEN_ANNOUNCE 2    // or looks first and announces then
#define NO_WAIT_FOR_POST 3      // a post is written while others may still read what it held
#define CLAIMED_IS_DONE 4       // an operation counts as complete once everything is claimed
#define NO_QUIET 5              // a body ends with an exception while others may still move
#define QUIET_THEN_FAIL 6       // or looks for movers before it fails the group
#define CLAIM_IN_TWO_STEPS 7    // a slice is claimed by a load and a store
#define CLAIM_AGAIN 8           // each poll of an operation claims once more
#define STAMP_FIRST 9           // the stamp is stored before the post is written
#define FINISHED_FIRST 10       // a participant says that it has finished before it has read the payloads
#define NO_COMPARISON 11        // fingerprints are not compared
#define STAMP_THEN_LEFT 12      // whether a participant has arrived is looked at before whether it has left
#define DEAF_TO_LEFT 13         // those who have left are waited for
#define DEAF_TO_FAILED 14       // who waits for a free post does not look whether the group has failed
#define LEAVE_IN_FLIGHT 15      // a body returns with operations in flight, and that counts as having left
#define DECIDE_EARLY 16         // an operation that is not done counts as failed while others may still move
#define TEXT_THEN_FAIL 17       // the text of a failure is read from the posts before the group fails
#define EARLY_RESET 18          // the group is reset when the first is out of it
#define SLEEP_WITHOUT_LOOK 19   // who is about to sleep announces it, but does not look once more
#define STAMP_WITHOUT_WAKE 20   // who arrives last wakes nobody
#define STOP_WITHOUT_WAKE 21    // who stops to move wakes nobody who waits for quiet
#define DONE_WITHOUT_WAKE 22    // who has done the last slice wakes nobody
#define SLEEP_FOR_A_POST 23     // who waits for a free post sleeps, though those who finish wake nobody
#define HELP_NOBODY 24          // who has woken nobody for a small operation leaves the regions of sleepers to them
#define NO_VERDICT 25           // after a failure, everyone decides by itself whether all have arrived at an operation

// Operations that a participant can have in flight. The engine has more; two are enough to use each again.
#define POSTS 2

#if PARTICIPANTS == 3
#define ALL(what) (what(0) && what(1) && what(2))
#define ANY(what) (what(0) || what(1) || what(2))
#else
#define ALL(what) (what(0) && what(1))
#define ANY(what) (what(0) || what(1))
#endif

bool failed;
bool is_mismatch;  // why
byte condemned;    // the first operation that has failed as not all had arrived; 0 for none

// Of each participant.
bool has_left[PARTICIPANTS];
bool moving[PARTICIPANTS];
bool asleep[PARTICIPANTS];
byte finished[PARTICIPANTS];

typedef Post {
  byte stamp;    // the operation that its writer has arrived at
  bool differs;  // the fingerprint
  byte claimed;  // slices of the writer's region
  byte done;
  byte holds;    // ghost: the operation whose call lies in it
  byte carried;  // ghost: the slices that somebody began to carry out, as bits
};
typedef Ring { Post post[POSTS] };
Ring ring[PARTICIPANTS];

// Ghosts, of each participant.
byte reads[PARTICIPANTS];       // the operation whose posts it reads
byte touches[PARTICIPANTS];     // the operation for which it reads and writes others' memory
byte gave_up[PARTICIPANTS];     // the operation that it found failed
bool gone[PARTICIPANTS];        // its body has ended, and its memory with it
bool mismatched[PARTICIPANTS];  // it has seen a mismatch, or a group that had failed for one
bool out[PARTICIPANTS];         // whoever launched it has it back

// Of operation s. Our own rank is _pid.
#define POST(q) ring[q].post[s % POSTS]
#define IS_DIRECT ((DIRECT >> (s - 1)) & 1)

#define HAS_ARRIVED(q) (POST(q).stamp >= s)
#define HAS_LEFT(q) (has_left[q])
#define WILL_NOT_COME(q) (has_left[q] && !HAS_ARRIVED(q))
#define HAS_FREED(q) (finished[q] + POSTS >= s)
#define IS_ALIKE(q) (POST(q).differs == POST(_pid).differs)
#define IS_ASLEEP(q) (asleep[q])
#if FAULT == CLAIMED_IS_DONE
#define IS_DONE(q) (POST(q).claimed >= SLICES)
#else
#define IS_DONE(q) (POST(q).done == SLICES)
#endif

#define MET ALL(HAS_ARRIVED)
#define COMPLETE ALL(IS_DONE)
#define LAST(q) ((ring[q].post[0].stamp > ring[q].post[1].stamp) -> ring[q].post[0].stamp : ring[q].post[1].stamp)

// Properties, of operation s.
#define HOLDS(q) (POST(q).holds == s)
#define IS_NOT_READ_BY(q) (reads[q] == 0 || reads[q] + POSTS != s)
#define MAY_BE_TOUCHED(q) (!gone[q] && finished[q] < s && HOLDS(q))
#define DOES_NOT_TOUCH(q) (touches[q] != s)
#define TOUCHES_NOTHING(q) (touches[q] == 0)
#define WAS_CARRIED(q) (POST(q).carried == (1 << SLICES) - 1)
#define HAS_NOT_GIVEN_UP(q) (gave_up[q] != s)
#define HAS_NOT_COMPLETED(q) (finished[q] < s)
#define IS_OUT(q) (out[q])
#define SAW_MISMATCH(q) (mismatched[q])
#define HAS_COMPLETED_ALL(q) (finished[q] == CALLS)
#define IS_EVEN(q) (finished[q] == finished[0])

#define CHECK(property, text) if :: (property) :: else -> printf(text); assert(false) fi

// An event count. Who found nothing announces that it will sleep, looks once more, and sleeps until somebody wakes all.
// Announcing and looking are one step here: whoever changes something between them finds the sleeper.
inline wake_all_if(condition) {
#if SLEEPS
  if
  :: ANY(IS_ASLEEP) ->
    atomic {
      if
      :: (condition) -> asleep[0] = 0; asleep[1] = 0; asleep[PARTICIPANTS - 1] = 0
      :: else
      fi
    }
  :: else
  fi
#else
  skip
#endif
}

inline fail_group(mismatch) {
  if
  :: failed
  :: atomic { !failed -> failed = 1; is_mismatch = mismatch };
    wake_all_if(true)
  fi
}

inline write_post() {
  CHECK(ALL(IS_NOT_READ_BY), "VIOLATED: a post is written while somebody reads it\n");
  POST(_pid).holds = s;
  POST(_pid).differs = (MISMATCH == s && _pid == 0);
  POST(_pid).claimed = 0;
  POST(_pid).done = 0;
  POST(_pid).carried = 0;
  printf("%d writes its post of %d\n", _pid, s)
}

inline store_stamp() {
  POST(_pid).stamp = s;
  begun = s;
  printf("%d arrives at %d\n", _pid, s)
}

// `slice`, of region i.
inline begin_to_carry_out() {
  CHECK(ALL(MAY_BE_TOUCHED), "VIOLATED: memory is touched that is not in the operation any more\n");
  CHECK(ALL(IS_ALIKE), "VIOLATED: data moves though the calls differ\n");
  CHECK(!((POST(i).carried >> slice) & 1), "VIOLATED: a slice is carried out twice\n");
  POST(i).carried = POST(i).carried | (1 << slice);
  touches[_pid] = s;
  printf("%d claims slice %d of region %d in %d\n", _pid, slice, i, s)
}

inline complete() {
  CHECK(ALL(DOES_NOT_TOUCH), "VIOLATED: an operation ends while memory of it is touched\n");
  CHECK(!IS_DIRECT || ALL(WAS_CARRIED), "VIOLATED: an operation ends with a slice left over\n");
  CHECK(ALL(IS_ALIKE), "VIOLATED: an operation ends well though the calls differ\n");
  CHECK(ALL(HAS_NOT_GIVEN_UP), "VIOLATED: an operation ends well for some and fails for others\n");
  finished[_pid] = s;
  reads[_pid] = 0;
  moved = 0; helped = 0;
  printf("%d completes %d\n", _pid, s)
}

// Finds operation s failed.
inline give_up() {
  CHECK(ALL(HAS_NOT_COMPLETED), "VIOLATED: an operation ends well for some and fails for others\n");
  gave_up[_pid] = s;
  printf("%d finds that %d has failed\n", _pid, s)
}

// The text of an error tells where the others are, from the last post of each: of one of them here.
inline read_last_post() {
#if TEXTS
  if
  :: i = 0
  :: i = 1
  :: i = PARTICIPANTS - 1
  fi;
  slice = LAST(i);
  atomic {
    CHECK(slice == 0 || ring[i].post[slice % POSTS].holds == slice, "VIOLATED: a text is read from a post that is written\n");
    i = 0;
    slice = 0
  }
#else
  skip
#endif
}

inline end_body() {
  CHECK(ALL(TOUCHES_NOTHING) || finished[_pid] == begun, "VIOLATED: a body ends while its memory is touched\n");
  gone[_pid] = 1;
  reads[_pid] = 0
}

inline clear(q) {
  has_left[q] = 0; moving[q] = 0; asleep[q] = 0; finished[q] = 0;
  gave_up[q] = 0; gone[q] = 0; mismatched[q] = 0; out[q] = 0;
  for (i : 0 .. POSTS - 1) {
    ring[q].post[i].stamp = 0; ring[q].post[i].differs = 0; ring[q].post[i].claimed = 0; ring[q].post[i].done = 0;
    ring[q].post[i].holds = 0; ring[q].post[i].carried = 0
  }
}

active [PARTICIPANTS] proctype participant() {
  byte begun;    // the last operation it has begun; those it has not finished are in flight
  byte s;        // the operation that it is at
  bool waits;    // in a call that returns when everything begun is complete
  bool moved;    // it has found everything claimed in the oldest operation in flight
  bool helped;   // and has looked at the regions of others
  byte i;
  byte slice;

// Between calls.
body:
  atomic {
    s = 0;
    waits = 0;
    if
    // With all posts in flight, a call completes the oldest operation first; so does a body that waits for it.
    :: begun < CALLS && begun < finished[_pid] + POSTS -> s = begun + 1; goto begin
    :: finished[_pid] < begun -> goto carry_on
    :: (begun == CALLS || LEAVES) && (begun == finished[_pid] || FAULT == LEAVE_IN_FLIGHT) -> goto leave
    :: ABORTS -> goto throw
    fi
  }

begin:
  atomic {
    if
    :: failed -> goto refused
    :: else
    fi
  }
await_post:
  atomic {
    if
#if FAULT == NO_WAIT_FOR_POST
    :: true
#else
    :: ALL(HAS_FREED)
#endif
#if FAULT != DEAF_TO_FAILED
    :: failed -> printf("%d finds the group failed\n", _pid); goto failure
#endif
#if DEADLINES
    :: printf("%d has waited for too long\n", _pid) -> goto time_out
#endif
#if FAULT == SLEEP_FOR_A_POST
    :: else -> asleep[_pid] = 1; printf("%d sleeps\n", _pid); !asleep[_pid]; goto await_post
#endif
    fi;
#if FAULT == STAMP_FIRST
    store_stamp()
  }
  atomic { write_post() }
#else
    write_post()
  }
  atomic { store_stamp() }
#endif
#if SLEEPS
  // Who waits now wakes the others only if it will not do all the work alone.
  if
  :: waits = 1
  :: waits = 0
  fi;
  if
  :: waits && IS_DIRECT
  :: else ->
#if FAULT == STAMP_WITHOUT_WAKE
    skip
#else
    wake_all_if(MET)
#endif
  fi;
  if
  :: waits -> goto carry_on
  :: else -> goto body
  fi;
#else
  goto body;
#endif

// The oldest operation in flight.
carry_on:
  atomic {
    s = finished[_pid] + 1;
    if
    :: moved && FAULT != CLAIM_AGAIN -> goto await_done
    :: else
    fi;
    if
    :: MET -> goto look_at_failed
    :: failed && !MET -> goto verdict
#if FAULT == STAMP_THEN_LEFT
    :: !HAS_ARRIVED(0) -> i = 0; goto look_at_left
    :: !HAS_ARRIVED(1) -> i = 1; goto look_at_left
    :: !HAS_ARRIVED(PARTICIPANTS - 1) -> i = PARTICIPANTS - 1; goto look_at_left
#elif FAULT != DEAF_TO_LEFT
    :: !failed && ANY(WILL_NOT_COME) -> printf("%d finds that somebody left before %d\n", _pid, s); goto fail
#endif
#if DEADLINES
    :: printf("%d has waited for too long\n", _pid) -> goto time_out
#endif
#if TESTS
    :: goto body
#endif
#if SLEEPS && FAULT == SLEEP_WITHOUT_LOOK
    :: else -> goto sleep
#elif SLEEPS
    :: else -> asleep[_pid] = 1; printf("%d sleeps\n", _pid); goto sleep
#endif
    fi
  }

// Who sees everyone before the failure is right; afterwards somebody may have found that not all had come, and gone.
look_at_failed:
  atomic {
    if
    :: failed && FAULT != NO_VERDICT -> goto verdict
    :: else -> goto met
    fi
  }

// Under a lock. Who failed the group for a mismatch had seen everyone arrive, so all do.
verdict:
  atomic {
    if
    :: condemned && condemned <= s -> give_up(); goto failure
    :: !(condemned && condemned <= s) && MET -> goto met
    :: !(condemned && condemned <= s) && !MET ->
      if
      :: FAULT != NO_VERDICT -> condemned = s
      :: else
      fi;
      give_up();
      goto failure
    fi
  }

met:
  atomic {
    CHECK(ALL(HOLDS), "VIOLATED: a post is read that holds another operation\n");
    reads[_pid] = s;
    printf("%d finds everyone at %d\n", _pid, s);
#if FAULT != NO_COMPARISON
    if
    :: ALL(IS_ALIKE)
    :: else -> mismatched[_pid] = 1; printf("%d finds a mismatch in %d\n", _pid, s); goto mismatch
    fi;
#endif
    if
    :: IS_DIRECT -> goto work
    :: else
    fi
  }

// Payloads are copied out of the posts; nobody's own memory is touched.
#if FAULT == FINISHED_FIRST
  finished[_pid] = s;
#endif
  atomic {
    CHECK(ALL(HOLDS), "VIOLATED: a payload is read that is of another operation\n");
    complete();
    goto completed
  }

work:
#if FAULT != LOOK_THEN_ANNOUNCE
  atomic { moving[_pid] = 1; i = (_pid + helped) % PARTICIPANTS; printf("%d announces that it moves\n", _pid) }
#endif
#if FAULT != NO_LOOK_AT_FAILED
  atomic {
    if
    :: failed -> printf("%d abandons %d\n", _pid, s); goto stop
    :: else
    fi
  }
#endif
#if FAULT == LOOK_THEN_ANNOUNCE
  atomic { moving[_pid] = 1; i = (_pid + helped) % PARTICIPANTS; printf("%d announces that it moves\n", _pid) }
#endif

next_slice:
#if FAULT == CLAIM_IN_TWO_STEPS
  slice = POST(i).claimed;
#endif
  atomic {
#if FAULT != CLAIM_IN_TWO_STEPS
    slice = POST(i).claimed;
#endif
    POST(i).claimed = slice + 1;
    CHECK(slice < SLICES + PARTICIPANTS, "VIOLATED: a counter of claims grows without bound\n");
    if
    :: slice < SLICES -> begin_to_carry_out(); slice = 0
    :: else ->
      slice = 0;
      i = (i + 1) % PARTICIPANTS;
      if
      :: i == _pid -> goto stop
      // Looking at this together with the claim changes nothing: a region without a slice left stays so.
      :: i != _pid && SMALL && !helped && (!ANY(IS_ASLEEP) || FAULT == HELP_NOBODY) -> goto stop
      :: else -> helped = SMALL; goto next_slice
      fi
    fi
  }
  atomic { POST(i).done++; touches[_pid] = 0; printf("%d has carried it out\n", _pid); goto next_slice }

stop:
  atomic { moving[_pid] = 0; moved = 1; i = 0; printf("%d stops to move\n", _pid) }
#if SLEEPS && FAULT != STOP_WITHOUT_WAKE
  if
  :: failed || ANY(HAS_LEFT) -> wake_all_if(true)
  :: else
  fi;
#endif
#if FAULT != DONE_WITHOUT_WAKE
  wake_all_if(COMPLETE);
#endif
await_done:
  atomic {
    if
    // After a while, or before it sleeps.
    :: SMALL && !helped && FAULT != HELP_NOBODY -> helped = 1; goto work
    :: COMPLETE -> complete(); goto completed
    :: failed && !COMPLETE ->
#if FAULT == DECIDE_EARLY
      give_up(); goto failure
#else
      goto quiet
#endif
#if DEADLINES
    :: printf("%d has waited for too long\n", _pid) -> goto time_out
#endif
#if TESTS
    :: goto body
#endif
#if SLEEPS && FAULT == SLEEP_WITHOUT_LOOK
    :: else -> goto sleep
#elif SLEEPS
    :: else -> asleep[_pid] = 1; printf("%d sleeps\n", _pid); goto sleep
#endif
    fi
  }

completed:
  atomic {
    if
    :: waits && finished[_pid] < begun -> goto carry_on
    :: else -> goto body
    fi
  }

#if SLEEPS
sleep:
#if FAULT == SLEEP_WITHOUT_LOOK
  asleep[_pid] = 1;
#endif
  atomic { !asleep[_pid] -> goto carry_on }
#endif

#if FAULT == STAMP_THEN_LEFT
look_at_left:
  atomic {
    if
    :: has_left[i] -> printf("%d finds that %d left before %d\n", _pid, i, s); i = 0; goto fail
    :: else -> i = 0; goto carry_on
    fi
  }
#endif

mismatch:
  fail_group(1);
  // Everyone finds it, so nobody moves: quiet is for those that it has begun besides.
  atomic {
    if
    :: begun == s -> goto exception
    :: else -> goto quiet
    fi
  }

time_out:
#if FAULT == TEXT_THEN_FAIL
  read_last_post();
#endif
fail:
  fail_group(0);
failure:
  read_last_post();
  atomic { moved = 0; helped = 0; goto quiet }

// A body throws on its own account. What is in flight is dropped.
throw:
  atomic {
    if
    :: finished[_pid] == begun -> end_body(); printf("%d throws\n", _pid); goto abort
    :: else -> printf("%d throws, with operations in flight\n", _pid)
    fi
  }
#if FAULT != QUIET_THEN_FAIL
  fail_group(0);
#endif
  atomic { moved = 0; helped = 0; goto quiet }

refused:
  atomic {
    printf("%d comes to a group that has failed\n", _pid);
    moved = 0; helped = 0;
    if
    :: finished[_pid] == begun -> goto exception
    :: else
    fi
  }

// The group has failed. Whoever is not seen moving, one after the other, will see that before it moves.
quiet:
#if FAULT != NO_QUIET
  atomic {
    if
    :: i == PARTICIPANTS
    :: i < PARTICIPANTS && (i == _pid || !moving[i]) -> i++; goto quiet
#if SLEEPS
    :: else -> asleep[_pid] = 1; printf("%d sleeps\n", _pid); !asleep[_pid]; i = 0; goto quiet
#endif
    fi
  }
#endif
  atomic {
    i = 0;
    if
    :: moved && COMPLETE -> complete(); goto completed
    :: moved && !COMPLETE -> give_up()
    :: else
    fi
  }

exception:
  atomic {
    end_body();
    mismatched[_pid] = mismatched[_pid] || is_mismatch;
    printf("%d has left with an exception\n", _pid);
#if FAULT != QUIET_THEN_FAIL
    goto caller
#endif
  }
abort:
  fail_group(0);
  goto caller;

leave:
  atomic { end_body(); has_left[_pid] = 1; printf("%d returns\n", _pid) }
  wake_all_if(true);

// Who launched the bodies has them all back before it resets the group and launches again.
caller:
  atomic {
    begun = 0; s = 0; waits = 0; moved = 0; helped = 0;
    out[_pid] = 1;
    if
#if FAULT == EARLY_RESET
    :: true ->
#else
    :: ALL(IS_OUT) ->
      CHECK(failed || ALL(IS_EVEN), "VIOLATED: nothing failed, and not all have completed the same\n");
      CHECK(ABORTS || LEAVES || DEADLINES || OUTSIDER || (MISMATCH -> ALL(SAW_MISMATCH) : ALL(HAS_COMPLETED_ALL)),
            "VIOLATED: an operation or a mismatch was not seen by all\n");
#endif
      printf("the group is reset\n");
      failed = 0; is_mismatch = 0; condemned = 0;
      clear(0); clear(1);
#if PARTICIPANTS == 3
      clear(2);
#endif
      i = 0
    :: else -> goto next_launch
    fi
  }
progress:
  goto body;
next_launch:
  atomic { !out[_pid] -> goto body }
}

#if OUTSIDER
active proctype outsider() {
end:
  do
  :: atomic { !failed -> failed = 1; printf("the group is aborted from outside\n") };
    wake_all_if(true)
  od
}
#endif
