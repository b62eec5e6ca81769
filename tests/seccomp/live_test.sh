#!/bin/sh
# Loads each built-in policy's program with plain bwrap and compares what live_probe meets with live.table.
# usage: live_test.sh BIN_DIR   (where seccomp_export and seccomp_live_probe are)
set -u
bin=$(cd "$1" && pwd) || exit 1
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$here/sandbox_lib.sh"
need_bwrap

failures=0
checks=0

# compare COLUMN TITLE: $work/seen against that column of live.table.
compare() {
  while read -r name default strict ptrace; do
    case $name in '' | '#'*) continue ;; esac
    case $1 in 1) want=$default ;; 2) want=$strict ;; *) want=$ptrace ;; esac
    got=$(sed -n "s/^$name //p" "$work/seen")
    checks=$((checks + 1))
    case "|$want|" in
    *"|$got|"*) ;;
    *)
      failures=$((failures + 1))
      echo "FAIL: $2: $name: want $want, got ${got:-nothing}"
      ;;
    esac
  done <"$here/live.table"
  lines=$(grep -cv -e '^#' -e '^$' "$here/live.table")
  seen=$(grep -cv -e '^i386-' -e '^x32-' "$work/seen")
  if [ "$lines" != "$seen" ]; then
    failures=$((failures + 1))
    echo "FAIL: $2: live.table has $lines probes, live_probe made $seen"
  fi
  if [ "$(uname -m)" = x86_64 ]; then
    checks=$((checks + 2))
    for abi in i386 x32; do
      got=$(sed -n "s/^$abi-getpid //p" "$work/seen")
      [ "$got" = "Bad system call" ] && continue
      # Without the i386 table in the kernel the instruction itself faults.
      [ "$abi $got" = "i386 Segmentation fault" ] && continue
      failures=$((failures + 1))
      echo "FAIL: $2: $abi-getpid: want it killed, got ${got:-nothing}"
    done
  fi
}

run() {
  title=$1
  column=$2
  shift 2
  if ! sandboxed "$@" -- "$bin/seccomp_live_probe" >"$work/seen" 2>"$work/err"; then
    failures=$((failures + 1))
    echo "FAIL: $title: live_probe did not end well: $(cat "$work/err")"
    return
  fi
  compare "$column" "$title"
}

# Positive control: without a filter these answer something else, so the table tells kernel and filter apart.
control() {
  bwrap --unshare-all --die-with-parent --ro-bind / / --dev /dev --proc /proc --cap-drop ALL \
    "$bin/seccomp_live_probe" >"$work/open" 2>"$work/err"
  for name in clone3 mount umount2 setns chroot io_uring_enter add_key settimeofday ptrace process_vm_readv \
    pidfd_getfd personality-exec ioctl-tiocsti ioctl-tiocsti-high-bits ioctl-tioclinux; do
    checks=$((checks + 1))
    open=$(sed -n "s/^$name //p" "$work/open")
    refused=$(sed -n "s/^$name //p" "$work/seen")
    [ -n "$open" ] && [ "$open" != "$refused" ] && continue
    failures=$((failures + 1))
    echo "FAIL: control: $name answers ${open:-nothing} with and without the filter: $(cat "$work/err")"
  done
}

run default 1 default
control
run strict 2 strict
run "default with ptrace" 3 default ptrace

echo "$checks checks, $failures failures"
[ "$failures" = 0 ]
