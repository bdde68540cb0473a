#!/usr/bin/env bash
# scripts/setup.sh among stand-ins for dpkg-query, apt-get, sudo and id. Usage: setup_test.sh
set -euo pipefail
setup=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/scripts/setup.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

stand_in() {  # name, body
  printf '#!/bin/bash\n%s\n' "$2" >"$work/bin/$1"
  chmod +x "$work/bin/$1"
}

# A machine where every package has the status given, such as "ii ", but those of $absent; the caller has the user id given.
machine() {
  rm -rf "$work/bin"
  mkdir "$work/bin"
  for tool in bash cat env grep sed; do ln -s "$(command -v "$tool")" "$work/bin/$tool"; done
  stand_in id "echo $2"
  stand_in dpkg-query '
    for package in "${@:4}"; do [[ " '"${absent:-}"' " == *" $package "* ]] || echo "'"$1"'$package"; done'
  stand_in apt-get 'echo "apt-get $* frontend=${DEBIAN_FRONTEND:-}" >>'"$work/calls"
  printf 'ID=debian\nVERSION_ID="12"\n' >"$work/os-release"
}

# sudo, as it is: it passes nothing on from the environment.
with_sudo() { stand_in sudo 'echo "sudo" >>'"$work/calls"'; exec env -i PATH="$PATH" "$@"'; }

status=0 calls= said=
run_setup() {
  : >"$work/calls"
  status=0
  said=$(PATH=$work/bin BRIGADE_OS_RELEASE=$work/os-release "$BASH" "$setup" "$@" 2>&1) || status=$?
  calls=$(<"$work/calls")
}

failures=0
expect() {  # what, condition ...
  local what=$1
  shift
  "$@" && return
  echo "FAILED: $what; exit status $status; calls: $calls; it said: $said"
  failures=$((failures + 1))
}
is() { [[ $1 == $2 ]]; }  # the second is a pattern
install_of() { echo "apt-get update -q frontend=noninteractive*apt-get install -q -y --no-install-recommends $1 frontend=noninteractive"; }

machine 'ii ' 1000
run_setup test check bench model
expect "nothing missing: nothing is called or said" is "$status|$calls|$said" "0||"

machine 'hi ' 1000
run_setup
expect "packages on hold count as installed" is "$status|$calls" "0|"

machine 'rc ' 0
run_setup
expect "removed packages whose settings are left count as missing" is "$calls" "*install*g++*"

absent="cmake zlib1g-dev"
machine 'ii ' 0
run_setup
expect "missing, root: installs just those" is "$status|$calls" "0|$(install_of 'cmake zlib1g-dev')"

machine 'ii ' 1000
with_sudo
run_setup
expect "missing, not root: through sudo, which keeps apt quiet" is "$status|$calls" "0|sudo*$(install_of 'cmake zlib1g-dev')"

machine 'ii ' 1000
run_setup
expect "missing, neither root nor sudo: status 1, no call" is "$status|$calls" "1|"
expect "missing, neither root nor sudo: names the command" is "$said" "*needs root*apt-get install cmake zlib1g-dev*"

machine 'ii ' 0
stand_in apt-get 'exit 100'
run_setup
expect "apt-get fails: status 1 and the command to run by hand" is "$status|$said" "1|*by hand*apt-get install cmake zlib1g-dev*"

absent=libomp-16-dev
machine 'ii ' 0
run_setup
expect "a group that is not named is not installed" is "$status|$calls" "0|"
run_setup check
expect "a group that is named is" is "$calls" "*install*libomp-16-dev*"

absent=fortunes
machine 'ii ' 0
run_setup text
expect "the text for a language model is a group of its own" is "$calls" "$(install_of fortunes)"
run_setup test
expect "and the tests need it" is "$calls" "$(install_of fortunes)"

for system in 'ID=ubuntu\nVERSION_ID="24.04"\n' 'ID=debian\nVERSION_ID="13"\n' 'ID=fedora\n' ''; do
  absent=cmake machine 'ii ' 0
  printf "$system" >"$work/os-release"
  run_setup
  expect "not Debian 12 ($system): names README, goes on" is "$status|$calls|$said" "0||*README.md*"
done
rm "$work/os-release"
run_setup
expect "no os-release: names README, goes on" is "$status|$calls|$said" "0||*README.md*"

machine 'ii ' 0
run_setup tests
expect "an unknown group: status 2, lists those there are" is "$status|$calls|$said" '2||*"tests"*build, text, test, check, bench and model*'

exit "$((failures > 0))"
