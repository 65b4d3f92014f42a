#!/bin/sh
# Install the wheels of `make wheels` in a clean root, and run them there as an ordinary user without
# a compiler: tests/clean_root.sh ROOT [PROGRAM]. It prints the seconds from pip install to a verdict
# on PROGRAM (default: quinn's driver), without those of downloads.
#
# ROOT is a folder with a distribution that has python3 and its venv, such as
#   mmdebstrap --variant=minbase --include=python3-venv,ca-certificates,libstdc++6 trixie ROOT
# Only entering it needs root. Packages of others come from PyPI, or where pip is configured to look.
set -eu
root="$(cd "$1" && pwd)"
here="$(cd "$(dirname "$0")/.." && pwd)"
cache="${QBKIT_CACHE:-$HOME/.cache/qbkit}"
program="${2:-$(ls -t "$cache"/drivers/quinn-[0-9a-f]*/quinn-flow | head -n 1)}"
user=1000
home=/home/author
[ -d "$here/build/wheels" ] || { echo "clean_root: make wheels comes first" >&2; exit 1; }

rm -rf "$root$home" "$root/wheels"
mkdir -p "$root$home/build" "$root/wheels"
cp "$here"/build/wheels/*.whl "$root/wheels"
cp "$program" "$root$home/build/mine"
chown -R "$user:$user" "$root$home"
cp /etc/resolv.conf "$root/etc/resolv.conf"
if [ -n "${PIP_CERT:-}" ]; then cp "$PIP_CERT" "$root/wheels/ca.pem"; fi

cat >"$root/wheels/inside.sh" <<'INSIDE'
set -eu
cd "$HOME"
if command -v gcc cc >/dev/null; then echo "clean_root: there is a compiler" >&2; exit 1; fi
[ "$(id -u)" != 0 ]
python="${PYTHON:-python3}"
"$python" --version
echo "missing here: $(for tool in ip tc mnexec /usr/bin/python3; do
  command -v "$tool" >/dev/null || printf '%s ' "$tool"; done)"
"$python" -m venv all && ./all/bin/pip -q download -d downloads --find-links /wheels $PACKAGES
begin=$(date +%s)
"$python" -m venv qb && ./qb/bin/pip -q install --no-index --find-links downloads $PACKAGES
installed=$(date +%s)
./qb/bin/qbkit run tcp:cubic tcp:cubic --duration-s 10
ran=$(date +%s)
status=0
./qb/bin/qbkit conformance ./build/mine:cubic --seeds 6 --duration-s 20 || status=$?
end=$(date +%s)
echo "clean_root: install $((installed - begin)) s, run $((ran - installed)) s, verdict $((end - ran)) s: $((end - begin)) s in all; status $status"
[ "$status" = 0 ]
if [ -n "${GATE:-}" ]; then
  PYTHON=./qb/bin/python SENDER=./build/mine:cubic ARGUMENTS="--seeds 2 --duration-s 12" "$GATE"
  head -n 8 gate/summary.md
fi
du -sm qb
INSIDE
mkdir -p "$root/wheels/gate" && cp "$here"/.github/gate/*.sh "$root/wheels/gate"
exec unshare --mount --fork sh -c '
  for place in proc dev sys; do mount --rbind "/$place" "$0/$place"; done
  exec env -i "$(command -v chroot)" --userspec='"$user:$user"' "$0" /usr/bin/env HOME='"$home"' PATH=/usr/local/bin:/usr/bin:/bin \
    LANG=C.UTF-8 ${1:+PIP_CERT="$1"} ${2:+PIP_INDEX_URL="$2"} GATE=/wheels/gate/gate.sh \
    ${3:+PYTHON="$3"} PACKAGES="qbkit qbkit-kernel qbkit-stacks-rust" sh /wheels/inside.sh
' "$root" "${PIP_CERT:+/wheels/ca.pem}" "${PIP_INDEX_URL:-}" "${PYTHON:-}"
