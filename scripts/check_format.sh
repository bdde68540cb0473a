#!/usr/bin/env bash
# Whether every C++ file is formatted; with --fix, formats them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

format=$(command -v clang-format-14 || command -v clang-format) || { echo "check_format: clang-format is missing" >&2; exit 1; }
mapfile -t files < <(find include src tests bench examples -name '*.h' -o -name '*.cpp' | sort)

if [ "${1:-}" = --fix ]; then
  "$format" -i "${files[@]}"
elif ! "$format" --dry-run --Werror "${files[@]}"; then
  echo "check_format: the files above are not formatted: ./run format" >&2
  exit 1
else
  echo "check_format: ${#files[@]} files are formatted"
fi
