#!/bin/sh
# In a new container: qbkit is that of the workspace, not of the image; its packages are there.
set -eu
cd "$(dirname "$0")/.."
python -m pip install -q --no-deps -e .
qbkit doctor || echo "qbkit: some things are missing here"
