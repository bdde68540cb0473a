#!/usr/bin/env bash
# Lets Spin prove the model of the collectives, tests/model/collective.pml, and checks that each fault seeded there is
# found. For what fails, the shortest trail to the error is printed, one column per participant.
#
#   scripts/model.sh                    everything
#   scripts/model.sh NO_QUIET ...       the trails of these faults
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

model=collective.pml  # copied to build/model, where Spin and its verifier leave their files
failures=0

# What is proved: three participants, unless it says otherwise, and three operations of the kinds given.
configurations() {
  holds "direct x3; bodies throw, return early"         -DDIRECT=7 -DABORTS=1 -DLEAVES=1
  holds "payload, direct, payload; those; polled"       -DDIRECT=2 -DABORTS=1 -DLEAVES=1 -DTESTS=1
  holds "payload x4; bodies throw, return early"        -DCALLS=4 -DABORTS=1 -DLEAVES=1
  holds "direct, payload, direct; deadlines"            -DDIRECT=5 -DDEADLINES=1
  holds "payload x3; deadlines; texts of errors"        -DDEADLINES=1 -DTEXTS=1
  holds "direct, payload, direct; aborted from outside" -DDIRECT=5 -DOUTSIDER=1
  holds "payload x3; aborted from outside, early"       -DOUTSIDER=1 -DLEAVES=1
  holds "direct x3; a mismatch in the second"           -DDIRECT=7 -DMISMATCH=2
  holds "payload, direct x2; a mismatch; bodies throw"  -DDIRECT=6 -DMISMATCH=2 -DABORTS=1
  holds "mixed x5, two slices; nothing fails"           -DDIRECT=21 -DCALLS=5 -DSLICES=2
  holds "payload, direct, payload; asleep; early"       -DDIRECT=2 -DLEAVES=1 -DSLEEPS=1
  holds "direct, payload; asleep; bodies throw"         -DDIRECT=1 -DCALLS=2 -DABORTS=1 -DSLEEPS=1
  holds "two of them, mixed x5, two slices; all of it"  -DPARTICIPANTS=2 -DDIRECT=21 -DCALLS=5 -DSLICES=2 -DABORTS=1 \
        -DLEAVES=1 -DDEADLINES=1 -DTESTS=1 -DTEXTS=1
  holds "two of them, mixed x5; asleep; throw, early"   -DPARTICIPANTS=2 -DDIRECT=21 -DCALLS=5 -DSLICES=2 -DABORTS=1 \
        -DLEAVES=1 -DSLEEPS=1
  holds "direct x2, small; throw, early"                -DDIRECT=3 -DCALLS=2 -DABORTS=1 -DLEAVES=1 -DSMALL=1
  holds "direct, payload, small; asleep; early"         -DDIRECT=1 -DCALLS=2 -DLEAVES=1 -DSLEEPS=1 -DSMALL=1
  holds "direct, small; asleep; bodies throw"           -DDIRECT=1 -DCALLS=1 -DABORTS=1 -DSLEEPS=1 -DSMALL=1
  holds "two of them, mixed x5, small; asleep; all"     -DPARTICIPANTS=2 -DDIRECT=21 -DCALLS=5 -DABORTS=1 -DLEAVES=1 \
        -DSLEEPS=1 -DSMALL=1
  holds "two of them, mixed x5, small; polled; all"     -DPARTICIPANTS=2 -DDIRECT=21 -DCALLS=5 -DSLICES=2 -DABORTS=1 \
        -DLEAVES=1 -DDEADLINES=1 -DTESTS=1 -DSMALL=1
  ends  "payload, direct; asleep; every launch ends"    -DDIRECT=2 -DCALLS=2 -DSLEEPS=1
  ends  "direct; throw, early; every launch ends"       -DDIRECT=1 -DCALLS=1 -DABORTS=1 -DLEAVES=1
}

# Where each fault shows.
faults() {
  finds NO_LOOK_AT_FAILED  -DDIRECT=1 -DCALLS=1 -DABORTS=1
  finds LOOK_THEN_ANNOUNCE -DDIRECT=1 -DCALLS=1 -DABORTS=1
  finds NO_WAIT_FOR_POST   -DCALLS=3
  finds CLAIMED_IS_DONE    -DDIRECT=1 -DCALLS=1
  finds NO_QUIET           -DDIRECT=1 -DCALLS=1 -DABORTS=1
  finds QUIET_THEN_FAIL    -DDIRECT=1 -DCALLS=1 -DABORTS=1
  finds CLAIM_IN_TWO_STEPS -DDIRECT=1 -DCALLS=1
  finds CLAIM_AGAIN        -DDIRECT=1 -DCALLS=1 -DTESTS=1
  finds STAMP_FIRST        -DCALLS=1
  finds FINISHED_FIRST     -DCALLS=3
  finds NO_COMPARISON      -DCALLS=1 -DMISMATCH=1
  finds STAMP_THEN_LEFT    -DCALLS=1
  finds DEAF_TO_LEFT       -DCALLS=1 -DLEAVES=1
  finds DEAF_TO_FAILED     -DPARTICIPANTS=2 -DABORTS=1
  finds LEAVE_IN_FLIGHT    -DDIRECT=1 -DCALLS=1 -DLEAVES=1
  finds DECIDE_EARLY       -DDIRECT=1 -DCALLS=1 -DABORTS=1
  finds TEXT_THEN_FAIL     -DPARTICIPANTS=2 -DDEADLINES=1 -DTEXTS=1
  finds EARLY_RESET        -DCALLS=1
  finds SLEEP_WITHOUT_LOOK -DCALLS=1 -DSLEEPS=1
  finds STAMP_WITHOUT_WAKE -DPARTICIPANTS=2 -DSLEEPS=1
  finds STOP_WITHOUT_WAKE  -DPARTICIPANTS=2 -DDIRECT=1 -DCALLS=1 -DABORTS=1 -DSLEEPS=1
  finds DONE_WITHOUT_WAKE  -DPARTICIPANTS=2 -DDIRECT=3 -DCALLS=2 -DSLEEPS=1
  finds SLEEP_FOR_A_POST   -DPARTICIPANTS=2 -DSLEEPS=1
  finds HELP_NOBODY        -DPARTICIPANTS=2 -DDIRECT=1 -DCALLS=1 -DSLEEPS=1 -DSMALL=1
  finds NO_VERDICT         -DPARTICIPANTS=2 -DCALLS=1 -DOUTSIDER=1
}

# search "COMPILER OPTIONS" "VERIFIER OPTIONS" -D ...: all states, in build/model. Sets states, megabytes, seconds and errors;
# stops the script unless the search went to its end or to an error.
search() {
  local compile=$1 options=$2 said
  shift 2
  rm -rf build/model
  mkdir -p build/model
  cp "tests/model/$model" build/model/
  pushd build/model >/dev/null
  spin -a "$@" "$model" >spin.log || { cat spin.log >&2; exit 1; }
  gcc -w -DMEMLIM=4096 $compile -o pan pan.c
  local TIMEFORMAT=%U
  { time ./pan -m100000 $options >pan.log 2>&1; } 2>time.log
  popd >/dev/null
  said=$(<build/model/pan.log)
  states=$(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' <<<"$said")
  megabytes=$(sed -n 's/^ *\([0-9]*\).*total actual memory usage.*/\1/p' <<<"$said")
  seconds=$(<build/model/time.log)
  errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' <<<"$said")
  if [[ -z $errors || $said == *"max search depth too small"* || ($errors == 0 && $said == *"Search not completed"*) ]]; then
    echo "$said" >&2
    echo "model.sh: the search was not completed" >&2
    exit 1
  fi
}

line() { printf '%-50s %9d states %5d MB %5.1f s  %s\n' "$1" "$states" "$megabytes" "$seconds" "$2"; }

# What happened up to the error; where no property was violated, somebody waits in vain for what comes next.
trail() {
  (cd build/model && spin -t -B "$@" "$model") | awk '
    /^ +([0-9]|VIOLATED|the group)/ && !ended { print; ended = /VIOLATED/ }
    END { if (!ended) print "      and nobody can go on" }'
}

# The error in a few words.
error() { trail "$@" | sed -n 's/^ *VIOLATED: //p; s/^ *and \(nobody can go on\)$/\1/p'; }

holds() {
  local name=$1
  shift
  search "-O1 -DSAFETY" -w24 "$@"
  if [[ $errors == 0 ]]; then
    line "$name" holds
  else
    search "-O1 -DSAFETY -DBFS" -w24 "$@"  # finds a shortest trail
    line "$name" "FAILS: $(error "$@")"
    trail "$@"
    failures=$((failures + 1))
  fi
}

# No cycle but through a new launch, so that every launch ends.
ends() {
  local name=$1
  shift
  search "-O1 -DNP" "-l -w22" "$@"
  if [[ $errors == 0 ]]; then
    line "$name" holds
  else
    line "$name" "FAILS"
    (cd build/model && spin -t -B "$@" "$model")
    failures=$((failures + 1))
  fi
}

shown=" $* "
finds() {
  local fault=$1
  shift
  if [[ $shown != "  " && $shown != *" $fault "* ]]; then return; fi
  search "-DSAFETY -DBFS" -w20 -DFAULT="$fault" "$@"
  if [[ $errors == 0 ]]; then
    line "fault $fault" "NOT FOUND"
    failures=$((failures + 1))
    return
  fi
  line "fault $fault" "found: $(error -DFAULT="$fault" "$@")"
  if [[ $shown != "  " ]]; then trail -DFAULT="$fault" "$@"; fi
}

for name in "$@"; do
  grep -q "^  finds $name " "$0" && continue
  echo "model.sh: no fault \"$name\"; there are: $(sed -n 's/^  finds \([A-Z_]*\).*/\1/p' "$0" | paste -sd' ')" >&2
  exit 2
done
(($#)) || configurations
faults
if ((failures)); then
  echo "model.sh: $failures of the above are not as they must be" >&2
  exit 1
fi
