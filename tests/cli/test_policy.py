"""carrel policy: the judge on a command line, in a stream, and against someone who wants denied things through it."""
# security: policy
import json
import os
import resource
import subprocess

import pytest
from harness import CARREL, SANITIZED, run_measured
from policy_rows import ALLOWED, DENIED, DENIED_SHAPES, HIDING, KNOWN_SHAPES, SPLITTING, STARTUP, UNKNOWN_SHAPES, VARIABLES, WHOLE

pytestmark = pytest.mark.once

NAMES = """grep sed awk find cat head tail wc sort uniq diff cut tr echo printf ls tree pwd mkdir cp mv touch python python3
sh bash""".split()
SETTINGS = {
    "_comment": "an agent that works on files",
    "context_workspace": "/workspace/${CONTEXT_ID}",
    "permissions": {
        "allow": [f"shell({name}:*)" for name in NAMES]
        + [f"shell(pip {verb}:*)" for verb in ("install", "list")]
        + [f"shell(git {verb}:*)" for verb in "clone status log diff add commit checkout branch".split()]
        + [f"file({operation}:${{WORKSPACE}}/**)" for operation in ("read", "write", "delete")],
        "deny": ["shell(rm -rf /:*)", "shell(rm -rf /*:*)", "shell(sudo:*)", "shell(chmod 777:*)", "shell(curl:*)", "shell(wget:*)",
                 "shell(nc:*)", "shell(ncat:*)", "network(outbound:*)", "file(read:/etc/shadow:*)", "file(write:/etc/**:*)",
                 "file(read:/proc/**:*)", "shell(mount:*)", "shell(umount:*)", "shell(chroot:*)", "shell(nsenter:*)"],
    },
}
# The same with the wrappers allowed, so that nothing is refused only because env or xargs is.
WRAPPERS = "env xargs timeout nohup nice time command builtin exec setsid stdbuf busybox tee rm tar dd ln ssh vim rsync git".split()
WIDE = {"permissions": {"allow": SETTINGS["permissions"]["allow"] + [f"shell({name}:*)" for name in WRAPPERS],
                        "deny": SETTINGS["permissions"]["deny"]}}
# Programs that have a table of known shapes, and more; none of them may run `rm`.
PROGRAMS = """awk bash bsdtar busybox cargo cat cc cd chrt clang command cp curl cut dash date dd diff echo env exec fd fdfind file find flock g++ gawk gcc
git go grep gtar gzip head install ionice jq less ln ls make man mawk mkdir mv nawk nice node nohup npm original-awk patch pip printf
python3 rg rsync scp sed sh sort split stdbuf tar taskset tee time timeout touch tr unzip wc wget x86_64-linux-gnu-gcc-12 gcc-12 xargs xxd
zip""".split()
SHAPES = {"permissions": {
    "allow": [f"shell({name}:*)" for name in PROGRAMS]
    + [f"file({operation}:{place}/**)" for operation in ("read", "write", "delete") for place in ("${WORKSPACE}", "/tmp")],
    "deny": ["shell(rm:*)", "file(read:/etc/shadow)", "file(write:/etc/**)"]}}
SOURCES = {
    "package_managers": {"pip": {"registries": [{"name": "i", "url": "https://index.example/simple/"}], "blocked_packages": ["evil"]},
                         "npm": {"enabled": False}},
    "web_access": {"allowed_domains": ["api.example.com"]},
    "git": {"allowed_remotes": ["https://forge.example/*"]},
    "runtime": {"languages": ["python3.11", "bash"]},
}


def carrel(*words, **how):
    return subprocess.run([CARREL, "policy", *map(str, words)], capture_output=True, text=True, timeout=120, check=False, **how)


def stream(requests, *options):
    text = "".join((request if isinstance(request, str) else json.dumps(request)) + "\n" for request in requests)
    done = carrel("check", "--stream", *options, input=text)
    return done.returncode, done.stdout.splitlines(), done.stderr


def decide(commands, settings=None, kind="shell", **more):
    requests = [{"kind": kind, "settings": settings or SETTINGS, "command": command, **more} for command in commands]
    code, lines, errors = stream(requests)
    assert (code, errors, len(lines)) == (0, "", len(commands)), (errors, lines[-3:])
    return list(zip(commands, lines))


def test_usual_commands_are_allowed():
    assert [row for row in decide(ALLOWED) if row[1] != "allow"] == []


def test_what_a_rule_denies_is_denied_however_it_is_written():
    assert [row for row in decide(DENIED) if row[1] != "deny"] == []
    assert [row for row in decide(DENIED, WIDE) if row[1] != "deny"] == []


def test_what_hides_a_command_is_never_allowed():
    assert [row for row in decide(HIDING) if row[1] not in ("ask", "deny")] == []
    assert [row for row in decide(HIDING, WIDE, shell="bash") if row[1] not in ("ask", "deny")] == []


def test_known_shapes_of_programs_are_allowed_and_no_others():
    for shell in ("sh", "bash"):
        assert [row for row in decide(KNOWN_SHAPES, SHAPES, shell=shell) if row[1] != "allow"] == []
    assert [row for row in decide(DENIED_SHAPES, SHAPES, shell="bash") if row[1] != "deny"] == []
    assert [row for row in decide(UNKNOWN_SHAPES, SHAPES, shell="bash") if row[1] not in ("ask", "deny")] == []


def test_an_expanded_word_that_may_be_several_or_an_option_or_an_end_is_asked_for():
    settings = {"permissions": {"allow": [f"shell({name}:*)" for name in [*PROGRAMS, "flock", "xargs", "cat"]], "deny": ["shell(rm:*)"]}}
    for shell in ("sh", "bash"):
        assert [row for row in decide(SPLITTING, settings, shell=shell) if row[1] not in ("ask", "deny")] == []
        assert [row for row in decide(WHOLE, settings, shell=shell) if row[1] != "allow"] == []


def test_variables_and_files_that_name_programs_are_asked_for():
    settings = {"permissions": {"allow": ["shell(ls:*)", "shell(cp:*)", "file(read:/workspace/**)", "file(write:/workspace/**)"]}}
    commands = [f"{name}=x ls" for name in VARIABLES] + [f"cp a {name}" for name in STARTUP] + [f"ls > {name}" for name in STARTUP]
    assert [row for row in decide(commands, settings) if row[1] != "ask"] == []
    assert [row for row in decide(["NODE_ENV=production ls", "FOO=1 ls", "cp a config", "ls > a.config"], settings) if row[1] != "allow"] == []


def test_a_file_that_names_programs_is_not_copied_into_a_directory_by_its_own_name():
    programs = "cp mv ln install rsync curl wget".split()
    settings = {"permissions": {"allow": [f"shell({name}:*)" for name in programs] + [f"file(*:{place}/**)" for place in ("/workspace", "/tmp")]}}
    copies = [f"{program} /tmp/{name} d" for program in ("cp", "mv", "install", "rsync -a") for name in (".npmrc", ".wgetrc", "x/.git/")]
    copies += ["ln -s /tmp/.npmrc", "cp -t d a /tmp/.npmrc", "curl -O https://a.example/.npmrc", "wget https://a.example/.wgetrc -P d"]
    copies += ["cp 'x#/.npmrc' .", "cp 'x?/.npmrc' d", "wget https://a.example/%2enpmrc", "curl -O 'https://a.example/{.npmrc,b}'"]
    assert [row for row in decide(copies, settings) if row[1] != "ask"] == []
    others = ["cp /tmp/npmrc d", "rsync -a /tmp/a d", "curl -O https://a.example/a", "wget https://a.example/a -P d",
              "cp 'a#b' d", "curl https://a.example/.npmrc", "curl -O 'https://a.example/a?b=%20'"]
    assert [row for row in decide(others, settings) if row[1] != "allow"] == []


ADDING_UP = {
    "directories": "tar cf x" + (" -C " + "a" * 120 + " b") * 1000,       # each begins where the one before it led: 377 MB
    "kept names": "cp" + " .git" * 1000 + " /workspace/" + "a" * 100000,  # each is joined with the directory: 108 MB
}


@pytest.mark.parametrize("rules", [{}, {"deny": ["file(read:/workspace/**/*a*a*a/**)"]}], ids=["no files", "files"])
@pytest.mark.parametrize("command", ADDING_UP)
def test_what_arguments_add_up_to_is_bounded(command, rules):
    settings = {"permissions": {"allow": ["shell(*)", *(["file(*:/workspace/**)"] if rules else [])], **rules}}
    line = json.dumps({"kind": "shell", "settings": settings, "command": ADDING_UP[command]}) + "\n"
    done, peak = run_measured(CARREL, "policy", "check", "--stream", input=line)
    expected = ("ask", "deny") if rules or command == "directories" else ("allow",)
    assert done.returncode == 0 and done.stdout.strip() in expected, done
    assert SANITIZED or peak < 64 << 10, peak


def test_a_blocked_package_is_found_in_the_value_of_an_option():
    sources = {"package_managers": {manager: {"registries": [{"name": "i", "url": "https://index.example/"}], "blocked_packages": ["evil"]}
                                    for manager in ("pip", "npm")}}
    denied = ["npx --package=evil x", "npm innit evil", "uvx --from=evil x", "python3 -m pip.__main__ install evil",
              "python3 -m pip._internal install evil", "uvx --from='ok, evil' x", "npx --package=ok@npm:evil x"]
    asked = ["uvx --with six,evil x", "uvx --with=six,evil x", "npx --package=user/repo x", "npx --package=./dir x", "uvx --from=./dir x"]
    allowed = ["npx --package=fine x", "uvx --from=fine x", "pip install 'fine>=1,<2'"]
    expected = [*((row, "deny") for row in denied), *((row, "ask") for row in asked), *((row, "allow") for row in allowed)]
    assert decide(denied + asked + allowed, {"permissions": {"allow": ["shell(*)"]}}, sources=sources) == expected


def test_words_that_run_others_are_looked_behind_once():
    """Each of 20,000 was compared with all behind it: 13 s."""
    line = json.dumps({"kind": "shell", "settings": {"permissions": {"allow": ["shell(*)"]}}, "command": "echo" + " eval" * 20000}) + "\n"
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done, _ = run_measured(CARREL, "policy", "check", "--stream", input=line)
    assert done.returncode == 0 and done.stdout.strip() in ("allow", "ask", "deny"), done
    assert SANITIZED or resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 3, done


def test_a_path_that_leaves_its_directory_costs_its_length_for_each_rule():
    settings = {"permissions": {"allow": [f"Bash(./s{i}/*)" for i in range(2000)]}}
    request = {"kind": "shell", "settings": settings, "command": "./" + "a/" * 40000 + "../x"}
    code, lines, _ = stream([request], "-o", "json")
    assert code == 0 and json.loads(lines[0])["decision"] == "ask" and "too much work" in lines[0], lines[0][-300:]


def test_a_star_for_programs_of_a_directory_does_not_leave_it():
    settings = {"permissions": {"allow": ["Bash(./scripts/*)", "Bash(../tools/run * now)"]}}
    rows = ["./scripts/../x", "./scripts/a/../../x b", "./scripts/a", "./scripts/a ../x", "../tools/run it now", "../tools/../x it now"]
    assert [row[1] for row in decide(rows, settings)] == ["ask", "ask", "allow", "allow", "allow", "ask"]


def test_a_link_of_one_operand_is_written_here():
    settings = {"permissions": {"allow": ["shell(ln:*)", "file(read:/**)", "file(write:/workspace/d/**)"]}}
    assert [row[1] for row in decide(["ln -s /tmp/a", "ln /tmp/a", "ln -s /tmp/a d/a"], settings)] == ["ask", "ask", "allow"]
    settings["permissions"]["deny"] = ["file(write:/workspace/locked)"]
    assert [row[1] for row in decide(["ln -s x/locked", "ln -s x/locked/"], settings)] == ["deny", "deny"]


def test_every_spelling_of_an_edit_in_place_is_a_write():
    settings = {"permissions": {"allow": ["shell(sed:*)", "file(read:/workspace/**)"], "deny": ["file(write:/workspace/fixed/**)"]}}
    rows = [f"sed {option} s/a/b/ fixed/a" for option in ("-i", "-ni", "-i.bak", "--in-place", "--in-place=.bak")]
    assert [row for row in decide(rows, settings) if row[1] != "deny"] == []


def test_without_file_rules_an_option_writes_in_the_working_directory_or_tmp_alone():
    settings = {"permissions": {"allow": ["shell(sort:*)", "shell(curl:*)", "shell(tar:*)", "shell(gcc:*)"]}}
    inside = ["sort -o a b", "curl -o /tmp/x https://a.example", "tar xf a.tar", "gcc -c a.c", "curl -o /dev/null https://a.example"]
    outside = ["sort -o /usr/x b", "curl -o ../x https://a.example", "tar xf a.tar -C /usr", "gcc -o /usr/x a.c", "sort -o $x b"]
    assert [row for row in decide(inside, settings) if row[1] != "allow"] == []
    assert [row for row in decide(outside, settings) if row[1] != "ask"] == []


def test_a_directory_that_a_rule_reaches_into_is_asked_about_where_names_are_not_known():
    settings = {"permissions": {"allow": [*SHAPES["permissions"]["allow"]],
                                "deny": ["file(write:${WORKSPACE}/out/keep/**)", "file(read:${WORKSPACE}/src/*.pem)"]}}
    asked = ["tar xf a.tar", "tar xf a.tar -C out", "unzip a.zip -d out", "wget -P out https://a.example", "curl --output-dir out -O https://a.example",
             "rsync -a lib out", "tar cf a.tar src", "tar cf a.tar -C . src", "zip -r a.zip src", "cp -t out a"]
    allowed = ["tar xf a.tar -C lib", "unzip a.zip -d lib", "tar cf a.tar lib", "rsync -a lib lib2", "gcc -o out/a a.c", "sort -o out/a b"]
    assert [row for row in decide(asked, settings) if row[1] != "ask"] == []
    assert [row for row in decide(allowed, settings) if row[1] != "allow"] == []


def test_files_and_hosts_are_judged_in_the_syntax_of_rules():
    files = {"file(read:/workspace/a.py)": "allow", "file(write:/workspace/a/b)": "allow", "file(read:/etc/passwd)": "ask",
             "file(read:/workspace/../etc/shadow)": "deny", "file(read:a.py)": "allow", "file(write:/etc/x)": "deny",
             "file(read:/proc/1/mem)": "deny", "file(delete:/workspace)": "allow", "file(delete:/)": "ask",
             "file(read:~/a)": "allow", "file(read:/workspacex/a)": "ask"}
    assert dict(decide(list(files), kind="file")) == files
    rules = {"permissions": {"allow": ["network(outbound:a.example)", "network(outbound:*.b.example)", "network(outbound:c.example:8080)"],
                             "deny": ["network(outbound:evil.b.example)"]}}
    hosts = {"network(outbound:a.example)": "allow", "network(outbound:A.EXAMPLE.:443)": "allow", "network(outbound:a.example:22)": "ask",
             "network(outbound:b.example)": "ask", "network(outbound:x.b.example:80)": "allow", "network(outbound:evil.b.example)": "deny",
             "network(outbound:c.example:8080)": "allow", "network(outbound:c.example)": "ask", "network(outbound:1.2.3.4)": "ask", "network(outbound:0x7f.1)": "deny",
             "network(outbound:a.example@evil.example)": "deny"}
    assert dict(decide(list(hosts), rules, kind="network")) == hosts
    wide = {"permissions": {"allow": ["network(outbound:*)", "network(outbound:192.0.2.1)", "network(outbound:10.0.0.5)",
                                      "network(outbound:localhost.localdomain)"]}}
    hosts = {"network(outbound:a.example)": "allow", "network(outbound:127.0.0.1)": "ask", "network(outbound:192.0.2.1)": "allow",
             "network(outbound:[::1]:80)": "ask", "network(outbound:10.0.0.5)": "deny", "network(outbound:localhost.localdomain)": "deny"}
    assert dict(decide(list(hosts), wide, kind="network")) == hosts


def test_a_line_that_is_malformed_is_answered_by_an_error_in_its_place():
    good = {"kind": "shell", "settings": SETTINGS, "command": "ls"}
    bad = ["{", "[]", "", "1", {**good, "kind": "x"}, {**good, "settings": {"permissions": {"allow": ["x"]}}},
           {"kind": "shell", "command": "ls"}, {**good, "command": 1}, {**good, "cwd": "a"}, {**good, "sourcse": {}},
           {**good, "kind": "file", "command": "file(open:/a)"}, {**good, "kind": "file", "command": "network(outbound:a)"},
           {**good, "kind": "network", "command": "network(outbound:*)"}, {**good, "settings": "/does/not/exist"},
           {**good, "sources": {"x": 1}}, {**good, "shell": "zsh"}, {"allow": ["https://a/"], "target": "a:1"}, '{"kind":"shell"\0}']
    code, lines, errors = stream([row for one in bad for row in (one, good)])
    assert (code, errors, len(lines)) == (125, "", 2 * len(bad))
    assert lines[1::2] == ["allow"] * len(bad)
    for number, line in enumerate(lines[::2]):
        assert line.startswith(f"error: line {2 * number + 1}: "), line
    code, lines, errors = stream(["{", good], "-o", "json")
    assert code == 125 and list(json.loads(lines[0])["error"]) == ["code", "message", "hint"]
    assert json.loads(lines[1])["decision"] == "allow"


def test_answers_come_line_by_line():
    request = json.dumps({"kind": "shell", "settings": SETTINGS, "command": "curl x", "id": 7}) + "\n"
    with subprocess.Popen([CARREL, "policy", "check", "--stream", "-o", "json"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as judge:
        for _ in range(3):
            judge.stdin.write(request.encode())
            judge.stdin.flush()
            answer = json.loads(judge.stdout.readline())
            assert answer == {"id": 7, "decision": "deny", "trail": [
                {"subject": "curl x", "rule": "shell(curl:*)", "reason": None, "decision": "deny", "line": 1}]}
        judge.stdin.write(request.strip().encode())    # the last one without its newline
        judge.stdin.close()
        assert json.loads(judge.stdout.readline())["decision"] == "deny"
        assert judge.wait(60) == 0


def test_many_lines_are_answered(tmp_path):
    path = tmp_path / "settings.json"
    path.write_text(json.dumps(SETTINGS))
    requests = [{"kind": "shell", "command": f"grep -r foo src/{i} | head -{i}"} for i in range(20000)]
    assert stream(requests, "--settings", path) == (0, ["allow"] * 20000, "")


def test_lists_of_hosts_are_open_or_closed():
    targets = {"https://a.example/x": "open", "a.example:443": "open", "a.example:22": "closed", "http://A.Example.:80/": "open",
               "https://x.b.example": "open", "https://b.example": "closed", "https://evil.b.example": "closed",
               "https://a.example@evil.example/": "closed", "https://evil.example/a.example": "closed", "127.0.0.1:80": "closed",
               "http://0x7f.1/": "closed", "[::1]:80": "closed", "http://a.example\\@evil.example/": "closed", "": "closed"}
    code, lines, _ = stream([{"allow": ["a.example", "*.b.example"], "deny": ["evil.b.example"], "target": target} for target in targets])
    assert (code, dict(zip(targets, lines))) == (0, targets)


def test_sources_are_judged_too():
    wide = {"permissions": {"allow": ["shell(*)", "network(outbound:*)"]}}
    rows = {"pip install requests": "allow", "pip install evil": "deny", "python3 -m pip install Evil==1": "deny",
            "uv pip install evil": "deny", "pip install -r r.txt": "ask", "npm install x": "deny", "npx x": "deny", "bun add x": "deny",
            "pip install -i https://evil.example/ x": "deny", "git clone https://forge.example/a": "allow",
            "git clone https://evil.example/a": "deny", "git clone git@forge.example:a": "deny", "node x.js": "deny",
            "python3 x.py": "allow", "env pip install evil": "deny", "sh -c 'pip install evil'": "deny",
            # No file is read here: what it lists isn't known.
            "pip install -rr.txt": "ask", "pip install -Ur r.txt": "ask", "pip install --req=r.txt": "ask", "pip install -c r.txt x": "ask",
            "pip install .": "ask", "pip install -e .": "ask", "pip install -r https://evil.example/r.txt": "deny", "uv sync": "ask",
            "uv pip sync r.txt": "ask", "uv run --with-requirements r.txt x": "ask", "pip-sync": "ask", "cd x && uv sync": "ask",
            "yarn --frozen-lockfile": "deny", "git -C x push https://evil.example/a": "deny", "git -C x push --repo=https://evil.example/a": "deny",
            "git config remote.origin.url https://evil.example/": "deny", "git clone evil.example:a": "deny", "git push origin": "allow"}
    assert dict(decide(list(rows), wide, sources=SOURCES)) == rows
    hosts = {"network(outbound:api.example.com)": "allow", "network(outbound:evil.example)": "deny"}
    assert dict(decide(list(hosts), wide, kind="network", sources=SOURCES)) == hosts


CLAUDE = {"permissions": {
    "allow": ["Bash(npm run test:*)", "Bash(git commit *)", "Bash(make build)", "Bash(* --version)", "Bash(npx jest*)", "Edit(src/**)",
              "Read(~/.zshrc)", "Edit(/docs/**)", "Read(//opt/data/**)", "WebFetch(domain:example.com)"],
    "ask": ["Bash(git commit --amend *)"],
    "deny": ["Bash(curl:*)", "Read(.env)", "Read(./secrets/**)", "Bash(rm -rf *)"],
    "defaultMode": "default", "additionalDirectories": ["../shared"]}}


def test_settings_of_claude_code_keep_their_meaning():
    where = {"cwd": "/p", "home": "/h"}
    rows = {"npm run test": "allow", "npm run test -- -v": "allow", "npm run testing": "ask", "npm run build": "ask", "make build": "allow",
            "make build x": "ask", "git commit -m a": "allow", "git commit --amend -m a": "ask", "git commit": "ask",
            "cargo --version": "allow", "npx jest-cli a": "allow", "curl x": "deny", "ls && curl x": "deny", "timeout 5 npm run test": "allow",
            "cat .env": "deny", "cat sub/.env": "deny", "cat secrets/a/b": "deny", "cat a.py": "allow", "git status": "allow",
            "rm -rf a": "deny", "npm run test > out": "allow", "npm run test > /etc/x": "ask", "npm run test && docker ps": "ask"}
    assert dict(decide(list(rows), CLAUDE, **where)) == rows
    files = {"file(read:/p/a)": "allow", "file(read:/p/.env)": "deny", "file(read:/p/x/.env)": "deny", "file(read:/p/secrets/x)": "deny",
             "file(write:/p/src/a/b)": "allow", "file(write:/p/a)": "ask", "file(read:/h/.zshrc)": "allow", "file(read:/etc/passwd)": "ask",
             "file(write:/p/docs/x)": "allow", "file(read:/opt/data/x)": "allow", "file(read:/shared/x)": "allow"}
    assert dict(decide(list(files), CLAUDE, kind="file", **where)) == files
    hosts = {"network(outbound:example.com)": "allow", "network(outbound:x.example.com)": "ask"}
    assert dict(decide(list(hosts), CLAUDE, kind="network", **where)) == hosts


SRT = {"network": {"allowedDomains": ["github.com", "*.good.example"], "deniedDomains": ["bad.good.example"], "allowLocalBinding": False},
       "filesystem": {"denyRead": ["~/.ssh"], "allowWrite": [".", "/tmp"], "denyWrite": [".env", "config/prod.json"]}}


def test_settings_of_srt_keep_their_meaning():
    where = {"cwd": "/p", "home": "/h"}
    files = {"file(read:/etc/passwd)": "allow", "file(read:/h/.ssh/id)": "deny", "file(write:/p/a/b)": "allow", "file(write:/p/.env)": "deny",
             "file(write:/tmp/x)": "allow", "file(write:/etc/x)": "deny", "file(delete:/p/config/prod.json)": "deny",
             "file(write:/p/.git/hooks/x)": "deny", "file(write:/p/sub/.git/config)": "deny"}
    assert dict(decide(list(files), SRT, kind="file", **where)) == files
    hosts = {"network(outbound:github.com)": "allow", "network(outbound:x.good.example:8080)": "allow",
             "network(outbound:bad.good.example)": "deny", "network(outbound:evil.example)": "deny"}
    assert dict(decide(list(hosts), SRT, kind="network", **where)) == hosts
    rows = {"make; $x": "allow", "cat ~/.ssh/id": "deny", "echo x > /etc/x": "deny", "echo x > a": "allow", "touch .env": "deny"}
    assert dict(decide(list(rows), SRT, **where)) == rows


@pytest.mark.parametrize("settings, named", [
    ({"permissions": {"allow": ["shell(ls)"], "alow": []}}, "unknown key 'permissions.alow'"),
    ({"permissions": {}, "hooks": {}}, "unknown key 'hooks'"),
    ({"permissions": {"allow": ["Bash(ls)"]}, "hooks": {}}, "unknown key 'hooks'"),
    ({"permissions": {"allow": ["WebSearch"]}}, "the tool 'WebSearch' isn't supported here"),
    ({"permissions": {"allow": ["Bash(ls)", "shell(ls)"]}}, "the tool 'shell' isn't supported here"),
    ({"permissions": {"defaultMode": "plan"}}, "permissions.defaultMode"),
    ({"permissions": {"default": "maybe"}}, "permissions.default: allow, ask or deny expected"),
    ({"filesystem": {"allowRead": ["/a"]}}, "filesystem.allowRead isn't supported here"),
    ({"network": {"allowedDomains": ["*.com"]}}, "network.allowedDomains[0]: '*.com': too wide"),
    ({"network": {"mitmProxy": {}}}, "unknown key 'network.mitmProxy'"),
    ({}, "no object 'permissions'"),
])
def test_a_settings_file_that_is_not_understood_names_the_key(tmp_path, settings, named):
    path = tmp_path / "settings.json"
    path.write_text(json.dumps(settings, indent=1))
    done = carrel("check", "-s", path, "--", "ls")
    assert (done.returncode, done.stdout) == (125, "")
    assert named in done.stderr and str(path) in done.stderr


def test_errors_of_a_settings_file_have_a_line_and_bounds(tmp_path):
    path = tmp_path / "settings.json"
    path.write_text('{"permissions": {\n "deny": [\n  "shell(ls)",\n  "shell(ls"]}}')
    assert f"{path}:4: permissions.deny[1]: 'shell(ls': a rule ends with ')'" in carrel("check", "-s", path, "--", "ls").stderr
    path.write_bytes(b'{"permissions": {"deny": ["shell(\xff)"]}}')
    assert "not valid UTF-8" in carrel("check", "-s", path, "--", "ls").stderr
    path.write_text(" " * (4 << 20) + "{}")
    assert "more than 4194304 bytes" in carrel("check", "-s", path, "--", "ls").stderr
    path.write_text('{"permissions":' + "[" * 5000)
    assert "nested deeper" in carrel("check", "-s", path, "--", "ls").stderr


def test_the_exit_code_is_the_decision(tmp_path):
    path = tmp_path / "settings.json"
    path.write_text(json.dumps(SETTINGS))
    for words, code, text in ((["--", "ls", "-l"], 0, "allow"), (["--", "curl", "x"], 126, "deny"), (["--", "make"], 1, "ask"),
                              (["--command", "ls; curl x"], 126, "deny"), (["--file", "read:/etc/shadow"], 126, "deny"),
                              (["--file", "write:/workspace/a"], 0, "allow"), (["--network", "a.example:443"], 126, "deny"),
                              (["--", "grep", "$(curl x)", "a"], 0, "allow")):
        done = carrel("check", "-s", path, *words)
        assert (done.returncode, done.stdout, done.stderr) == (code, f"{text}\n", "")
    for words in ([], ["--command", "ls", "--", "ls"], ["--file", "x"]):
        done = carrel("check", "-s", path, *words)
        assert (done.returncode, done.stdout) == (125, "")
    default = tmp_path / "default.json"
    default.write_text(json.dumps({"permissions": {"allow": ["shell(ls)"], "default": "deny"}}))
    assert carrel("check", "-s", default, "--", "make").stdout == "deny\n"


def test_explain_names_the_rules_and_what_would_allow(tmp_path):
    path = tmp_path / "settings.json"
    path.write_text(json.dumps(SETTINGS, indent=1))
    done = carrel("explain", "-s", path, "--command", "timeout 5 curl x; docker build . && ls")
    assert done.returncode == 126
    for text in ("deny", "(through timeout)", "by the rule shell(curl:*)", f"{path}, line ", "shell(docker build:*)"):
        assert text in done.stdout, done.stdout
    done = carrel("explain", "-s", path, "-o", "json", "--", "cat", "/usr/*", "a\x7fb")
    assert json.loads(done.stdout)["suggestions"] == []    # a rule would allow more than that file
    told = json.loads(carrel("explain", "-s", path, "-o", "json", "--", "docker", "build", ".").stdout)
    assert (told["decision"], told["suggestions"]) == ("ask", ["shell(docker build:*)"])


def test_lint_finds_rules_that_are_malformed_wide_or_without_effect(tmp_path):
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"permissions": {
        "allow": ["shell(bash:*)", "shell(*)", "shell(ls:*)", "shell(ls:*)", "shell(git status)", "shell(git:*)", "shell(curl x)",
                  "file(write:/**)", "network(outbound:*)", "shell(ls | head)", "nonsense"],
        "deny": ["shell(curl:*)"]}}, indent=1))
    done = carrel("lint", path, "-o", "json")
    assert done.returncode == 1
    found = {(row["kind"], row["rule"]) for row in json.loads(done.stdout)}
    for row in (("too_wide", "shell(bash:*)"), ("too_wide", "shell(*)"), ("shadowed", "shell(git status)"),
                ("never_matches", "shell(curl x)"), ("too_wide", "file(write:/**)"), ("too_wide", "network(outbound:*)"),
                ("never_matches", "shell(ls | head)"), ("malformed", None)):
        assert row in found, (row, found)
    assert all(row["line"] > 1 for row in json.loads(done.stdout))
    path.write_text('{"permissions": {"allow": ["shell(ls:*)"], "deny": ["shell(curl:*)"]}}')
    done = carrel("lint", path)
    assert (done.returncode, done.stdout) == (0, "")


def test_examples_of_a_file_are_tested(tmp_path):
    (tmp_path / "settings.json").write_text(json.dumps(SETTINGS))
    path = tmp_path / "tests.yaml"
    path.write_text("settings: settings.json\nexpect:\n  allow:\n    - ls -la\n    - file(read:/workspace/a)\n  deny:\n    - curl x\n"
                    "  ask:\n    - docker ps\nrules:\n  'shell(git push:*)':\n    match: [git push, git -C x push]\n    not: [git pull]\n")
    done = carrel("test", path)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.endswith("7 passed, 0 failed\n"), done.stdout
    path.write_text('{"allow": ["shell(ls)"], "expect": {"allow": ["ls", "ls -l"]}}')
    done = carrel("test", path)
    assert done.returncode == 1 and "FAIL  allow   ls -l: ask" in done.stdout
    assert [row["ok"] for row in json.loads(carrel("test", path, "-o", "json").stdout)] == [True, False]
    path.write_text("allow: [x]\nexpect:\n  allow: [ls]\n")
    assert carrel("test", path).returncode == 125
