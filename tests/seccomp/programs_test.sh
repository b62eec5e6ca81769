#!/bin/sh
# Ordinary programs do ordinary work under the built-in policies, in plain bwrap.
# usage: programs_test.sh BIN_DIR [NAME...]   (where seccomp_export is; only these programs)
# A program that this machine lacks is named as skipped; those in $required must be there when SANDY_MUST_WORK=1.
set -u
bin=$(cd "$1" && pwd) || exit 1
shift
only=$*
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$here/sandbox_lib.sh"
need_bwrap

required="python3 gcc git"
# Toolchains that live in the caller's home are found through these.
export RUSTUP_HOME="${RUSTUP_HOME:-$HOME/.rustup}" PYENV_ROOT="${PYENV_ROOT:-$HOME/.pyenv}"
export GOCACHE="$work/gocache" GOPATH="$work/gopath" GOTOOLCHAIN=local CARGO_HOME="$work/cargo" npm_config_offline=true

passed=0
failures=0
skipped=0

# check POLICIES PROGRAM TITLE SCRIPT: the script must end with 0 under each of the policies (comma-separated; a
# "+ptrace" turns the switch on, a "!" in front means that it must fail).
check() {
  policies=$1 program=$2 title=$3 script=$4
  if [ -n "$only" ]; then
    case " $only " in *" $program "*) ;; *) return ;; esac
  fi
  if ! command -v "$program" >/dev/null; then
    skipped=$((skipped + 1))
    echo "SKIP: $title: $program is not installed"
    case " $required " in
    *" $program "*)
      [ "${SANDY_MUST_WORK:-}" = 1 ] && failures=$((failures + 1)) && echo "FAIL: $program must be there"
      ;;
    esac
    return
  fi
  for policy in $(echo "$policies" | tr , ' '); do
    fresh=$(mktemp -d "$work/XXXXXX")
    name=${policy#!}
    switch=
    case $name in *+ptrace) switch=ptrace ;; esac
    # shellcheck disable=SC2086  # no word where the switch is off
    sandboxed "${name%+ptrace}" $switch -- timeout 120 sh -euc "cd '$fresh'; $script" >"$work/out" 2>&1
    status=$?
    case $policy in
    !*) if [ $status = 0 ]; then ok=no; else ok=yes; fi ;;
    *) if [ $status = 0 ]; then ok=yes; else ok=no; fi ;;
    esac
    if [ $ok = yes ]; then
      passed=$((passed + 1))
    else
      failures=$((failures + 1))
      echo "FAIL: $title under $policy: status $status"
      tail -n 15 "$work/out" | sed 's/^/    /'
    fi
  done
}

both=default,strict

check $both python3 "python threads" '
  python3 -c "import threading as t; x = t.Thread(target=print, args=(1,)); x.start(); x.join()" | grep -qx 1'
check $both python3 "python multiprocessing" '
  cat >mp.py <<END
import multiprocessing as mp, concurrent.futures as cf
def square(x): return x * x
if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        with mp.get_context(method).Pool(2) as pool: assert pool.map(square, [1, 2, 3]) == [1, 4, 9]
    with mp.Manager() as manager: manager.dict()["a"] = 1
    with cf.ProcessPoolExecutor(2) as pool: assert list(pool.map(square, [4])) == [16]
    from multiprocessing import shared_memory
    block = shared_memory.SharedMemory(create=True, size=100); block.close(); block.unlink()
END
  python3 mp.py'
check $both python3 "python asyncio, sockets, subprocess" '
  cat >aio.py <<END
import asyncio, socket, subprocess, sys
async def main():
    async def serve(reader, writer): writer.write(await reader.read(5)); await writer.drain(); writer.close()
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b"hello"); assert await reader.read() == b"hello"
    server.close()
    await asyncio.start_unix_server(serve, "s.sock")
    reader, writer = await asyncio.open_unix_connection("s.sock")
    writer.write(b"hello"); assert await reader.read() == b"hello"
    child = await asyncio.create_subprocess_exec("true"); assert await child.wait() == 0
asyncio.run(main())
socket.socketpair()
socket.getaddrinfo("127.0.0.1", 80)
assert subprocess.run([sys.executable, "-c", "pass"]).returncode == 0
END
  python3 aio.py'
check $both python3 "python sqlite" '
  python3 -c "
import sqlite3
c = sqlite3.connect(\"a.db\"); c.execute(\"pragma journal_mode=wal\"); c.execute(\"create table t (x)\")
c.executemany(\"insert into t values (?)\", [(i,) for i in range(1000)]); c.commit()
assert c.execute(\"select count(*) from t\").fetchone() == (1000,)"'
check $both python3 "pip installs a wheel into a venv" '
  python3 -m venv v
  python3 -c "
import zipfile
with zipfile.ZipFile(\"demo-1.0-py3-none-any.whl\", \"w\") as z:
    z.writestr(\"demo.py\", \"answer = 42\")
    z.writestr(\"demo-1.0.dist-info/METADATA\", \"Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n\")
    z.writestr(\"demo-1.0.dist-info/WHEEL\", \"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n\")
    z.writestr(\"demo-1.0.dist-info/RECORD\", \"demo.py,,\ndemo-1.0.dist-info/METADATA,,\ndemo-1.0.dist-info/WHEEL,,\ndemo-1.0.dist-info/RECORD,,\n\")"
  v/bin/pip install --no-index ./demo-1.0-py3-none-any.whl
  v/bin/python -c "import demo; assert demo.answer == 42"'
check $both git "git" '
  git init -q r; cd r; git config user.email a@b; git config user.name n
  for i in 1 2 3; do echo $i >f$i; git add .; git commit -qm c$i; done
  git gc -q; git grep -q 1; git stash list; git worktree add -q ../w; git log --oneline | grep -q c3
  git clone -q . ../copy; git -C ../copy pull -q'
check $both gcc "gcc and make" '
  printf "#include <stdio.h>\nint main(void) { puts(\"hi\"); return 0; }\n" >a.c
  printf "a: a.o\n\tgcc -o a a.o\na.o: a.c\n\tgcc -O2 -c a.c\n" >Makefile
  if command -v make >/dev/null; then make -j2; else gcc -o a a.c; fi
  ./a | grep -qx hi'
check $both g++ "g++ with threads" '
  printf "#include <thread>\n#include <iostream>\nint main() { std::thread t([] { std::cout << 1; }); t.join(); }\n" >a.cpp
  g++ -pthread -o a a.cpp; ./a | grep -q 1'
check $both tar "tar, mkfifo, chmod, cp" '
  mkfifo -m 640 p; touch f; chmod 600 f; mkdir d; ln -s f d/l
  tar cf a.tar f p d; mkdir o; tar xpf a.tar -C o; chmod u+x f; cp -a d o2; ls -l --time=birth . >/dev/null
  [ "$(stat -c %a o/p)" = 640 ]'
check '!default,!strict' chmod "set-user-id bits" 'touch f; chmod u+s f; [ -u f ]'
check $both sqlite3 "sqlite3" 'echo "create table t (x); insert into t values (1); select * from t;" | sqlite3 a.db | grep -qx 1'
check $both ssh-keygen "ssh-keygen" 'ssh-keygen -q -t ed25519 -N "" -f key; ssh-keygen -lf key.pub'
check $both script "script" 'script -qec "tty; echo typed" log >/dev/null; grep -q /dev/pts log; grep -q typed log'
check $both tmux "tmux" '
  tmux -S ./sock -f /dev/null new-session -d -x 80 -y 24 "echo hi >out"
  for i in 1 2 3 4 5 6 7 8 9 10; do [ -s out ] && break; sleep 0.3; done
  grep -qx hi out; tmux -S ./sock kill-server || true'
check $both node "node: workers, children, files, sockets" '
  cat >a.js <<END
const { Worker } = require("worker_threads"), net = require("net"), fs = require("fs"), cp = require("child_process");
new Worker("require(\"worker_threads\").parentPort.postMessage(1)", { eval: true }).on("message", () => {
  fs.writeFileSync("f", cp.execSync("echo hi"));
  fs.watch(".").close();
  const server = net.createServer((s) => s.end("x")).listen(0, "127.0.0.1", () =>
    net.connect(server.address().port, "127.0.0.1").on("data", () => { server.close(); console.log("done"); }));
});
END
  node a.js | grep -qx done'
check $both npm "npm installs a local package" '
  mkdir dep app; echo "{\"name\":\"dep\",\"version\":\"1.0.0\",\"scripts\":{\"postinstall\":\"echo ok\"}}" >dep/package.json
  echo "module.exports = 42" >dep/index.js; cd app; npm init -y >/dev/null
  npm install --no-audit --no-fund ../dep; node -e "process.exit(require(\"dep\") === 42 ? 0 : 1)"'
check $both cargo "cargo build" '
  cargo init --offline --vcs none --name demo .; cargo build --offline; ./target/debug/demo | grep -q Hello'
check $both go "go build and run" '
  cat >main.go <<END
package main
import ("fmt"; "net"; "os/exec"; "sync")
func main() {
  var wait sync.WaitGroup
  for i := 0; i < 50; i++ { wait.Add(1); go func() { defer wait.Done(); exec.Command("true").Run() }() }
  wait.Wait()
  l, err := net.Listen("tcp", "127.0.0.1:0")
  if err != nil { panic(err) }
  go func() { c, _ := l.Accept(); c.Write([]byte("x")); c.Close() }()
  c, err := net.Dial("tcp", l.Addr().String())
  if err != nil { panic(err) }
  b := make([]byte, 1); c.Read(b); fmt.Println(string(b))
}
END
  printf "module demo\n" >go.mod; go build -o demo .; ./demo | grep -qx x'
check $both java "java" '
  printf "public class A { public static void main(String[] a) throws Exception { Thread t = new Thread(() -> System.out.println(1)); t.start(); t.join(); new ProcessBuilder(\"true\").start().waitFor(); } }" >A.java
  if command -v javac >/dev/null; then javac A.java; java -cp . A | grep -qx 1; else java -version; fi'
check "default+ptrace,strict+ptrace,!default" gdb "gdb on its own child" '
  printf "int main(void) { volatile int x = 42; return x - 42; }\n" >a.c; gcc -g -o a a.c
  gdb -nx -batch -ex "break main" -ex run -ex next -ex "print x" ./a 2>&1 | tee log; grep -q "= 42" log'
check "default+ptrace,!default" strace "strace on its own child" 'strace -f -o log sh -c true; grep -q exit_group log'

echo "$passed passed, $failures failed, $skipped skipped"
[ "$failures" = 0 ]
