"""What must keep working under all the walls: the programs people and agents really run."""
# security: sandbox
import textwrap

import pytest

pytestmark = pytest.mark.shipped


def works(carrel, tmp, name, text, *command, options=(), timeout=120):
    """Runs a program from a file of the workspace; it must end with 0. What it printed."""
    (tmp / name).write_text(textwrap.dedent(text))
    done = carrel.run("--dir", tmp, *options, "--", *command, timeout=timeout)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def python(carrel, tmp, text, **how):
    return works(carrel, tmp, "program.py", text, "/usr/bin/python3", "program.py", **how)


def node(carrel, tmp, text):
    return works(carrel, tmp, "program.js", text, "node", "program.js")


def bash(carrel, tmp, text, **how):
    return works(carrel, tmp, "program.sh", text, "bash", "-eu", "program.sh", **how)


def test_threads(carrel, tmp):
    assert python(carrel, tmp, """
        import threading, queue
        results = queue.Queue()
        threads = [threading.Thread(target=lambda n=n: results.put(n * n)) for n in range(100)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(sum(results.get() for _ in threads))
        """) == "328350\n"


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(carrel, tmp, method):
    assert python(carrel, tmp, f"""
        import multiprocessing
        def square(n): return n * n
        if __name__ == "__main__":
            multiprocessing.set_start_method({method!r})
            with multiprocessing.Pool(4) as pool: print(sum(pool.map(square, range(100))))
            queue, lock, value = multiprocessing.Queue(), multiprocessing.Lock(), multiprocessing.Value("i", 7)
            with lock: queue.put(value.value)
            print(queue.get())
        """) == "328350\n7\n"


def test_shared_memory_and_semaphores(carrel, tmp):
    assert python(carrel, tmp, """
        from multiprocessing import shared_memory, Process, Semaphore
        def child(name, done):
            block = shared_memory.SharedMemory(name=name); block.buf[0] = 42; block.close(); done.release()
        block, done = shared_memory.SharedMemory(create=True, size=4096), Semaphore(0)
        process = Process(target=child, args=(block.name, done)); process.start(); done.acquire(); process.join()
        print(block.buf[0]); block.close(); block.unlink()
        """) == "42\n"


def test_process_and_thread_pools(carrel, tmp):
    assert python(carrel, tmp, """
        from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
        if __name__ == "__main__":
            for kind in ProcessPoolExecutor, ThreadPoolExecutor:
                with kind(4) as pool: print(sum(pool.map(abs, range(-10, 0))))
        """) == "55\n55\n"


def test_asyncio(carrel, tmp):
    assert python(carrel, tmp, """
        import asyncio
        async def serve(reader, writer):
            writer.write((await reader.readline()).upper()); await writer.drain(); writer.close()
        async def main():
            server = await asyncio.start_server(serve, "localhost", 0)
            reader, writer = await asyncio.open_connection("localhost", server.sockets[0].getsockname()[1])
            writer.write(b"hello\\n"); print((await reader.readline()).decode(), end="")
            process = await asyncio.create_subprocess_exec("echo", "child", stdout=asyncio.subprocess.PIPE)
            print((await process.communicate())[0].decode(), end="")
            await asyncio.gather(*(asyncio.sleep(0.01) for _ in range(100)))
        asyncio.run(main())
        """) == "HELLO\nchild\n"


def test_subprocess(carrel, tmp):
    assert python(carrel, tmp, """
        import subprocess
        print(subprocess.run("echo a | tr a b", shell=True, capture_output=True, text=True).stdout, end="")
        print(subprocess.check_output(["cat"], input="in\\n", text=True), end="")
        try: subprocess.run(["sleep", "100"], timeout=0.2)
        except subprocess.TimeoutExpired: print("timed out")
        print(subprocess.run(["true"], start_new_session=True, close_fds=True, preexec_fn=lambda: None).returncode)
        """) == "b\nin\ntimed out\n0\n"


@pytest.mark.parametrize("place", ["/workspace", "/tmp"])
def test_sqlite_wal_by_two_processes(carrel, tmp, place):
    assert python(carrel, tmp, f"""
        import sqlite3, multiprocessing
        name = "{place}/test.db"
        def writer(start):
            db = sqlite3.connect(name, timeout=100)
            for n in range(start, start + 50):
                with db: db.execute("insert into t values (?)", (n,))
        db = sqlite3.connect(name)
        print(db.execute("pragma journal_mode=wal").fetchone()[0])
        with db: db.execute("create table t (n)")
        processes = [multiprocessing.Process(target=writer, args=(start,)) for start in (0, 1000)]
        for process in processes: process.start()
        for process in processes: process.join()
        print(db.execute("select count(*) from t").fetchone()[0])
        """) == "wal\n100\n"


def test_pty(carrel, tmp):
    assert python(carrel, tmp, """
        import os, pty
        pid, fd = pty.fork()
        if pid == 0: os.execlp("sh", "sh", "-c", "tty >/dev/null && stty size >/dev/null && echo terminal")
        print(os.read(fd, 100).decode().strip()); os.waitpid(pid, 0)
        """) == "terminal\n"


@pytest.mark.parametrize("family, address", [("AF_INET", "127.0.0.1"), ("AF_INET6", "::1"), ("AF_INET", "0.0.0.0")])
@pytest.mark.parametrize("port", [8080, 80])
def test_a_server_on_loopback(carrel, tmp, family, address, port):
    assert python(carrel, tmp, f"""
        import http.server, socket, threading, urllib.request
        class Server(http.server.ThreadingHTTPServer): address_family = socket.{family}
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self): self.send_response(200); self.end_headers(); self.wfile.write(b"served")
            def log_message(self, *args): pass
        server = Server(({address!r}, {port}), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        host = "[::1]" if ":" in {address!r} else "127.0.0.1"
        print(urllib.request.urlopen(f"http://{{host}}:{port}/").read().decode())
        """) == "served\n"


def test_names_of_the_loopback_resolve(carrel, tmp):
    assert python(carrel, tmp, """
        import socket
        print(socket.gethostbyname("localhost"), socket.getservbyname("http"), bool(socket.gethostname()))
        """) == "127.0.0.1 80 True\n"


def test_unix_sockets_and_datagrams(carrel, tmp):
    assert python(carrel, tmp, """
        import array, os, socket
        for address in ("/tmp/socket", "\\0abstract"):
            server = socket.socket(socket.AF_UNIX); server.bind(address); server.listen()
            client = socket.socket(socket.AF_UNIX); client.connect(address); peer, _ = server.accept()
            r, w = os.pipe(); socket.send_fds(client, [b"x"], [w]); _, fds, _, _ = socket.recv_fds(peer, 1, 1)
            os.write(fds[0], b"through"); print(os.read(r, 10).decode())
        udp = socket.socket(type=socket.SOCK_DGRAM); udp.bind(("127.0.0.1", 0))
        udp.sendto(b"datagram", udp.getsockname()); print(udp.recv(10).decode())
        """) == "through\nthrough\ndatagram\n"


def test_inotify(carrel, tmp):
    assert python(carrel, tmp, """
        import ctypes, os, struct
        libc = ctypes.CDLL(None)
        fd = libc.inotify_init(); assert libc.inotify_add_watch(fd, b"/workspace", 0x100) >= 0
        open("/workspace/made", "w").close()
        wd, mask, cookie, length = struct.unpack("iIII", (data := os.read(fd, 4096))[:16])
        print(data[16:16 + length].rstrip(b"\\0").decode())
        """) == "made\n"


def test_ctypes_callbacks_and_executable_memory(carrel, tmp):
    assert python(carrel, tmp, """
        import ctypes, mmap
        compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
        numbers = (ctypes.c_int * 3)(3, 1, 2)
        ctypes.CDLL(None).qsort(numbers, 3, 4, compare(lambda a, b: a[0] - b[0]))
        mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        print(list(numbers))
        """) == "[1, 2, 3]\n"


def test_a_virtual_environment(carrel, tmp):
    assert bash(carrel, tmp, """
        /usr/bin/python3 -m venv --without-pip venv
        venv/bin/python -c 'import sys; print(sys.prefix)'
        """) == "/workspace/venv\n"


def test_locks_of_files(carrel, tmp):
    assert python(carrel, tmp, """
        import fcntl, os
        file = open("lock", "w"); fcntl.flock(file, fcntl.LOCK_EX); fcntl.lockf(file, fcntl.LOCK_EX)
        if os.fork() == 0:
            try: fcntl.lockf(open("lock", "w"), fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError: print("locked", flush=True)
            os._exit(0)
        os.wait()
        """) == "locked\n"


def test_what_looks_at_the_machine(carrel, tmp):
    out = bash(carrel, tmp, "ps -e -o comm= | sort -u | tr '\\n' ' '; free -m >/dev/null; nproc >/dev/null; uptime >/dev/null; "
               "df /workspace /tmp >/dev/null; cat /proc/cpuinfo /proc/meminfo /proc/loadavg /proc/stat >/dev/null; date >/dev/null")
    assert "ps" in out and "bash" in out


def test_node_runs_hot_code_and_webassembly(carrel, tmp):
    assert node(carrel, tmp, """
        let sum = 0;
        for (let i = 0; i < 3e6; i++) sum = (sum + i * i) % 1000003;
        const wasm = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 1, 7, 1, 96, 2, 127, 127, 1, 127, 3, 2, 1, 0, 7, 7, 1, 3, 97, 100,
            100, 0, 0, 10, 9, 1, 7, 0, 32, 0, 32, 1, 106, 11]);
        WebAssembly.instantiate(wasm).then(m => console.log(sum > 0, m.instance.exports.add(40, 2)));
        """) == "true 42\n"


def test_node_workers(carrel, tmp):
    assert node(carrel, tmp, """
        const { Worker, isMainThread, parentPort } = require("worker_threads");
        if (isMainThread) {
            let sum = 0, left = 4;
            for (let i = 0; i < 4; i++)
                new Worker(__filename).on("message", n => { sum += n; if (--left == 0) console.log(sum); });
        } else parentPort.postMessage(10);
        """) == "40\n"


def test_node_sees_its_interfaces_and_processors(carrel, tmp):
    assert node(carrel, tmp, """
        const os = require("os");
        console.log(Object.keys(os.networkInterfaces()).join(), os.cpus().length > 0, os.userInfo().username, os.hostname());
        """) == "lo true agent sandbox\n"


def test_node_serves_and_watches_and_spawns(carrel, tmp):
    assert node(carrel, tmp, """
        const fs = require("fs"), http = require("http"), { execFileSync, fork } = require("child_process");
        console.log(execFileSync("echo", ["spawned"]).toString().trim());
        const server = http.createServer((q, a) => a.end("served")).listen(0, () =>
            http.get({ port: server.address().port }, r => r.on("data", d => {
                console.log(d.toString());
                const watcher = fs.watch(".", (event, name) => {
                    if (name == "seen") { console.log("seen"); watcher.close(); server.close(); server.closeAllConnections?.(); }
                });
                fs.writeFileSync("seen", "x");
            })));
        """) == "spawned\nserved\nseen\n"


def test_gcc_and_make(carrel, tmp):
    (tmp / "Makefile").write_text("program: one.o two.o\n\tgcc -pthread -o $@ $^\n%.o: %.c\n\tgcc -O2 -c $<\n")
    (tmp / "one.c").write_text('#include <pthread.h>\n#include <stdio.h>\nvoid *two(void *);\nint main(void)\n{\n'
                               'pthread_t t;\nvoid *r;\npthread_create(&t, 0, two, 0);\npthread_join(t, &r);\nputs(r);\n}\n')
    (tmp / "two.c").write_text('void *two(void *x)\n{\nreturn "compiled";\n}\n')
    assert bash(carrel, tmp, "make -s -j4; ./program") == "compiled\n"


def test_pytest_in_parallel(carrel, tmp):
    (tmp / "test_x.py").write_text("import pytest\n@pytest.mark.parametrize('n', range(20))\ndef test(n): assert n >= 0\n")
    assert "20 passed" in bash(carrel, tmp, "/usr/bin/python3 -m pytest -q -n 2 -p no:cacheprovider test_x.py")


def test_git(carrel, tmp):
    assert bash(carrel, tmp, """
        export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
        git init -q -b main repo; cd repo
        echo x > file; git add .; git commit -qm first; git checkout -qb side; echo y >> file; git commit -qam second
        git gc -q; cd ..; git clone -q repo copy; git -C copy log --format=%s; git -C repo worktree add -q ../tree main
        """) == "second\nfirst\n"


def test_git_in_a_repository_of_the_host(carrel, tmp):
    import subprocess
    subprocess.run(["git", "init", "-q", "-b", "main", tmp], check=True)
    assert bash(carrel, tmp, """
        git -c user.name=a -c user.email=a@b commit -q --allow-empty -m inside
        git log --format=%s
        """) == "inside\n"


def test_shell_features(carrel, tmp):
    assert bash(carrel, tmp, """
        cat <(echo one) <(echo two)
        echo three > >(cat)
        wait
        mapfile -t lines < <(printf 'a\\nb\\n'); echo ${#lines[@]}
        cat <<< four
        coproc cat; echo five >&${COPROC[1]}; read -r x <&${COPROC[0]}; echo $x; kill $COPROC_PID
        mkfifo /tmp/fifo; (echo six > /tmp/fifo) & cat /tmp/fifo
        timeout 0.2 sleep 10 || echo $?
        """) == "one\ntwo\nthree\n2\nfour\nfive\nsix\n124\n"


def test_usual_tools(carrel, tmp):
    assert bash(carrel, tmp, """
        mkdir -p a/b; echo hello > a/b/c; tar czf x.tgz a; rm -r a; tar xzf x.tgz; cat a/b/c
        find . -name c -exec wc -c {} +
        sed -i s/hello/bye/ a/b/c; awk '{ print length }' a/b/c; sort -R a/b/c | md5sum | cut -c1-4
        cp -a a copy; ln copy/b/c hard; ln -s hard soft; mv soft moved; stat -c %h hard; chmod 600 hard; touch -d 2020-01-01 hard
        dd if=/dev/urandom of=/dev/null bs=1k count=1 2>/dev/null; xargs -n1 -P4 echo < moved
        """) == "hello\n6 ./a/b/c\n3\n" + bash_md5("bye\n") + "\n2\nbye\n"


def bash_md5(text):
    import hashlib
    return hashlib.md5(text.encode()).hexdigest()[:4]


def test_attributes_and_times_of_files(carrel, tmp):
    assert python(carrel, tmp, """
        import os
        open("/tmp/file", "w").close()
        os.utime("/tmp/file", ns=(1, 2)); print(os.stat("/tmp/file").st_mtime_ns)
        print(os.sched_getaffinity(0) != set(), os.getloadavg() is not None, os.cpu_count() > 0)
        os.posix_fallocate(fd := os.open("/tmp/file", os.O_RDWR), 0, 4096); print(os.fstat(fd).st_size)
        print(os.copy_file_range(fd, os.open("/tmp/other", os.O_RDWR | os.O_CREAT), 100))
        """) == "2\nTrue True True\n4096\n100\n"


SANITIZED_C = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static void *run(void *text) { puts(text); return NULL; }
int main(void)
{
    char *text = malloc(8);
    pthread_t thread;
    snprintf(text, 8, "ran");
    pthread_create(&thread, NULL, run, text);
    pthread_join(thread, NULL);
    return 0;       /* and a leak */
}
"""


@pytest.mark.parametrize("kind", ["address", "thread"])
def test_programs_with_sanitizers(carrel, tmp, kind):
    """Their shadow is terabytes of memory that is mapped and never touched."""
    (tmp / "program.c").write_text(SANITIZED_C)
    assert bash(carrel, tmp, f"gcc -fsanitize={kind} program.c -o program && ./program") == "ran\n"


def test_terabytes_can_be_reserved(carrel, tmp):
    """As MemorySanitizer and libFuzzer do."""
    assert python(carrel, tmp, """
        import mmap
        shadow = mmap.mmap(-1, 15 << 40, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)     # MAP_NORESERVE
        shadow[1 << 40] = 1
        print(shadow[1 << 40], len(shadow) >> 40)
        """) == "1 15\n"


def test_temporary_files(carrel, tmp):
    assert bash(carrel, tmp, "echo x > $(mktemp); python3 -c 'import tempfile; print(tempfile.gettempdir())'") == "/tmp\n"


def test_a_hundred_processes_at_once(carrel, tmp):
    assert bash(carrel, tmp, "for i in $(seq 100); do sleep 0.3 & done; wait; echo done") == "done\n"


def test_time_zones_and_locales(carrel, tmp):
    out = python(carrel, tmp, """
        import locale, sys, zoneinfo
        locale.setlocale(locale.LC_ALL, ""); print(sys.getfilesystemencoding(), "ü🙂")
        """)
    assert out == "utf-8 ü🙂\n"
