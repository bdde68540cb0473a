#!/usr/bin/env bash
# scripts/check_rooms.sh on small trees, one violation each. Usage: rooms_test.sh
set -euo pipefail
check=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/scripts/check_rooms.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# with FILE LINE STATUS [TEXT]: a tree that keeps the order, and LINE in FILE, gives STATUS and prints FILE and TEXT.
with() {
  local file=$1 line=$2 wanted=$3 text=${4:-} status=0 said
  rm -rf "$work/tree"
  mkdir -p "$work/tree/include/brigade/"{base,comm,tree,lax} "$work/tree/src/"{base,comm,lax}
  echo '#include <string>' >"$work/tree/include/brigade/base/error.h"
  echo '#include "brigade/base/error.h"' >"$work/tree/src/comm/call.h"
  echo '#include "comm/call.h"' >"$work/tree/src/comm/call.cpp"
  echo '#include <torch/types.h>' >"$work/tree/include/brigade/lax/leaves.h"
  mkdir -p "$(dirname "$work/tree/$file")"
  echo "$line" >>"$work/tree/$file"
  said=$("$check" "$work/tree" 2>&1) || status=$?
  if [[ $status != "$wanted" || $said != *"$text"* || ($wanted == 1 && $said != "$file:"*) ]]; then
    echo "FAILED: $line in $file gives status $status instead of $wanted, and says: $said"
    failures=$((failures + 1))
  fi
}

with src/lax/reduce.cpp '#include "brigade/comm/group.h"' 0
with src/comm/call.cpp '#include "../comm/call.h"' 0
with src/lax/reduce.cpp '#include "../../include/brigade/base/error.h"' 0
with src/comm/call.cpp '#include "brigade/lax/leaves.h"' 1 'comes after it'
with include/brigade/base/error.h '#include <brigade/comm/group.h>' 1 'comes after it'
with include/brigade/base/error.h '#include "../comm/group.h"' 1 'comes after it'
with src/comm/call.cpp '#include "../../include/brigade/lax/leaves.h"' 1 'comes after it'
with src/lax/reduce.cpp '#include "comm/call.h"' 1 'private header of room comm'
with src/lax/reduce.cpp '#include "../comm/call.h"' 1 'private header of room comm'
with src/lax/reduce.cpp '#include "./../comm/call.h"' 1 'private header of room comm'
with include/brigade/lax/leaves.h '#include "lax/reduce.h"' 1 'a public header includes a private one'
with include/brigade/lax/leaves.h '#include "../../../src/lax/reduce.h"' 1 'a public header includes a private one'
with src/comm/call.cpp '#  include <torch/torch.h>' 1 'includes torch'
with include/brigade/tree/walk.h '#include <ATen/core/Tensor.h>' 1 'includes torch'
with include/brigade/tree/tree.h '#include <ATen/core/Tensor.h>' 0
with src/lax/reduce.cpp '#include "brigade/brigade.h"' 1 'all rooms'
with src/guard/store.cpp '#include "brigade/train/trainer.h"' 1 'room guard includes room train, which comes after it'
with src/train/trainer.cpp '#include "brigade/guard/checkpoint.h"' 0
with src/kitchen/pan.cpp '#include <string>' 1 'lies in no room'

exit "$((failures > 0))"
