#!/bin/sh
# Install qbkit's core for a gate: wheels from WHEELS (a folder or a page), or this source and a
# kernel that is built here. PYTHON is the interpreter. It needs neither root nor, with wheels, a
# compiler.
set -eu
python="${PYTHON:-python3}"
here="$(cd "$(dirname "$0")/../.." && pwd)"
if [ -n "${WHEELS:-}" ]; then
  "$python" -m pip install -q -c "$here/requirements.lock" --find-links "$WHEELS" qbkit qbkit-kernel
else
  "$python" -m pip install -q -c "$here/requirements.lock" "$here"
  "$python" -m qbkit.cli kernel --build --only constant
fi
