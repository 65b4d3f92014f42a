#!/bin/sh
# Try the wheels in clean roots of suites of Debian or Ubuntu: clean_roots.sh bookworm trixie noble
# It needs root, and apt. ROOTS is a folder for the roots, which are made if they are missing.
# Debian has no keys of Ubuntu, whose packages serve here for this test alone.
set -eu
cd "$(dirname "$0")/../.."
roots="${ROOTS:-$(mktemp -d)}"
command -v mmdebstrap >/dev/null || apt-get install -y -q mmdebstrap
for suite in "$@"; do
  case "$suite" in
    jammy | noble) from="deb [trusted=yes] http://archive.ubuntu.com/ubuntu $suite main universe" ;;
    *) from="deb http://deb.debian.org/debian $suite main" ;;
  esac
  if [ ! -d "$roots/$suite" ]; then
    mmdebstrap -q --variant=minbase --include=python3-venv,ca-certificates,libstdc++6 "$suite" "$roots/$suite" "$from"
  fi
  tests/clean_root.sh "$roots/$suite"
done
