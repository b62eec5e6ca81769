# Sourced by user.sh and packages.sh.

# passes WHAT COMMAND...: a line for a check; the first one that fails ends all.
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

# says WANTED COMMAND...: the command succeeds, and prints it.
says() {
  local wanted=$1 out
  shift
  out=$("$@" 2>&1) && [[ $out == *"$wanted"* ]] || { printf 'wanted: %s\nsaid: %s\n' "$wanted" "$out"; return 1; }
}

files_of() { find "$1" -mindepth 1 -printf '%P\n' | sort; }
