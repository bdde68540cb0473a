#!/usr/bin/env bash
# Installs what is missing from Debian 12, for the jobs named: build (default), text, test, check, bench, model. Instant when
# nothing is. On other systems it only says where the packages are named.
#
#   scripts/setup.sh            what building and training need
#   scripts/setup.sh test       and what the tests need
#   scripts/setup.sh text       and the text that a language model is shown with
set -euo pipefail

build=(g++ cmake ninja-build ccache
       libtorch-dev libopenblas0-pthread  # without this BLAS, products run ten times slower
       libhwy-dev libboost1.81-dev nlohmann-json3-dev libcli11-dev libspdlog-dev libfmt-dev zlib1g-dev libxxhash-dev
       libpng-dev libjpeg62-turbo-dev  # what CMake builds without when told -DBRIGADE_WITH_IMAGES=OFF
       dataset-fashion-mnist)
text=(fortunes fortunes-min)
test=("${text[@]}" libgtest-dev libgmock-dev librapidcheck-dev clang-16 libclang-rt-16-dev clang-format-14)
check=(clang-format-14 clang-16 clang-tidy-16 libomp-16-dev)
bench=(libopenmpi-dev openmpi-bin libgloo-dev python3-torch python3-venv)
model=(spin)

wanted=("${build[@]}")
for group in "$@"; do
  case $group in
    build) ;;
    text | test | check | bench | model) declare -n packages=$group; wanted+=("${packages[@]}") ;;
    *) echo "setup.sh: no group \"$group\": there are build, text, test, check, bench and model" >&2; exit 2 ;;
  esac
done

os_release=${BRIGADE_OS_RELEASE:-/etc/os-release}  # the test names another file
system=$([ ! -r "$os_release" ] || { . "$os_release"; echo "${ID:-} ${VERSION_ID:-}"; })
if [ "$system" != "debian 12" ]; then
  echo "setup.sh: this is not Debian 12, so nothing is installed. README.md, \"Building elsewhere\", names the packages;" >&2
  echo "          CMake says which of them it does not find." >&2
  exit 0
fi

# dpkg-query lists what it knows and complains about the rest; only fully installed packages count, held ones too.
installed=$(dpkg-query -W -f '${db:Status-Abbrev}${Package}\n' "${wanted[@]}" 2>/dev/null | sed -n 's/^.i *//p' || true)
missing=()
for package in "${wanted[@]}"; do
  grep -qxF -- "$package" <<<"$installed" || missing+=("$package")
done
((${#missing[@]})) || exit 0

as_root=(env DEBIAN_FRONTEND=noninteractive)
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "setup.sh: these packages are missing, and installing them needs root (there is no sudo here):" >&2
    echo "  apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo "${as_root[@]}")
fi

echo "setup.sh: installing ${missing[*]}"
if ! { "${as_root[@]}" apt-get update -q && "${as_root[@]}" apt-get install -q -y --no-install-recommends "${missing[@]}"; }; then
  echo "setup.sh: the packages above could not be installed. Install them by hand and run this again:" >&2
  echo "  apt-get install ${missing[*]}" >&2
  exit 1
fi
