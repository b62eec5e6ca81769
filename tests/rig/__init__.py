"""A small internet on this machine's loopback, for tests of the network: a name server, upstreams, and a log of all that arrived.

    with Rig(make_certificates(directory)) as rig:
        subprocess.run(["sandy", "run", "--allow-domain", "a.example", …], env={…, **rig.environment})
        assert rig.requests("a") and not rig.connections("b") and not rig.dns.queries

It needs no right and no low port: `rig.setting`, the value of SANDY_UNSAFE_TEST_NETWORK, tells sandy which name server to ask, that the rig's
addresses count as public ones, and at which port the rig has what clients look for at port 80, say. Only tests may set that variable: a sandbox that
was started with it says `network.unsafe_test_network` in what is `degraded`.

| host | address | |
|---|---|---|
| a, b, c | 127.77.0.1 to 127.77.0.3 | public. Every name that no test sets leads to b, so that what is asked for by mistake arrives there |
| private | 127.0.0.1 | this machine's own loopback, where nothing may arrive |
| private6 | ::1 | the same, where there is IPv6 |
| outside | 127.78.0.1 | loopback that the setting does not make public |

Each host has the same services: http (ports 80, 8000 and 11434), https (443), ssh (22: speaks first, then echoes), echo (7), digest (9: at the end of what it is
sent, its size and SHA-256), source (19: as many bytes as the line asks for).

`rig.fixtures` is the pytest plugin with the fixtures `rig`, `net` (`rig.net`: `sandy run` with rules and this rig) and `client` (a script with the Python client);
`rig.probe` is a module for scripts that run in a sandbox.
"""

from rig.certificates import Certificates, make_certificates
from rig.log import Connection, Request
from rig.names import NameServer, Query
from rig.rig import HOSTS, PORTS, Rig
from rig.upstreams import pattern

__all__ = ["HOSTS", "PORTS", "Certificates", "Connection", "NameServer", "Query", "Request", "Rig", "make_certificates", "pattern"]
