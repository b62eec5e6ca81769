#!/bin/bash
# In the guest, as root: the Debian packages, used by a user without any rights.
set -euo pipefail
. ./passes.sh
user() { (cd /home/tester && setpriv --reuid tester --regid tester --init-groups env -i PATH=/usr/local/bin:/usr/bin:/bin LC_ALL=C.UTF-8 HOME=/home/tester XDG_RUNTIME_DIR=/run/user/1000 "$@"); }
if command -v sandy >/dev/null; then
  echo "FAILED: there is a sandy already, so this proves nothing"
  exit 1
fi
system() { find /etc /usr /var/lib -xdev ! -path '/var/lib/dpkg/*' ! -path '*/__pycache__*' -printf '%p\n' | sort; }
before=$(system)

passes "dpkg -i" dpkg -i packages/*.deb
passes "a command" strictly "it is sandbox" user sandy run --private-workspace -- sh -c 'echo "it is $(id -un)"'
passes "a limit that the kernel enforces" says "memory limit 64 MiB" user sandy run --private-workspace --memory 64M -- python3 -c 'b = b"x" * (200 << 20)'
passes "doctor" user sandy doctor
passes "verify" strictly " 0 succeeded" user sandy verify
passes "Python" strictly "b'hello\\n'" user /usr/bin/python3 -c 'import sandy
with sandy.Sandbox() as sandbox:
    print(sandbox.run(["echo", "hello"]).stdout)'
for page in man1/sandy.1 man1/sandy-verify.1 man5/sandy-policy.5; do passes "$page" gzip -t "/usr/share/man/$page.gz"; done
passes "completion for bash" bash -c '. /usr/share/bash-completion/completions/sandy && complete -p sandy'
passes "dpkg -P" dpkg -P python3-deepagents-sandbox sandy
[ "$(system)" = "$before" ] || { echo "FAILED: left after a purge:"; diff <(echo "$before") <(system); exit 1; }
echo "ok: nothing is left after a purge"
echo "$((count + 1)) passed"
