# What check.sh runs in the layer: usage: within.sh USER VERSION
set -euo pipefail
. /tmp/passes.sh
user=$1 version=$2
home=/tmp/home
install -d -o "$user" -m 700 "$home"

as_user() {
  (cd "$home" && setpriv --reuid "$user" --regid "$user" --init-groups env -i PATH=/usr/local/bin:/usr/bin:/bin LC_ALL=C.UTF-8 HOME="$home" "$@")
}
all_there() {
  local path
  for path; do [ -e "$path" ] || { echo "$path is missing"; return 1; }; done
}
none_writable() {
  local found
  found=$(dpkg -L sandy python3-deepagents-sandbox | sort -u | while read -r path; do find "$path" -maxdepth 0 ! -type l \( -perm /6022 -o ! -user 0 \); done)
  [ -z "$found" ] || { echo "$found"; return 1; }
}

if command -v sandy >/dev/null; then
  echo "FAILED: this machine has a sandy in PATH already, so this proves nothing"
  exit 1
fi
passes "both packages are installed" dpkg -i /tmp/packages/sandy_*.deb /tmp/packages/python3-deepagents-sandbox_*.deb
passes "the programs, and the system's directory of policies" all_there /usr/libexec/sandy/{sandy,sandy-agent,sandy-attack,sandy-launch,sandy-proxy} /usr/share/sandy/seccomp/default.json /etc/sandy/policies
passes "all that is installed is root's, and nobody else can write to it" none_writable
passes "the command is a link to the program" test "$(readlink /usr/bin/sandy)" = ../libexec/sandy/sandy
passes "its version" says "sandy $version" as_user sandy --version
passes "a command in a sandbox" says "it is sandbox" as_user sandy run --private-workspace -- sh -c 'echo "it is $(id -un)"'
passes "doctor: a sandbox starts" as_user sandy doctor
passes "doctor: its own programs" says "sandy-proxy $version" as_user sandy doctor
passes "Python finds the installed program" says /usr/libexec/sandy/sandy as_user /usr/bin/python3 -c 'from sandy._programs import find_sandy; print(find_sandy())'
passes "Python: a sandbox" says "b'hello\\n' $version" as_user /usr/bin/python3 -c 'import sandy
with sandy.Sandbox() as sandbox:
    print(sandbox.run(["echo", "hello"]).stdout, sandy.__version__)'
passes "Python: what is missing for Deep Agents is said" says "needs deepagents" as_user /usr/bin/python3 -S -c '
import sys
sys.path.insert(0, "/usr/lib/python3/dist-packages")
sys.modules["deepagents"] = None
import deepagents_sandbox'
passes "both packages are purged" dpkg -P python3-deepagents-sandbox sandy
passes "the command is gone" says "not found" sh -c 'command -v sandy || echo not found'
echo "$count" >/var/log/sandy-deb-passed
