#!/usr/bin/env bash
# The Debian packages, installed and purged in a throwaway copy-on-write layer over this machine's own system: nothing of the machine changes.
#
# usage: tests/deb/check.sh DIRECTORY USER        as root; DIRECTORY has the packages (packaging/build-deb.sh), USER runs sandboxes
#
# Prints a line for each check, and at last "N passed" or "N failed"; exit status 1 if any failed.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
packages=$(cd "${1:?usage: check.sh DIRECTORY USER}" && pwd -P)
user=${2:?usage: check.sh DIRECTORY USER}
[ "$(id -u)" = 0 ] || { echo "needs root" >&2; exit 1; }

# In a mount namespace of our own, so that nothing stays mounted, however this ends.
if [ -z "${SANDY_DEB_LAYER:-}" ]; then
  layer=$(mktemp -d)
  trap 'rmdir "$layer"' EXIT
  SANDY_DEB_LAYER=$layer unshare --mount --propagation private "${BASH_SOURCE[0]}" "$packages" "$user"
  exit
fi
layer=$SANDY_DEB_LAYER
mount -t tmpfs tmpfs "$layer"
mkdir "$layer"/{upper,work,root,packages}
mount -t overlay overlay -o "lowerdir=/,upperdir=$layer/upper,workdir=$layer/work" "$layer/root"
cp "$packages"/*.deb "$layer/packages/"
version=$(cat "$here/../../VERSION")

# As pid 1 of a namespace: whatever is left running ends with it. Not a chroot, in which the kernel allows no user namespace.
status=0
unshare --mount --pid --fork --kill-child --propagation private bash -euc '
  mkdir -p "$1/root/.host"
  mount --rbind /dev "$1/root/dev"
  mount --rbind /sys "$1/root/sys"
  mount -t tmpfs -o mode=755 tmpfs "$1/root/run"
  mount -t tmpfs -o mode=1777 tmpfs "$1/root/tmp"
  mkdir "$1/root/tmp/packages"
  cp "$1"/packages/*.deb "$1/root/tmp/packages/"
  cp "$2/within.sh" "$2/../passes.sh" "$1/root/tmp/"
  cd "$1/root"
  pivot_root . .host
  cd /
  mount -t proc proc /proc
  umount -l /.host
  rmdir /.host
  exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    bash /tmp/within.sh "$3" "$4"
' bash "$layer" "$here" "$user" "$version" || status=$?

# What the layer has now is what an installation and a purge have changed. dpkg keeps its books, and others keep theirs of what dpkg did.
left=$(cd "$layer/upper" && find . \( -path ./var/lib/dpkg -o -path ./var/log -o -path ./var/cache -o -path ./var/lib/systemd \) -prune -o ! -type d -print)
for directory in $(cd "$layer/upper" && find . \( -path ./var/lib/dpkg -o -path ./var/log -o -path ./var/cache \) -prune -o -type d -print); do
  [ -d "/$directory" ] || left+=" $directory"
done
passed=$(cat "$layer/upper/var/log/sandy-deb-passed" 2>/dev/null || echo 0)
if [ $status = 0 ] && [ -z "$left" ]; then
  echo "ok: nothing is left after a purge"
  echo "$((passed + 1)) passed: installed, used and purged"
else
  [ -z "$left" ] || printf 'FAILED: a purge leaves\n%s\n' "$left"
  echo "1 failed"
  exit 1
fi
