#!/usr/bin/env bash
# Builds and runs the benches. Usage: bench.sh JOBS [step|training|collectives|compress|optim|random ...]
# compress_training, which takes half an hour, runs when it is named.
# The peers are JAX, in a virtual environment made here, and PyTorch, Open MPI and Gloo from the system. A peer that is
# missing is left out, and the table says so.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

jobs=$1
shift
benches=("$@")
((${#benches[@]})) || benches=(collectives compress optim random step training)
for bench in "${benches[@]}"; do
  [ -f "bench/$bench.cpp" ] || { echo "bench.sh: no bench \"$bench\": there are collectives, compress, compress_training, optim, random, step and training" >&2; exit 2; }
done

venv=build/venv
if [[ " ${benches[*]} " =~ " step "|" training " ]] && ! cmp -s bench/peers/requirements.txt "$venv/installed.txt"; then
  echo "bench.sh: installing JAX into $venv"
  if python3 -m venv "$venv" && "$venv/bin/pip" install --quiet -r bench/peers/requirements.txt; then
    cp bench/peers/requirements.txt "$venv/installed.txt"
  else
    echo "bench.sh: JAX could not be installed; it will be left out" >&2
  fi
fi

mkdir -p build
cmake --preset release -DBRIGADE_BUILD_BENCH=ON >build/release.configure.log 2>&1 || { cat build/release.configure.log >&2; exit 1; }
cmake --build --preset release -j "$jobs" --target "${benches[@]/#/bench_}"

status=0
for bench in "${benches[@]}"; do
  "build/release/bin/bench_$bench" || status=$?
done
exit "$status"
