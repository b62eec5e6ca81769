"""Shells with sandy's completion loaded, for tests: what they offer for a line, as their users get it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import termios
import time

from support import USUAL_PATH, need

PATIENCE = 60.0
PROMPT = "ready> "


class Shell:
    """An interactive shell at a terminal of its own."""

    def __init__(self, argv: list[str], env: dict[str, str], cwd: pathlib.Path) -> None:
        need(shutil.which(argv[0], path=USUAL_PATH), argv[0])
        self._pid, self._fd = pty.fork()
        if self._pid == 0:
            os.chdir(cwd)
            os.execve(shutil.which(argv[0], path=USUAL_PATH) or "", argv, env)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", 1000, 200, 0, 0))
        self._asked = 0
        self._read_until(PROMPT)

    def type(self, keys: str) -> str:
        """What the terminal shows after these keys and a command that ends them. That command's words, as typed, are not its output.

        It returns at the next prompt: before that, the terminal would take ^U for itself.
        """
        self._asked += 1
        os.write(self._fd, f"{keys}\x15echo end{self._asked}''mark\n".encode())
        return self._read_until(rf"end{self._asked}mark\r\n.*{PROMPT}")

    def _read_until(self, mark: str) -> str:
        text, end = "", time.monotonic() + PATIENCE
        while not re.search(mark, text, re.DOTALL):
            left = end - time.monotonic()
            assert left > 0 and select.select([self._fd], [], [], left)[0], f"no {mark} within {PATIENCE} s: {text!r}"
            try:
                text += os.read(self._fd, 65536).decode(errors="replace")
            except OSError:
                raise AssertionError(f"the shell has ended: {text!r}") from None
        return text

    def close(self) -> None:
        os.close(self._fd)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


class Bash(Shell):
    """Lists what readline would offer: one word a line."""

    def __init__(self, env: dict[str, str], cwd: pathlib.Path) -> None:
        super().__init__(["bash", "--norc", "--noprofile", "-i"], {**env, "PS1": PROMPT, "TERM": "dumb"}, cwd)
        for setting in ("completion-display-width 0", "completion-query-items -1", "page-completions off", "bell-style none", "enable-bracketed-paste off"):
            self.type(f"bind 'set {setting}'\n")
        self.type("bind '\"\\C-t\": possible-completions'; source <(sandy completion bash)\n")

    def offers(self, line: str) -> set[str]:
        shown = self.type(f"{line}\x14").split("echo end")[0]
        if f"\n{PROMPT}" in shown:
            return {word.rstrip("/") for word in shown.replace("\r", "").split(f"\n{PROMPT}")[0].split("\n")[1:] if word}
        # The only one there is may be put into the line at once.
        typed = shown.split("\r")[0]
        return {re.split("[ =]", typed.rstrip())[-1].rstrip("/")} if typed.startswith(line) and len(typed) > len(line) else set()


class Zsh(Shell):
    """Writes down what functions add for the line: what is shown is made for people."""

    def __init__(self, env: dict[str, str], cwd: pathlib.Path) -> None:
        self._added = cwd.parent / "added"
        super().__init__(["zsh", "-f", "-i"], {**env, "PS1": PROMPT, "TERM": "dumb", "SANDY_ADDED": str(self._added)}, cwd)
        self.type(f"unsetopt zle_bracketed_paste; LISTMAX=100000; autoload -Uz compinit; compinit -u -d {cwd.parent}/dump; source <(sandy completion zsh)\n")
        self.type(
            "compadd() { local -a found; if [[ ${argv[(I)-(O|A|D)]} = 0 ]]; then builtin compadd -O found \"$@\"; print -rl -- $found >> $SANDY_ADDED; fi; builtin compadd \"$@\" }\n"
        )

    def offers(self, line: str) -> set[str]:
        self._added.write_text("")
        self.type(f"{line}\t")
        return {word.rstrip("/=") for word in self._added.read_text().split("\n") if word.strip("-")}


class Fish:
    """Asks fish itself."""

    def __init__(self, env: dict[str, str], cwd: pathlib.Path) -> None:
        need(shutil.which("fish", path=USUAL_PATH), "fish")
        self._env, self._cwd = env, cwd

    def offers(self, line: str) -> set[str]:
        script = 'sandy completion fish | source; complete -C "$argv[1]"'
        got = subprocess.run(["fish", "--no-config", "-c", script, line], env=self._env, cwd=self._cwd, capture_output=True, text=True, timeout=PATIENCE, check=True)
        assert not got.stderr, got.stderr
        return {word.split("\t")[0].rstrip("/") for word in got.stdout.split("\n") if word}

    def close(self) -> None:
        pass
