from __future__ import annotations

import pytest

from sandy import _shell_script


@pytest.mark.parametrize(
    ("heard", "told"),
    [
        ([b"bash: NAME: 3\n"], 3),
        ([b"bash: line 4: NA", b"ME: 12", b"7\n"], 127),
        ([b"noise" * 50_000, b"\n+ x\ndash: 3: NAME: 0\n"], 0),
        ([b"bash: 127 @ NAME: syntax error: invalid arithmetic operator"], 127),
        ([b"bash: line 4: 0 @ NA", b"ME : Syntaxfehler"], 0),
        ([b"bash: 1 @ NAMES: "], None),
        ([b"bash: 1000 @ NAME: "], None),
        ([b"bash: $? @ NAME: "], None),
        ([b"bash: NAMES: 3\n"], None),
        ([b"bash: xNAME: 3\n"], None),
        ([b"bash: NAME: 3"], None),
        ([b"bash: NAME: 3000\n"], None),
        ([b"bash: NAME: \n"], None),
        ([b"bash: OTHER: 1\n"], None),
    ],
)
def test_messages(heard: list[bytes], told: int | None) -> None:
    messages = _shell_script.Messages()
    for data in heard:
        messages.hear(data)
    assert messages.find("NAME") == told
    assert messages.find("NAME") is None


def test_names_are_not_used_twice() -> None:
    assert len({_shell_script.new_name() for _ in range(1000)}) == 1000


def test_a_command_is_one_word_of_one_line() -> None:
    line = _shell_script.begin("NAME", 60, b"echo 'a'\nb", 0)
    assert b"\\builtin eval ' echo '\\''a'\\''\nb' </dev/null 2>&1 60>&-\n" in line
    assert b"(exit 7)" in _shell_script.begin("NAME", 60, b"", 7)
    assert b"\\command eval ' x' </dev/null 2>&1 9>&-\n" in _shell_script.begin("NAME", 9, b"x", 0)
