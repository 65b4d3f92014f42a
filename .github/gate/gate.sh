#!/bin/sh
# Run the gate of SENDER into the folder gate, and report: the summary to the step's page, the answer
# to its outputs (GITHUB_STEP_SUMMARY and GITHUB_OUTPUT, where they are set).
# BASELINE is a file that need not exist; UNDECIDED=true makes an undecided gate fail.
set -u
python="${PYTHON:-python3}"
if [ -z "${QBKIT_STACKS:-}" ]; then unset QBKIT_STACKS; fi
if [ -n "${BASELINE:-}" ] && [ -f "$BASELINE" ]; then set -- --baseline "$BASELINE"; else set --; fi
rm -f gate/summary.md gate/junit.xml # of an earlier gate, which an error would leave
# shellcheck disable=SC2086  # several options
"$python" -m qbkit.cli gate "$SENDER" --out gate "$@" ${ARGUMENTS:-}
status=$?
case "$status" in
  0) answer=meets ;;
  3) answer=fails ;;
  4) answer=undecided ;;
  *) answer=error ;;
esac
if [ -n "${GITHUB_OUTPUT:-}" ]; then echo "answer=$answer" >>"$GITHUB_OUTPUT"; fi
# A step's page shows no pictures of its own; they are beside the summary in the artifact.
if [ -n "${GITHUB_STEP_SUMMARY:-}" ] && [ -f gate/summary.md ]; then
  grep -v '^!\[' gate/summary.md >>"$GITHUB_STEP_SUMMARY"
fi
if [ "$answer" = undecided ] && [ "${UNDECIDED:-false}" != true ]; then exit 0; fi
exit "$status"
