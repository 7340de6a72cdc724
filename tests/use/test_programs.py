"""Programs that people really run, in `carrel run` and in a workspace: `make test-use`.

Each use is a script that must end with 0 and print `expects` last. There is no network inside, so all that a use needs
is installed before: by apt (tools/install-deps use), and npm's packages in a directory that is shown or copied in."""
# security: sandbox
import dataclasses
import os
import subprocess
import textwrap

import pytest

LIMITS = ["--memory", "3G", "--tmp", "1G"]
SECONDS = 240


@dataclasses.dataclass
class Use:
    script: str
    expects: str
    modules: bool = False       # npm's packages are needed, in ./modules
    options: tuple = ()         # of `run` and `create`


USES = {
    # ---- browsers ----
    "chromium": Use("""
        echo '<h1 style="background: red">hello</h1>' > page.html
        chromium --headless --no-sandbox --window-size=320,200 --screenshot=shot.png page.html >log 2>&1 || { cat log; exit 1; }
        file shot.png | grep -o 'PNG image data, 320 x 200'
        """, "PNG image data, 320 x 200"),
    "playwright": Use("""
        cat > shot.js <<'EOF'
        const { chromium } = require("./modules/node_modules/playwright-core");
        (async () => {
            const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
            const page = await browser.newPage({ viewport: { width: 320, height: 200 } });
            await page.setContent("<h1>hello</h1>");
            console.log(await page.textContent("h1"));
            await page.screenshot({ path: "shot.png" });
            await browser.close();
        })();
        EOF
        node shot.js
        file shot.png | grep -o 'PNG image data, 320 x 200'
        """, "PNG image data, 320 x 200", modules=True),
    "puppeteer": Use("""
        cat > shot.js <<'EOF'
        const puppeteer = require("./modules/node_modules/puppeteer-core");
        (async () => {
            const browser = await puppeteer.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
            const page = await browser.newPage();
            await page.setViewport({ width: 320, height: 200 });
            await page.setContent("<h1>hello</h1>");
            await page.screenshot({ path: "shot.png" });
            await browser.close();
        })();
        EOF
        node shot.js
        file shot.png | grep -o 'PNG image data, 320 x 200'
        """, "PNG image data, 320 x 200", modules=True),
    # ---- documents ----
    "libreoffice": Use("""
        echo 'some text' > a.txt
        soffice --headless --convert-to pdf a.txt >log 2>&1 || { cat log; exit 1; }
        head -c 5 a.pdf; echo
        """, "%PDF-"),
    "pdflatex": Use(r"""
        printf '\\documentclass{article}\\begin{document}Hello $x^2$\\end{document}' > a.tex
        pdflatex -interaction=batchmode a.tex >log || { cat a.log; exit 1; }
        head -c 5 a.pdf; echo
        """, "%PDF-"),
    "imagemagick draws with a font by its name": Use("""
        /usr/bin/convert -size 200x50 -font DejaVu-Sans -pointsize 20 label:hello a.png 2>&1
        /usr/bin/identify -format '%m %wx%h\\n' a.png
        """, "PNG 200x50"),
    "emacs": Use("""emacs --batch --eval '(message "%s" (* 6 7))' 2>&1 | tail -n 1""", "42"),
    "xmllint finds the catalog of DocBook": Use("""
        cat > a.xml <<'EOF'
        <!DOCTYPE article PUBLIC "-//OASIS//DTD DocBook XML V4.5//EN" "http://www.oasis-open.org/docbook/xml/4.5/docbookx.dtd">
        <article><title>title</title><para>text</para></article>
        EOF
        sed -i 's/^ *//' a.xml
        xmllint --nonet --noout --valid a.xml && echo valid
        """, "valid"),
    "man": Use("""
        manpath | grep -q /usr/share/man
        MANWIDTH=60 man ls 2>&1 | grep -q warning && exit 1
        echo .SH NAME > a.1 && man -l a.1 >/dev/null && echo shown
        """, "shown"),
    # ---- languages ----
    "php": Use("""php -r 'echo php_ini_loaded_file() ? "configured" : "bare", "\\n";'""", "configured"),
    "python knows the host's mime types": Use("""
        /usr/bin/python3 -c 'import mimetypes; print(mimetypes.guess_type("a.epub")[0])'
        """, "application/epub+zip"),
    "java": Use("""
        echo 'class A { public static void main(String[] a) { System.out.println(6 * 7); } }' > A.java
        javac A.java && java A
        """, "42"),
    "go builds and tests": Use("""
        export PATH=/usr/bin:$PATH
        printf 'module a\\n\\ngo 1.19\\n' > go.mod
        printf 'package main\\n\\nfunc answer() int { return 42 }\\nfunc main() { println(answer()) }\\n' > a.go
        cat > a_test.go <<'EOF'
        package main
        import "testing"
        func TestAnswer(t *testing.T) {
            done := make(chan int)
            go func() { done <- answer() }()
            if <-done != 42 { t.Fatal("wrong") }
        }
        EOF
        go build -o a . && ./a && go test ./... && go test -race ./... >log 2>&1 || { cat log; exit 1; }
        grep -o '^ok' log
        """, "ok"),
    "rust": Use("""
        cargo init -q --vcs none --name a . && cargo test -q --offline >log 2>&1 && cargo run -q --offline
        """, "Hello, world!"),
    "node tests and worker threads": Use("""
        cat > a.test.js <<'EOF'
        const test = require("node:test"), assert = require("node:assert");
        const { Worker } = require("node:worker_threads");
        for (let n = 0; n < 4; n++) test("worker " + n, (t, done) => {
            new Worker("require('worker_threads').parentPort.postMessage(42)", { eval: true }).on("message", (m) => { assert.equal(m, 42); done(); });
        });
        EOF
        node --test a.test.js | grep -o '# fail 0'
        """, "# fail 0"),
    # ---- servers ----
    "postgresql": Use("""
        bin=$(echo /usr/lib/postgresql/*/bin); export PATH=${bin##* }:$PATH
        initdb -D data >log && pg_ctl -D data -o '-k /tmp' -l server.log -w start >>log || { cat log server.log; exit 1; }
        psql -h /tmp postgres -Atc 'create table t as select generate_series(1, 1000) n' >>log
        psql -h 127.0.0.1 postgres -Atc 'select sum(n) from t'
        pg_ctl -D data -m fast stop >>log
        """, "500500"),
    "redis": Use("""
        redis-server --port 7001 --save '' --daemonize yes >log
        until redis-cli -p 7001 ping >/dev/null 2>&1; do sleep 0.05; done
        redis-cli -p 7001 set answer 41 >>log
        redis-cli -p 7001 incr answer
        redis-cli -p 7001 shutdown nosave
        """, "42"),
    # ---- C ----
    "an address error is found by ASan": Use("""
        printf '#include <stdlib.h>\\nint main(void) { char *p = malloc(8); free(p); return p[0]; }\\n' > a.c
        gcc -g -fsanitize=address,undefined a.c -o a
        ASAN_OPTIONS=detect_leaks=0 ./a 2>&1 | grep -o 'heap-use-after-free' | head -n 1
        """, "heap-use-after-free"),
    "undefined behaviour is found by UBSan": Use("""
        printf '#include <stdio.h>\\nint main(int n, char **v) { int x = 2147483647; x += n; printf("%%d\\\\n", x); }\\n' > a.c
        gcc -fsanitize=undefined a.c -o a && ./a 2>&1 | grep -o 'signed integer overflow'
        """, "signed integer overflow"),
    "a leak is found by LeakSanitizer": Use("""
        cat > a.c <<'EOF'
        #include <stdlib.h>
        static void *volatile last;
        int main(void) { for (int i = 0; i < 100; i++) last = malloc(7); last = NULL; return 0; }
        EOF
        gcc -g -fsanitize=address a.c -o a
        ./a 2>&1 | grep -o 'detected memory leaks'
        """, "detected memory leaks", options=("--ptrace",)),
    "gdb": Use("""
        printf 'int answer = 41;\\nint main(void) { return ++answer; }\\n' > a.c
        gcc -g a.c -o a
        gdb -batch -ex 'break main' -ex run -ex next -ex 'print answer' ./a 2>&1 | tail -n 1
        """, "$1 = 42", options=("--ptrace",)),
    "strace": Use("strace -f -o log sh -c 'true; exit 7' || [ $? = 7 ]; grep -o 'exited with 7' log", "exited with 7", options=("--ptrace",)),
    # ---- small things ----
    "git makes a shared repository": Use("git init -q --shared x && stat -c %A x/.git", "drwxrwsr-x"),
    "addresses are looked up from hosts, at once": Use("""
        getent hosts 127.0.0.1 | grep -q localhost
        timeout 5 /usr/bin/python3 -c 'import socket; print(socket.gethostbyaddr("127.0.0.1")[0], socket.getfqdn())'
        """, "localhost localhost"),
    "ping says why it can't": Use("ping -c 1 127.0.0.1 2>&1 || true", "ping: prctl: Operation not permitted"),
    "lscpu": Use("lscpu | grep -c '^CPU(s):'", "1"),
    "fonts are found": Use("fc-match sans | grep -qi dejavu && echo found", "found"),
}


@pytest.fixture(scope="session")
def modules(tmp_path_factory):
    """npm's packages, which drive a browser that is installed."""
    directory = tmp_path_factory.mktemp("modules")
    done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", directory,
                           "playwright-core", "puppeteer-core"], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "NODE_EXTRA_CA_CERTS": "/etc/ssl/certs/ca-certificates.crt"})
    if done.returncode:
        pytest.skip(f"npm can't install here: {done.stderr[:200]}")
    directory.chmod(0o755)
    return directory


def check(done, use):
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip().splitlines()[-1] == use.expects, done.stdout + done.stderr


@pytest.mark.parametrize("name", USES)
def test_run(carrel, request, name):
    use = USES[name]
    shown = ["-v", f"{request.getfixturevalue('modules')}:/workspace/modules:ro"] if use.modules else []
    check(carrel.run(*LIMITS, *use.options, *shown, "--", "bash", "-euc", textwrap.dedent(use.script), timeout=SECONDS), use)


@pytest.mark.parametrize("name", USES)
def test_workspace(daemon, request, name):
    use, workspace = USES[name], f"use{list(USES).index(name)}"
    assert daemon("create", workspace, *LIMITS, *use.options).returncode == 0
    try:
        if use.modules:
            assert daemon("cp", request.getfixturevalue("modules"), f"{workspace}:modules", timeout=SECONDS).returncode == 0
        check(daemon("exec", workspace, "--", "bash", "-euc", textwrap.dedent(use.script), timeout=SECONDS), use)
    finally:
        assert daemon("rm", workspace).returncode == 0
