# Sourced by scripts whose checks are lines: run.sh, deb/within.sh, vm/install/.

# passes WHAT COMMAND...: a line for a check; the first one that fails ends all. $count: how many have passed.
count=0
passes() {
  local what=$1 start=$SECONDS out
  shift
  if out=$("$@" 2>&1); then
    echo "ok: $what ($((SECONDS - start)) s)"
    count=$((count + 1))
  else
    printf 'FAILED: %s\n%s\n' "$what" "$out"
    exit 1
  fi
}

# says WANTED COMMAND...: the command prints it, whatever its status. strictly: and it succeeds.
says() {
  local wanted=$1 out
  shift
  out=$("$@" 2>&1) || true
  [[ $out == *"$wanted"* ]] || { printf 'wanted: %s\nsaid: %s\n' "$wanted" "$out"; return 1; }
}
strictly() {
  local wanted=$1 out
  shift
  out=$("$@" 2>&1) && [[ $out == *"$wanted"* ]] || { printf 'wanted: %s\nsaid: %s\n' "$wanted" "$out"; return 1; }
}

# ends_with STATUS COMMAND...: the command has this exit status.
ends_with() {
  local wanted=$1 status=0
  shift
  "$@" || status=$?
  [ $status = "$wanted" ] || { echo "status: $status, wanted: $wanted"; return 1; }
}
