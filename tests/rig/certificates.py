"""A certificate authority and one certificate of its, made by the program `openssl`."""

from __future__ import annotations

import dataclasses
import pathlib
import subprocess
from collections.abc import Sequence

# A wildcard stands for one label.
NAMES = (
    "a.example", "b.example", "c.example", "*.a.example", "*.b.example", "w.example", "*.w.example", "*.b.w.example", "example.com", "notexample.com",
    "front.example", "xn--bcher-kva.example",
)

_CONFIGURATION = """\
[req]
distinguished_name = name
prompt = no
[name]
CN = Sandy test rig
[ca]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[leaf]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
subjectAltName = {names}
"""


@dataclasses.dataclass(frozen=True)
class Certificates:
    authority: pathlib.Path  # what clients are told to trust
    chain: pathlib.Path
    key: pathlib.Path


def make_certificates(directory: pathlib.Path, names: Sequence[str] = NAMES) -> Certificates:
    """Keys and certificates in `directory`, valid for two days; some 50 ms."""
    (directory / "openssl.cnf").write_text(_CONFIGURATION.format(names=", ".join(f"DNS:{name}" for name in names)))
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-config", "openssl.cnf"]
    for command in (
        ["req", "-x509", *key, "-extensions", "ca", "-days", "2", "-keyout", "ca.key", "-out", "ca.pem"],
        ["req", "-new", *key, "-keyout", "leaf.key", "-out", "leaf.csr"],
        ["x509", "-req", "-in", "leaf.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-set_serial", "2", "-days", "2",
         "-extfile", "openssl.cnf", "-extensions", "leaf", "-out", "leaf.pem"],
    ):
        made = subprocess.run(["openssl", *command], cwd=directory, capture_output=True, check=False, timeout=60)
        assert made.returncode == 0, f"openssl {' '.join(command)}: {made.stderr.decode(errors='replace')}"
    return Certificates(directory / "ca.pem", directory / "leaf.pem", directory / "leaf.key")
