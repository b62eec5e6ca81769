#!/usr/bin/env bash
# Builds the wheel, the sdist and the Debian packages twice, in two directories, and compares: all must be the same, byte for byte.
#
# usage: tests/reproducible.sh [--only wheel|deb] DIRECTORY     what is built stays in DIRECTORY/{1,2}; everything is compiled twice
#
# Needs what packaging/build-wheel.sh (with PYTHON) and packaging/build-deb.sh need.
set -euo pipefail
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
kinds=(wheel deb)
if [ "${1:-}" = --only ]; then
  kinds=("${2:?--only needs wheel or deb}")
  shift 2
fi
[ $# = 1 ] && [[ $1 != -* ]] || { sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" >&2; exit 2; }
directory=$(realpath -m "$1")
rm -rf "$directory"/{1,2}
export CCACHE_DISABLE=1 # or the second build would be the first one's
# Paths of different lengths, another time zone and locale, and other modification times. Both are copied before anything is built, so that both are the same.
copy_of() { echo "$directory/$1/sources$([ "$1" = 1 ] || echo -in-another-place)"; }
for turn in 1 2; do
  mkdir -p "$(copy_of $turn)"
  tar -C "$source_dir" --exclude=./build --exclude=./dist --exclude=./.git --exclude=__pycache__ -cf - . | tar -C "$(copy_of $turn)" --touch --no-same-owner -xf -
done
for turn in 1 2; do
  copy=$(copy_of $turn)
  export TZ=$([ $turn = 1 ] && echo UTC || echo Pacific/Kiritimati)
  for kind in "${kinds[@]}"; do
    case $kind in
    wheel) "$copy/packaging/build-wheel.sh" --build-dir "$copy/build/wheel" "$directory/$turn/out" ;;
    deb) "$copy/packaging/build-deb.sh" --build-dir "$directory/$turn/deb$([ $turn = 1 ] || echo -in-another-place)" "$directory/$turn/out" ;;
    *) echo "no such kind: $kind" >&2; exit 2 ;;
    esac
  done
done

sums() { (cd "$directory/$1/out" && find . -type f \( -name '*.whl' -o -name '*.tar.gz' -o -name '*.deb' \) -print0 | sort -z | xargs -0 sha256sum); }
sums 1
[ "$(sums 1 | wc -l)" -gt 0 ]
if diff <(sums 1) <(sums 2); then
  echo "$(sums 1 | wc -l) passed: each file of the second build is the first one's"
else
  echo "1 failed"
  exit 1
fi
