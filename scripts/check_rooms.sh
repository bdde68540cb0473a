#!/usr/bin/env bash
# The order of rooms, read from the includes: a room may use the rooms before it, and some rooms know nothing of torch.
# Usage: check_rooms.sh [FOLDER], the folder that holds include/ and src/; this repository without it.
set -euo pipefail
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/..}"

rooms=(base trace comm tree runtime lax transform random optim data guard train plan cli)

awk -v order="${rooms[*]}" '
  BEGIN {
    count = split(order, names, " ")
    for (i = 1; i <= count; ++i) place[names[i]] = i
  }
  # include/brigade/<room>/file and src/<room>/file
  FNR == 1 {
    parts = split(FILENAME, path, "/")
    room = path[1] == "include" ? path[3] : path[2]
    public = path[1] == "include"
    known = (room in place)
    if (!known && parts > 2 && FILENAME != "include/brigade/brigade.h") complain("lies in no room of the list in scripts/check_rooms.sh")
    # The core of tree does without torch; its one other header knows the tensor type.
    torch_free = room == "base" || room == "comm" || (room == "tree" && FILENAME !~ /tree\/tree\.h$/)
  }
  # A header as it would be named from include/ or src/: "../lax/leaves.h" in src/comm/ is lax/leaves.h.
  function resolved(header,    from) {
    if (header ~ /^\.\.?\//) {
      from = FILENAME
      sub(/[^\/]*$/, "", from)
      header = from header
    }
    while (sub(/\/\.\//, "/", header) || sub(/[^\/.][^\/]*\/\.\.\//, "", header)) continue
    sub(/^(include|src)\//, "", header)
    return header
  }
  function complain(text) { printf "%s:%d: %s\n", FILENAME, FNR, text; bad = 1 }
  known && /^[ \t]*#[ \t]*include/ {
    match($0, /[<"][^>"]*[>"]/)
    header = resolved(substr($0, RSTART + 1, RLENGTH - 2))
    split(header, part, "/")
    if (part[1] == "brigade" && (part[2] in place) && place[part[2]] > place[room])
      complain("room " room " includes room " part[2] ", which comes after it")
    if (part[1] == "brigade" && part[2] == "brigade.h") complain("a room includes all rooms")
    if (part[1] != "brigade" && (part[1] in place) && part[1] != room)
      complain("room " room " includes a private header of room " part[1])
    if (public && part[1] != "brigade" && (part[1] in place)) complain("a public header includes a private one")
    if (torch_free && header ~ /^(torch|ATen|c10|caffe2)\//) complain("room " room " includes torch")
  }
  END {
    if (bad) exit 1
    printf "check_rooms: %d files keep the order %s\n", ARGC - 1, order
  }
' $(find include src -name '*.h' -o -name '*.cpp' | sort)
