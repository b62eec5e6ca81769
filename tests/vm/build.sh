#!/usr/bin/env bash
# Builds a Debian guest for run.py: a real systemd with a user manager, cgroup v2, and the unprivileged user `tester` (uid 1000).
#
# usage: tests/vm/build.sh bookworm|trixie
#
# Writes root.img, kernel and initrd to $SANDY_VM_DIR/SUITE (default: build/vm in the checkout). Does nothing if what is there was built from the
# same files. Needs root, the packages of packaging/dependencies/vm.txt, and the host's apt sources. 1 to 2 minutes.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
suite=${1:?usage: tests/vm/build.sh bookworm|trixie}
target=${SANDY_VM_DIR:-$here/../../build/vm}/$suite
image_mib=1600
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
mkdir -p "$target"
target=$(cd "$target" && pwd -P)

made_from=$(cat "$here/build.sh" "$here"/guest/* | sha256sum)
if [ "$(cat "$target/made-from" 2>/dev/null)" = "$made_from" ] && [ -f "$target/root.img" ]; then
  echo "The guest $suite is there: $target"
  exit
fi
work=$(mktemp -d "$target/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
root=$work/root

# The mirror that this machine installs from.
mirror=$(awk '/^URIs:/ {print $2; exit}' /etc/apt/sources.list.d/debian.sources 2>/dev/null || true)
[ -n "$mirror" ] || mirror=$(awk '$1 == "deb" {print ($2 ~ /^\[/) ? $3 : $2; exit}' /etc/apt/sources.list)

install_base() {
  local packages
  packages=$(sed -e 's/#.*//' -e '/^$/d' "$here/guest/packages.txt" | tr '\n' ',')
  if ! debootstrap --variant=minbase --include="${packages%,}" --keyring="$keyring" "$suite" "$root" "$mirror" >"$work/log" 2>&1; then
    tail -n 5 "$work/log" >&2
    return 1
  fi
  rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,man,info,locale}/* "$root"/var/log/*
}

# The suite's own kernel, by an apt of its own: the host's is of another suite.
install_kernel() {
  local apt=$work/apt options package
  mkdir -p "$apt"/{state/lists/partial,cache/archives/partial,parts,packages}
  printf 'deb [signed-by=%s] %s %s main\n' "$keyring" "$mirror" "$suite" >"$apt/parts/guest.list"
  options=(-o Dir::State="$apt/state" -o Dir::State::status=/dev/null -o Dir::Cache="$apt/cache" -o Dir::Etc::SourceList=/dev/null
    -o Dir::Etc::SourceParts="$apt/parts" -o APT::Sandbox::User=root)
  apt-get "${options[@]}" -qq update
  package=$(apt-cache "${options[@]}" depends linux-image-cloud-amd64 | awk '/Depends: linux-image/ {print $2; exit}')
  (cd "$apt/packages" && apt-get "${options[@]}" -qq download "$package")
  dpkg -x "$apt"/packages/linux-image-*.deb "$work/kernel"
  modules=$work/kernel/lib/modules
  [ -d "$modules" ] || modules=$work/kernel/usr/lib/modules # trixie
  version=$(ls "$modules")
  cp "$work/kernel/boot/vmlinuz-$version" "$target/kernel"
  # Those that sandboxes and the virtual hardware may need.
  local part
  mkdir -p "$root/lib/modules/$version"
  cp "$modules/$version"/modules.{order,builtin*} "$root/lib/modules/$version/"
  for part in kernel/{net,crypto,lib,arch} kernel/fs/{overlayfs,fuse,nls} kernel/drivers/{virtio,block,net/veth.ko*,net/dummy.ko*,net/tun.ko*} kernel/drivers/char/virtio_console.ko*; do
    for part in "$modules/$version"/$part; do
      [ -e "$part" ] || continue
      mkdir -p "$root/lib/modules/$version/$(dirname "${part#"$modules/$version"/}")"
      cp -a "$part" "$root/lib/modules/$version/$(dirname "${part#"$modules/$version"/}")/"
    done
  done
  chroot "$root" depmod "$version"
}

configure() {
  local unit units=$root/etc/systemd/system
  echo sandy-vm >"$root/etc/hostname"
  printf '127.0.0.1 localhost sandy-vm\n::1 localhost\n' >"$root/etc/hosts"
  echo 0123456789abcdef0123456789abcdef >"$root/etc/machine-id"
  chroot "$root" useradd --create-home --uid 1000 --user-group --shell /bin/bash tester
  mkdir -p "$root"/var/lib/systemd/linger "$root"/etc/systemd/{journald.conf.d,system-generators} "$units/user@.service.d"
  : >"$root/var/lib/systemd/linger/tester"
  printf '[Journal]\nStorage=volatile\nRuntimeMaxUse=8M\n' >"$root/etc/systemd/journald.conf.d/vm.conf"
  # One guest as Debian has it, and one whose users may limit I/O, with what `sandy doctor` says is needed for that.
  if [ "$suite" = trixie ]; then printf '[Service]\nDelegate=cpu cpuset io memory pids\n' >"$units/user@.service.d/delegate.conf"; fi
  cat >"$units/sandy-vm-agent.service" <<'X'
[Unit]
Description=Runs the host's command as tester
Requires=user@1000.service
After=user@1000.service systemd-logind.service dbus.service systemd-user-sessions.service
[Service]
ExecStart=/usr/local/lib/sandy-vm-agent
StandardInput=null
KillMode=process
TasksMax=infinity
X
  cat >"$units/sandy-vm.target" <<'X'
[Unit]
Description=All that the tests need
Requires=basic.target dbus.service systemd-logind.service sandy-vm-agent.service
Wants=systemd-user-sessions.service
After=basic.target
AllowIsolate=yes
X
  : >"$root/etc/fstab"
  ln -sf sandy-vm.target "$units/default.target"
  # What a machine of a few minutes' life has no use for, and would boot more slowly with.
  for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer logrotate.timer \
    systemd-tmpfiles-clean.timer getty.target systemd-random-seed.service systemd-update-utmp.service systemd-update-utmp-runlevel.service \
    systemd-machine-id-commit.service systemd-firstboot.service systemd-pstore.service systemd-journal-flush.service systemd-binfmt.service \
    proc-sys-fs-binfmt_misc.automount systemd-boot-system-token.service dev-hugepages.mount dev-mqueue.mount sys-kernel-debug.mount \
    sys-kernel-tracing.mount sys-kernel-config.mount modprobe@.service systemd-modules-load.service ldconfig.service systemd-update-done.service \
    run-lock.mount systemd-journal-catalog-update.service systemd-pcrphase.service systemd-pcrphase-sysinit.service systemd-repart.service \
    systemd-growfs-root.service systemd-timesyncd.service systemd-tpm2-setup.service systemd-tpm2-setup-early.service \
    systemd-hibernate-clear.service systemd-battery-check.service systemd-ask-password-console.path systemd-ask-password-wall.path cryptsetup.target; do
    ln -sf /dev/null "$units/$unit"
  done
  for unit in "$root"/usr/lib/systemd/system-generators/* "$root"/lib/systemd/system-generators/*; do
    [ ! -e "$unit" ] || ln -sf /dev/null "$root/etc/systemd/system-generators/$(basename "$unit")"
  done
  install -m 755 "$here/guest/agent" "$root/usr/local/lib/sandy-vm-agent"
  install -m 755 "$here/guest/session" "$root/usr/local/lib/sandy-vm-session"
  rm -rf "$root"/dev/*
  mkdir -p "$root"/{proc,sys,dev,run,tmp,payload}
}

# busybox, and the modules with which the root disk is found.
make_initrd() {
  local initrd=$work/initrd modules=$root/lib/modules/$version number=10 module
  mkdir -p "$initrd"/{bin,proc,sys,dev,root,modules}
  cp "$(command -v busybox)" "$initrd/bin/busybox"
  for module in $(awk -F: -v wanted='virtio_mmio virtio_pci virtio_blk virtio_console virtio_rng ext4' '
      { name = $1; sub(/.*\//, "", name); sub(/\.ko.*/, "", name); path[name] = $1; needs[$1] = $2 }
      function emit(p,  all, i, n) { if (p in done) return; done[p] = 1; n = split(needs[p], all, " "); for (i = n; i >= 1; i--) emit(all[i]); print p }
      END { n = split(wanted, all, " "); for (i = 1; i <= n; i++) if (all[i] in path) emit(path[all[i]]) }' "$modules/modules.dep"); do
    case $module in
    *.xz) xz -dc "$modules/$module" >"$initrd/modules/$number-$(basename "${module%.xz}")" ;;
    *.zst) zstd -dcq "$modules/$module" >"$initrd/modules/$number-$(basename "${module%.zst}")" ;;
    *) cp "$modules/$module" "$initrd/modules/$number-$(basename "$module")" ;;
    esac
    number=$((number + 1))
  done
  cat >"$initrd/init" <<'X'
#!/bin/busybox sh
b=/bin/busybox
$b mount -t proc p /proc
$b mount -t sysfs s /sys
$b mount -t devtmpfs d /dev
for m in /modules/*; do $b insmod "$m"; done
n=0
disk=
while [ -z "$disk" ] && [ $n -lt 200 ]; do
  for d in /sys/block/vd*; do
    serial=
    read -r serial <"$d/serial" 2>/dev/null
    [ "$serial" != root ] || disk=/dev/${d##*/}
  done
  [ -n "$disk" ] || $b usleep 20000
  n=$((n + 1))
done
$b mount -t ext4 -o rw,noatime "$disk" /root || { echo "no root disk"; $b poweroff -f; }
for d in dev proc sys; do $b mount --move /$d /root/$d; done
exec $b switch_root /root /sbin/init
X
  chmod 755 "$initrd/init"
  (cd "$initrd" && find . | cpio --quiet -o -H newc) >"$target/initrd"
}

install_base
install_kernel
configure
make_initrd
rm -rf "$target/root.img" "$target/state"
truncate -s "${image_mib}M" "$target/root.img"
mke2fs -q -t ext4 -O ^has_journal -E lazy_itable_init=1,root_owner=0:0 -m 0 -d "$root" "$target/root.img"
echo "$made_from" >"$target/made-from"
echo "The guest $suite: $target, Linux $version, $(du -h "$target/root.img" | cut -f1)"
