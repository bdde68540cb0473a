#!/usr/bin/env bash
# Builds the fuzz targets with Clang, AddressSanitizer and UndefinedBehaviorSanitizer, and runs each on its corpus.
# Usage: fuzz.sh JOBS SECONDS
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

jobs=$1
seconds=$2
mkdir -p build
cmake -S . -B build/fuzz -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_COMPILER=clang++-16 -DBRIGADE_WITH_TORCH=OFF \
      -DBRIGADE_BUILD_TESTS=OFF -DBRIGADE_BUILD_FUZZERS=ON >build/fuzz.configure.log 2>&1 || { cat build/fuzz.configure.log >&2; exit 1; }
names=$(ls tests/fuzz/corpus)  # one target a folder
cmake --build build/fuzz -j "$jobs" --target $(printf 'fuzz_%s ' $names)

for name in $names; do
  corpus=(tests/fuzz/corpus/"$name" $(ls -d tests/cases/"$name"* 2>/dev/null || true))
  found=build/fuzz/found/$name  # new inputs go here, and what crashes
  mkdir -p "$found"
  echo "fuzz.sh: $name for $seconds s"
  "build/fuzz/bin/fuzz_$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 \
    -artifact_prefix="$found/crash-" "$found" "${corpus[@]}" 2>"build/fuzz/$name.log" ||
    { tail -40 "build/fuzz/$name.log" >&2; echo "fuzz.sh: $name failed; the input is in $found" >&2; exit 1; }
  grep -E '^stat::(number_of_executed_units|new_units_added|peak_rss_mb)' "build/fuzz/$name.log"
done
