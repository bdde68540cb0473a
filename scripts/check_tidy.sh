#!/usr/bin/env bash
# clang-tidy over our own sources, with the settings of .clang-tidy. Usage: check_tidy.sh JOBS [folder or file ...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

jobs=$1
shift
where=("$@")
((${#where[@]})) || where=(src examples)

tidy=$(command -v clang-tidy-16) || { echo "check_tidy: clang-tidy is missing" >&2; exit 1; }

mkdir -p build
# GCC's precompiled headers mean nothing to Clang, so its database is one without them.
cmake -S . -B build/tidy -G Ninja -DCMAKE_CXX_COMPILER=clang++-16 -DCMAKE_CXX_FLAGS="-include $PWD/scripts/tidy_prelude.h" \
      -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DBRIGADE_BUILD_TESTS=OFF >build/tidy.configure.log 2>&1 ||
  { cat build/tidy.configure.log >&2; exit 1; }
find "${where[@]}" -name '*.cpp' | sort | xargs -P "$jobs" -n 1 "$tidy" -p build/tidy --quiet ||
  { echo "check_tidy: see above" >&2; exit 1; }
echo "check_tidy: ${where[*]}: nothing found"
