#!/usr/bin/env bash
# Installs the build into a folder of its own, builds a program against it, and checks what that prints.
# Usage: run.sh BUILD_FOLDER CMAKE CXX_COMPILER PREFIX_PATH COMPONENT PRINTED
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$1 cmake=$2 compiler=$3 prefix_path=$4 component=$5 expected=$6
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$cmake" --install "$build" --prefix "$work/prefix" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
"$cmake" -S "$here/consumer/$component" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$work/prefix${prefix_path:+;$prefix_path}" \
  >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
"$cmake" --build "$work/build" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }

printed=$("$work/build/consumer")
[ "$printed" = "$expected" ] || { echo "the program printed \"$printed\" instead of $expected"; exit 1; }
[ "$component" = comm ] || "$work/prefix/bin/brigade" --version
