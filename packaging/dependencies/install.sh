# Sourced by scripts that need packages; they have set $source_dir to the repository's root and sourced packaging/steps.sh.
# Only what is missing is installed, so that a machine that has all needs neither root nor a network.

# wanted LIST...: the names in packaging/dependencies/LIST.txt, one a line, alternatives as "a|b".
wanted() {
  local list
  for list; do
    sed -e 's/#.*//' -e 's/[[:space:]]//g' -e '/^$/d' "$source_dir/packaging/dependencies/$list.txt"
  done
}

installed() {
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# missing LIST...: those of which no alternative is installed.
missing() {
  local line name
  for line in $(wanted "$@"); do
    for name in ${line//|/ }; do
      if installed "$name"; then continue 2; fi
    done
    echo "$line"
  done
}

# as_root COMMAND...: as it is for root, by sudo for others.
as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  else
    sudo -- "$@"
  fi
}

_apt_install() {
  local line name names=()
  as_root apt-get update
  for line; do
    for name in ${line//|/ }; do
      # Not `show`, which succeeds for a name that others merely refer to.
      if [ -n "$(apt-cache madison "$name" 2>/dev/null)" ]; then
        names+=("$name")
        continue 2
      fi
    done
    echo "no package $line in this distribution's lists"
    return 1
  done
  # A settings file that is there already stays: dpkg would ask, and nobody is there to answer.
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends -o Dpkg::Use-Pty=0 \
    -o DPkg::Lock::Timeout=120 -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold "${names[@]}"
}

# install_packages LIST...: installs what is missing, or says what to do and fails.
install_packages() {
  local lines
  mapfile -t lines < <(missing "$@")
  if [ ${#lines[@]} = 0 ]; then
    note "Debian packages: all there"
    return
  fi
  command -v apt-get >/dev/null ||
    die "this machine has no apt-get. Install by hand what stands in packaging/dependencies/ (missing: ${lines[*]})"
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null ||
      die "packages are missing, and there is no sudo. As root: apt-get install ${lines[*]%%|*}"
    # The password is asked for here, where it can be seen.
    sudo -v || die "packages are missing. As root: apt-get install ${lines[*]%%|*}"
  fi
  step "Installing ${#lines[@]} Debian packages" _apt_install "${lines[@]}"
}
