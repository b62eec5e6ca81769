# Sourced by scripts that work in steps: each step's output goes to a log, and on the screen is what a person wants to know.
# On a terminal a running step has a status line; elsewhere it prints a plain line now and then, so that nobody takes it for hung.
# Needs $log_dir.

if [ -t 1 ]; then _tty=1; else _tty=; fi
_running=() # processes of steps, as indices

note() { printf '%s\n' "$*"; }

die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

_clock() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

# What the step is doing now: the last of its log's lines that says how far it is, or else the last one that says something.
_last_line() {
  tail -c 4000 "$1" 2>/dev/null | tr '\r' '\n' | tr -cd '\n[:print:]' |
    awk '/^\[[0-9]+\/[0-9]+\]/ {far = $0} /[^[:space:]]/ {last = $0} END {print far == "" ? last : far}'
}

# follow TITLE PID LOG: shows progress until the process ends; its status is the result.
follow() {
  local title=$1 pid=$2 log=$3 start=$SECONDS next=15 line width
  while kill -0 "$pid" 2>/dev/null; do
    if [ -n "$_tty" ]; then
      width=$(tput cols 2>/dev/null || echo 80)
      line="$title  $(_clock $((SECONDS - start)))  $(_last_line "$log")"
      printf '\r\033[K%s' "${line:0:width-1}"
      sleep 0.5
    else
      sleep 0.2
      if ((SECONDS - start >= next)); then
        line=$(_last_line "$log")
        printf '  ... %s  %s\n' "$(_clock $((SECONDS - start)))" "${line:0:110}"
        next=$((next < 60 ? next + 15 : next + 30))
      fi
    fi
  done
  if [ -n "$_tty" ]; then printf '\r\033[K'; fi
  local status=0
  wait "$pid" || status=$?
  unset "_running[$pid]"
  if [ $status = 0 ]; then
    [ -z "$_tty" ] || printf '%s: done (%s)\n' "$title" "$(_clock $((SECONDS - start)))"
    [ -n "$_tty" ] || printf '  done (%s)\n' "$(_clock $((SECONDS - start)))"
    return 0
  fi
  printf '%s: FAILED. The end of %s:\n' "$title" "$log" >&2
  tail -n 40 "$log" >&2
  return 1
}

# begin NAME COMMAND...: starts a step in the background; $begun is its process, and its log is $log_dir/NAME.log.
begin() {
  local name=$1
  shift
  set -m # a process group of its own, so that it can be ended with all that it started
  "$@" >"$log_dir/$name.log" 2>&1 </dev/null &
  begun=$!
  set +m
  _running[begun]=1
}

# end_steps: ends what still runs. For a trap on EXIT.
end_steps() {
  local pid
  for pid in "${!_running[@]}"; do kill -TERM -- "-$pid" 2>/dev/null || true; done
  _running=()
}

# step TITLE COMMAND...: runs the command with progress. Ends the script where it fails.
step() {
  local title=$1 name
  shift
  name=$(printf '%s' "$title" | tr -cs '[:alnum:]' - | tr '[:upper:]' '[:lower:]')
  name=${name%-}
  [ -n "$_tty" ] || note "$title"
  begin "$name" "$@"
  follow "$title" "$begun" "$log_dir/$name.log" || exit 1
}

# jobs_here: how many compilations at once. One takes up to 1.2 GB.
jobs_here() {
  local by_memory cores
  by_memory=$(($(awk '/^MemAvailable:/ {print $2}' /proc/meminfo) / 1200000))
  cores=$(nproc)
  echo $((by_memory < 1 ? 1 : by_memory < cores ? by_memory : cores))
}
