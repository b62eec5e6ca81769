#!/bin/bash
# In the guest, as a user without any rights: the wheel in a virtual environment.
set -euo pipefail
. ./passes.sh
here=$PWD
if [ "$(id -u)" = 0 ] || command -v sandy >/dev/null; then
  echo "FAILED: this is root, or there is a sandy already, so this proves nothing"
  exit 1
fi
files_of_home() { find ~ -mindepth 1 -printf '%P\n' | sort; }
before=$(files_of_home)
venv=~/venv

# Debian's Python makes an environment with pip only where python3-venv is, which needs root: pip runs from its own wheel.
passes "a virtual environment" /usr/bin/python3 -m venv --without-pip "$venv"
passes "pip install 'deepagents-sandbox[deepagents,bwrap]'" "$venv/bin/python3" "$(echo "$here"/wheels/pip-*.whl)/pip" install --no-index --no-compile -f "$here/wheels" 'deepagents-sandbox[deepagents,bwrap]'
mkdir ~/work
cd ~/work
passes "README's example, with a model that needs no key" strictly "ran as sandbox" "$venv/bin/python3" "$here/readme.py" "$here/README.md"
passes "a command" strictly "it is sandbox" "$venv/bin/sandy" run --private-workspace -- sh -c 'echo "it is $(id -un)"'
passes "a limit that the kernel enforces" says "memory limit 64 MiB" "$venv/bin/sandy" run --private-workspace --memory 64M -- python3 -c 'b = b"x" * (200 << 20)'
passes "doctor" "$venv/bin/sandy" doctor
passes "verify" sh -c "'$venv/bin/sandy' verify >~/table"
tail -n 1 ~/table
passes "verify, of a policy that shows the home directory" ends_with 1 sh -c "'$venv/bin/sandy' verify --read ~ >~/table"
tail -n 1 ~/table
passes "FAILs, with the rule that allows it" grep -q "read a file of your home directory.* FAIL .*the policy allows it: --read" ~/table
passes "the policies that come with it" strictly python-data "$venv/bin/sandy" policy list
passes "completion" strictly _sandy "$venv/bin/sandy" completion bash
passes "pip uninstall" "$venv/bin/python3" "$(echo "$here"/wheels/pip-*.whl)/pip" uninstall --yes deepagents-sandbox
passes "nothing of it is left in the environment" sh -c "! find '$venv' -path '*sandy*' | grep ."
cd
rm -rf "$venv" ~/work ~/table
# As README says; the directories above are everybody's.
rm -r ~/.local/state/sandy
rmdir -p .local/state
[ "$(files_of_home)" = "$before" ] || { echo "FAILED: left in the home directory:"; diff <(echo "$before") <(files_of_home); exit 1; }
echo "ok: nothing is left in the home directory"
echo "$((count + 1)) passed"
