#!/bin/sh
# Try the wheels in clean roots of suites of Debian, or of Ubuntu with the address of an archive:
# clean_roots.sh bookworm trixie noble=ADDRESS
# It needs root, and apt. ROOTS is a folder for the roots, which are made if they are missing.
# Debian has no keys of Ubuntu, whose packages serve here for this test alone.
set -eu
cd "$(dirname "$0")/../.."
roots="${ROOTS:-$(mktemp -d)}"
command -v mmdebstrap >/dev/null || apt-get install -y -q mmdebstrap
for word in "$@"; do
  suite="${word%%=*}" archive=""
  [ "$suite" = "$word" ] || archive="deb [trusted=yes] ${word#*=} $suite main universe"
  if [ ! -d "$roots/$suite" ]; then
    # Without an archive it takes Debian's.
    mmdebstrap -q --variant=minbase --include=python3-venv,ca-certificates,libstdc++6 "$suite" "$roots/$suite" ${archive:+"$archive"}
  fi
  tests/clean_root.sh "$roots/$suite"
done
