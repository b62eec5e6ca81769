# Sourced by the live tests: a plain bwrap with a built-in policy's program.
# Needs $bin (where seccomp_export is) and $work (a writable directory).

# Whether sandboxes can start here. Where they can't, ends the test as skipped, or as failed when
# SANDY_MUST_WORK=1, so that a test run that must prove something can't pass without it.
need_bwrap() {
  problem=
  if ! command -v bwrap >/dev/null; then
    problem="bwrap is not installed"
  elif ! said=$(bwrap --unshare-all --ro-bind / / --dev /dev --proc /proc true 2>&1); then
    problem="user namespaces do not work here: $said"
  fi
  [ -z "$problem" ] && return
  if [ "${SANDY_MUST_WORK:-}" = 1 ]; then
    echo "FAIL: $problem"
    exit 1
  fi
  echo "SKIP: $problem"
  exit 77
}

# sandboxed POLICY [ptrace] -- COMMAND...: the command under the policy, $work writable.
sandboxed() {
  base=$1
  shift
  switch=
  if [ "$1" = ptrace ]; then
    switch=ptrace
    shift
  fi
  shift
  # shellcheck disable=SC2086  # no word where the switch is off
  "$bin/seccomp_export" "$base" $switch >"$work/program" || return 125
  bwrap --unshare-all --die-with-parent --ro-bind / / --dev /dev --proc /proc --tmpfs /dev/shm --bind "$work" "$work" \
    --chdir "$work" --setenv HOME "$work" --setenv TMPDIR "$work" --cap-drop ALL --seccomp 9 "$@" 9<"$work/program"
}
