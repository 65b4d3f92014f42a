#!/bin/sh
# Build the site into build/docs, with the atlas of the published data in it; notebooks open
# published runs, as there is no kernel here.
set -eu
cd "$(dirname "$0")/../.."
make docs
