#!/usr/bin/env bash
# From a fresh checkout to a deep agent at work in a sandbox, on Debian 12 or 13 (or a relative of theirs).
#
# usage: packaging/quickstart.sh
#
# Needs root or sudo, and only to install Debian packages: where all of packaging/dependencies/{build,run}.txt are installed,
# neither is asked for. Needs a network for packages from Debian and PyPI. Everything else stays in build/ (see below).
#
# ANTHROPIC_API_KEY or OPENAI_API_KEY in the environment: that model does the work. Without, a scripted one does, offline.
# SANDY_QUICKSTART_MODEL: "scripted", or a model as langchain's init_chat_model names it.
# SANDY_QUICKSTART_DIR: where the virtual environment and the chart go (default: build/ of the checkout, or
# /var/tmp/sandy-quickstart for root where only root can enter the checkout: the sandbox runs as an unprivileged user).
set -euo pipefail
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
case ${1:-} in
"") ;;
*)
  sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
  case $1 in -h | --help) exit 0 ;; *) exit 2 ;; esac
  ;;
esac
cd "$source_dir"
umask 022

# Whether users without any rights of their own can enter a directory.
open_to_all() {
  local path=$1
  while [ -n "$path" ]; do
    [ $(($(stat -c 0%a "$path") & 1)) = 1 ] || return 1
    path=${path%/*}
  done
}

top=${SANDY_QUICKSTART_DIR:-}
if [ -z "$top" ]; then
  top=$source_dir/build
  if [ "$(id -u)" = 0 ] && ! open_to_all "$source_dir"; then
    top=/var/tmp/sandy-quickstart
    # Others can make names in /var/tmp.
    if [ -e "$top" ] || [ -L "$top" ]; then
      [ ! -L "$top" ] && [ "$(stat -c %u "$top")" = 0 ] || {
        echo "quickstart.sh: $top is somebody else's: set SANDY_QUICKSTART_DIR" >&2
        exit 1
      }
    fi
  fi
fi
mkdir -p "$top/quickstart" build
top=$(cd "$top" && pwd -P)
log_dir=$top/quickstart
. packaging/steps.sh
. packaging/dependencies/install.sh
trap end_steps EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

release=$source_dir/build/release
venv=$top/venv
python=$venv/bin/python3

build_programs() {
  cmake --preset release
  cmake --build --preset release --parallel "$(jobs_here)"
}

# The virtual environment with what the example needs, as far as it can be had while the programs are compiled.
make_venv() {
  if ! [ -x "$python" ] || ! "$python" -m pip --version >/dev/null 2>&1; then
    /usr/bin/python3 -m venv --clear "$venv"
  fi
  local wanted
  wanted=$(wanted quickstart-python | tr '\n' ' ')
  if [ "$(cat "$venv/requirements.done" 2>/dev/null)" != "$wanted" ]; then
    # shellcheck disable=SC2086  # a list of names
    "$python" -m pip install --disable-pip-version-check --no-input --progress-bar off scikit-build-core deepagents $wanted
    echo "$wanted" >"$venv/requirements.done"
  fi
}

# What the installed package was made of.
package_state() {
  {
    find python/src python/pyproject.toml VERSION -type f ! -name '*.pyc' -print0 | sort -z | xargs -0 sha256sum
    sha256sum "$release"/bin/sandy*
  } | sha256sum
}

install_package() {
  # The wheel takes the programs that were just built: its build directory is theirs, so nothing is compiled twice.
  "$python" -m pip install --disable-pip-version-check --no-input --progress-bar off --no-build-isolation \
    --config-settings=build-dir="$release" './python[deepagents]'
}

note "Sandy's quickstart. Logs: $log_dir/"
install_packages build run
begin venv make_venv
venv_job=$begun
step "Compiling the programs ($(jobs_here) at once; some minutes the first time)" build_programs
[ -n "$_tty" ] || note "Python packages"
follow "Python packages" "$venv_job" "$log_dir/venv.log" || exit 1
state=$(package_state)
if [ "$(cat "$venv/package.done" 2>/dev/null)" = "$state" ]; then
  note "The package deepagents-sandbox: as before"
else
  step "Installing the package deepagents-sandbox" install_package
  echo "$state" >"$venv/package.done"
fi

note ""
status=0
# The installed programs are tried, not those of an environment variable.
env -u SANDY_PROGRAMS PYTHONDONTWRITEBYTECODE=1 "$python" packaging/quickstart/demo.py "$top/quickstart" || status=$?
if [ $status != 0 ]; then
  die "the example failed with status $status; see above. What this machine can do: $release/bin/sandy doctor"
fi
cat <<END

Next:
  $venv/bin/sandy run -- ls -la          # one command, the current directory writable
  $venv/bin/sandy plan -- make test      # what would be done
  $venv/bin/python3 packaging/quickstart/demo.py DIRECTORY
The Python API: README.md and python/README.md.
END
