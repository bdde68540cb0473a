#!/usr/bin/env bash
# Installs the build into a folder of its own, builds a program against it, and checks what that prints.
# Usage: run.sh BUILD_FOLDER CMAKE
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$1
cmake=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$cmake" --install "$build" --prefix "$work/prefix" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
"$cmake" -S "$here/consumer" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$work/prefix" \
  >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
"$cmake" --build "$work/build" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }

printed=$("$work/build/consumer")
[ "$printed" = 6 ] || { echo "the program printed \"$printed\" instead of 6"; exit 1; }
"$work/prefix/bin/brigade" --version
