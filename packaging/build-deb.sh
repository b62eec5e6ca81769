#!/usr/bin/env bash
# Builds the Debian packages, sandy and python3-deepagents-sandbox, from this checkout as it is.
#
# usage: packaging/build-deb.sh [--clean SUITE | --built DIR] [--build-dir DIR] OUTPUT
#
# --clean SUITE (bookworm or trixie): in a minimal root of that Debian, made by debootstrap with this machine's apt sources, in which nothing is
# installed but what debian/control names. Needs root. Without, on this system, whose packages must be there: packaging/dependencies/{build,deb}.txt.
# --built DIR: the programs are not compiled but those of CMake's build directory DIR, with the preset's compiler flags for Debian's: to try the packaging.
# --build-dir DIR: where the sources are copied to and compiled (default: a temporary directory). What is built doesn't depend on it.
#
# The same sources give the same files: times are those of the newest entry of packaging/debian/changelog (dpkg-buildpackage), and nothing of
# the directory gets into a program.
set -euo pipefail
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
umask 022
export LC_ALL=C.UTF-8

usage() {
  sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
  exit "$1"
}
suite= built= work= output=
while [ $# -gt 0 ]; do
  case $1 in
  -h | --help) usage 0 ;;
  --clean) suite=${2:?--clean needs a suite}; shift ;;
  --built) built=$(cd "${2:?--built needs a directory}" && pwd -P); shift ;;
  --build-dir) work=${2:?--build-dir needs a directory}; shift ;;
  -*) usage 2 >&2 ;;
  *) [ -z "$output" ] || usage 2 >&2; output=$1 ;;
  esac
  shift
done
[ -n "$output" ] || usage 2 >&2
[ -z "$suite" ] || [ -z "$built" ] || usage 2 >&2
mkdir -p "$output"
output=$(cd "$output" && pwd -P)

temporary=
on_exit() {
  [ -z "$suite" ] || umount "$work/root/dev" "$work/root/proc" 2>/dev/null || true
  [ -z "$temporary" ] || rm -rf --one-file-system "$temporary"
}
trap on_exit EXIT
if [ -z "$work" ]; then
  temporary=$(mktemp -d /var/tmp/sandy-deb.XXXXXX)
  work=$temporary
fi
mkdir -p "$work"
work=$(cd "$work" && pwd -P)

# copy_sources DIRECTORY: as dpkg-buildpackage wants them, with debian/ at the top.
copy_sources() {
  mkdir -p "$1"
  tar -C "$source_dir" --exclude=./build --exclude=./dist --exclude=./.git --exclude=__pycache__ --exclude='.*_cache' --exclude='*.egg-info' -cf - . |
    tar -C "$1" --no-same-owner -xf -
  cp -a "$1/packaging/debian" "$1/debian"
}

here() {
  copy_sources "$work/sandy"
  (cd "$work/sandy" && SANDY_BUILT=$built dpkg-buildpackage --build=binary --no-sign)
  mv "$work"/*.deb "$work"/*.buildinfo "$work"/*.changes "$output/"
}

in_clean_root() {
  local root=$work/root mirror from
  [ "$(id -u)" = 0 ] || { echo "--clean needs root, for debootstrap" >&2; exit 1; }
  mirror=$(awk '/^URIs:/ {print $2; exit}' /etc/apt/sources.list.d/debian.sources 2>/dev/null || true)
  [ -n "$mirror" ] || mirror=$(awk '$1 == "deb" {print ($2 ~ /^\[/) ? $3 : $2; exit}' /etc/apt/sources.list)
  debootstrap --variant=minbase --include=ca-certificates "$suite" "$root" "$mirror"
  echo "deb $mirror $suite main" >"$root/etc/apt/sources.list"
  for from in /etc/apt/apt.conf.d /usr/local/share/ca-certificates /etc/ssl/certs; do # how this machine reaches its mirror
    [ ! -d "$from" ] || { mkdir -p "$root$from" && cp -a "$from/." "$root$from/"; }
  done
  cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
  mount --bind /dev "$root/dev"
  mount -t proc proc "$root/proc"
  copy_sources "$root/build/sandy"
  chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive sh -euc '
    printf "force-confdef\nforce-confold\n" >/etc/dpkg/dpkg.cfg.d/nobody-to-ask  # apt.conf.d has files of this machine
    apt-get -qq update
    apt-get -qq install --yes --no-install-recommends build-essential
    cd /build/sandy
    apt-get -qq build-dep --yes --no-install-recommends ./
    dpkg-buildpackage --build=binary --no-sign'
  mv "$root"/build/*.deb "$root"/build/*.buildinfo "$root"/build/*.changes "$output/"
}

if [ -n "$suite" ]; then in_clean_root; else here; fi
