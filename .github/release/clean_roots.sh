#!/bin/sh
# Try the wheels in clean roots of Debian's suites, or of Ubuntu's: clean_roots.sh bookworm noble
# It needs root, and apt. ROOTS is a folder for them.
set -eu
cd "$(dirname "$0")/../.."
roots="${ROOTS:-$(mktemp -d)}"
command -v mmdebstrap >/dev/null || apt-get install -y -q mmdebstrap
for suite in "$@"; do
  case "$suite" in
    jammy | noble | resolute) set -- http://archive.ubuntu.com/ubuntu --components=main,universe ;;
    *) set -- http://deb.debian.org/debian --components=main ;;
  esac
  if [ ! -d "$roots/$suite" ]; then
    mmdebstrap -q --variant=minbase "$2" --include=python3-venv,ca-certificates "$suite" "$roots/$suite" "$1"
  fi
  tests/clean_root.sh "$roots/$suite"
done
