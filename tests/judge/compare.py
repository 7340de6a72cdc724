#!/usr/bin/python3
"""Compares the judge of commands with what commands run.

usage: compare.py CARREL [--count N] [--seed S]

Makes up N commands of real programs, with options of their --help, glued, abbreviated, bundled and quoted. Those that the judge allows
run in sandboxes where the program that a rule denies is a recorder, and so do some of the others. Exit code 1: the judge allowed a
command that ran the recorder, or wrote where a rule denies it.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "cli"))
from policy_rows import DENIED_SHAPES, KNOWN_SHAPES, UNKNOWN_SHAPES  # noqa: E402

DENIED = "factor"       # of coreutils; nothing else runs it
WRAPPERS = {"env": 0, "timeout": 1, "nice": 0, "nohup": 0, "stdbuf": 0, "setsid": 0, "ionice": 0, "xargs": 0, "command": 0, "exec": 0,
            "time": 0, "flock": 1, "chrt": 1, "taskset": 1, "busybox": 0, "builtin": 0}
PROGRAMS = """tar sed awk gawk mawk original-awk find sort cp mv ln install tee split csplit xxd dd diff wc du date file printf less man
make rsync zip unzip gzip patch rg fdfind curl wget touch mkdir shuf iconv truncate cat grep head echo git busybox""".split()
SLOW = ["gcc", "cc"]
VERBS = """log diff show status grep clone fetch push commit checkout branch tag stash rebase archive blame ls-remote apply am
format-patch shortlog rev-parse init add""".split()
ALLOWED = [*WRAPPERS, *PROGRAMS, *SLOW, "sh", "bash", "ls", "true", "test", "jq", "cd", "nawk"]
SETTINGS = {"permissions": {
    "allow": [f"shell({name}:*)" for name in ALLOWED] + [f"file({operation}:/workspace/**)" for operation in ("read", "write", "delete")],
    "deny": [f"shell({DENIED}:*)", "file(write:/tmp/guard/**)", "file(delete:/tmp/guard/**)"]}}
# Without a rule for files nothing is asked for because it isn't known which file a word names.
NO_FILES = {"permissions": {"allow": SETTINGS["permissions"]["allow"][:len(ALLOWED)], "deny": SETTINGS["permissions"]["deny"][:1]}}
FIND = """-name -iname -path -type -size -mtime -newer -maxdepth -mindepth -exec -execdir -ok -okdir -delete -fprint -fprintf -fls -print
-print0 -printf -prune -regex -o -a -not ! ( ) -H -L -P -O3 -D -files0-from -perm -user -empty -newermt -regextype -samefile""".split()
GCC = """-o -c -S -E -wrapper -B -specs= -fplugin= -Wl, -Wp, -Wa, -Xlinker -I -D -include -O2 -g -Wall -x c -save-temps -MF -MD -no-canonical-prefixes
-fuse-ld= -T -L --sysroot= -idirafter -dumpbase -aux-info -fdump-tree-all= -MMD @options""".split()


def listed(text):
    """Words; a ~ in one is a blank."""
    return [word.replace("~", " ") for word in text.split()]


WORDS = listed(r"""factor factor factor /usr/bin/factor a b x ls sh -c 1 9 5 0 KILL bus {} ; + -- - -n -e -f -I -i -o list lines options rc
script.sed script.awk exec=factor |factor !factor =factor src a.tar a.tgz a.zip a.c a.diff x.gz * a* $X "$X" ${X} $(echo~factor)
`echo~factor` {factor,} 'a[$(factor)]' '1e~factor' 's/a/factor/e' 's/a/b/' 'BEGIN{system("factor")}' 'BEGIN{print|"factor"}' '{print}' p 1p
'/[[:alpha:]/s/]/e~factor~#/p' '/[[.a.]/s/]/e~factor~#/p' -ie -fe
/tmp/guard/x /tmp/guard -o/tmp/guard/x GIT_PAGER=factor PATH=. SHELL=/usr/bin/factor CC=factor X=1 'X=$(shell~factor)' --checkpoint=1
--checkpoint-action=exec=factor -wfactor ext::factor 'ext::sh~-c~factor' file:///workspace/a host:a ./ls 'sh~-c~factor' 'factor~x'
%output{/tmp/guard/x} x:5 a$M "a$M" $M "$M" a$O src$O $E "$S" a$E a{,factor} "a$@" ?""")
VARIABLES = listed("""RANDOM SECONDS LINENO OPTIND HISTCMD SRANDOM EPOCHSECONDS BASHPID UID COLUMNS SHLVL X A GCC_EXEC_PREFIX COMPILER_PATH
CC RIPGREP_CONFIG_PATH GIT_PAGER PAGER GIT_EXTERNAL_DIFF EDITOR LESSOPEN TAR_OPTIONS MAKEFLAGS BASH_ENV ENV PS4 IFS PATH LD_PRELOAD
RSYNC_RSH GIT_SSH_COMMAND MANPAGER GZIP ZIPOPT SHELL FOO""")
VALUES = listed(r"""'a[$(factor)]' factor rc options . 1 '$(factor)' script.awk /workspace '|factor~%s' --checkpoint-action=exec=factor
'x=$(shell~factor)'""")
# They run the recorder, or write in the guarded directory: another spelling of one does it as well.
HOT = r"""tar xf a.tar -I factor|tar -x -f a.tar --use-compress-program factor|tar cf b.tar a --checkpoint=1 --checkpoint-action=exec=factor
tar xf a.tar --to-command=factor|tar xf a.tar -C /tmp/guard|tar cf /tmp/guard/x a|tar -c -z -f /tmp/guard/x a|tar -cvf b.tar --rsh-command=factor a
sed '1e factor' a|sed -n -e '1e factor' a|sed 's/a/factor/e' a|sed -f script.sed a|sed 'w /tmp/guard/x' a|sed -n '/a/w /tmp/guard/x' a
awk 'BEGIN{system("factor")}'|gawk -f script.awk a|mawk 'BEGIN{print|"factor"}'|original-awk -f script.awk a|busybox awk 'BEGIN{system("factor")}'
gawk -e 'BEGIN{system("factor")}'|awk '{print > "/tmp/guard/x"}' a|busybox sed 'w /tmp/guard/x' a|busybox find . -exec factor {} +
sort -S1 --compress-program=factor a|sort -o /tmp/guard/x a|sort -u -n -o /tmp/guard/x a|sort --output=/tmp/guard/x a|split --filter=factor a
find . -exec factor {} \;|find . -name a -execdir factor {} +|find . -fprint /tmp/guard/x|find . -fprintf /tmp/guard/x %p|find a -ok factor {} ;
split a /tmp/guard/x|split -l 1 -d a /tmp/guard/x|csplit -f /tmp/guard/x a 1|xxd a /tmp/guard/x|dd if=a of=/tmp/guard/x|tee /tmp/guard/x
cp a /tmp/guard|cp -t /tmp/guard a b|cp -r --target-directory=/tmp/guard src|mv a b /tmp/guard|mv -t /tmp/guard a|install -D a /tmp/guard/x/y
install -d src/b /tmp/guard/x|install -m 644 -t /tmp/guard a|ln -s a /tmp/guard/x|ln -s -t /tmp/guard a|touch -r a /tmp/guard/x|mkdir -p /tmp/guard/x
truncate -s 0 /tmp/guard/x|shuf -o /tmp/guard/x a|iconv -o /tmp/guard/x a|rsync -a src /tmp/guard|rsync -a -v --log-file=/tmp/guard/x src b
rsync -e factor a host:b|rsync -a -z --rsh=factor a host:b|rsync --rsync-path factor -e factor a h:b|unzip a.zip -d /tmp/guard|unzip -q -d /tmp/guard a.zip
zip /tmp/guard/x a|zip -q -r /tmp/guard/x src|zip -T -TT factor b.zip a|zip -b /tmp/guard b.zip a|gzip -c a > /tmp/guard/x|patch -o /tmp/guard/x a a.diff
patch -d /tmp/guard -o x /workspace/a a.diff|curl -s -o /tmp/guard/x file:///workspace/a|curl --output-dir /tmp/guard -O file:///workspace/a
curl -s --stderr /tmp/guard/x file:///workspace/a|curl -D /tmp/guard/x file:///workspace/a|curl -K curlrc|wget -o /tmp/guard/x http://127.0.0.1:1/
wget -a /tmp/guard/x http://127.0.0.1:1/|wget --save-cookies /tmp/guard/x http://127.0.0.1:1/|wget -P /tmp/guard -o b http://127.0.0.1:1/
gcc -wrapper factor -c a.c|gcc -o /tmp/guard/x a.c|gcc -c -O2 -o /tmp/guard/x a.c|gcc @options -c a.c|cc -fplugin=./x a.c|gcc -MD -MF /tmp/guard/x -c a.c
make SHELL=/usr/bin/factor|make CC=factor a.o|make -e CC=factor a.o|make --eval='$(shell factor)'|make 'X=$(shell factor)'
make X='`factor`'|rg --pre factor a b|rg -i --pre=factor a a|fdfind -x factor|fdfind -X factor|fdfind -t f -x factor {}|fdfind . src -H --exec factor
git -c core.pager=factor -p log|git -c alias.x=!factor x|git grep -Ofactor a|git grep -n --open-files-in-pager=factor a|git --paginate log
git clone -u factor . b|git clone --upload-pack factor . b|git clone . /tmp/guard/x|git init /tmp/guard/x|git archive -o /tmp/guard/x HEAD
git format-patch -o /tmp/guard -1|git diff --output=/tmp/guard/x HEAD|git log --output=/tmp/guard/x -1|git fetch --upload-pack factor .
git clone ext::factor b|git ls-remote --upload-pack=factor .|git fetch ext::factor|git bisect run factor|git rebase -x factor HEAD|git push --receive-pack=factor . x
git init --template=. b|git worktree add /tmp/guard/x|git config core.pager factor|git difftool -y -x factor HEAD|git submodule foreach factor
man -P factor ls|man --pager=factor ls|less +!factor a|less -O /tmp/guard/x|file -C -m a|ls > /tmp/guard/x|tree -o /tmp/guard/x|du -a > /tmp/guard/x
env factor|env -u a factor|env -i factor 7|env A=1 factor|env -S 'factor 7'|env -C src factor|timeout 5 factor|timeout -s KILL -k 9 5 factor
timeout --preserve-status --signal=9 5 factor|nice -n 5 factor|nohup factor|stdbuf -o L -e 0 factor|setsid -w factor|ionice -c 3 factor
chrt -b 0 factor|taskset -c 0 factor|flock a factor|flock -n a -c factor|flock -w 1 a factor|time factor|time -p factor|command -p factor|exec factor
exec -a x factor|busybox env factor|busybox timeout 5 factor|busybox nice factor|busybox xargs factor|busybox sh -c factor|bash -c factor|sh -e -c factor
xargs factor|xargs -n 1 factor|xargs -I x factor x|xargs -I ls ls|xargs -I {} {}|xargs -d , factor|xargs -a list factor|xargs -P 2 -L 1 factor|xargs -t -r factor
xargs -a lines sed|xargs -a lines -I x sh -c x|xargs -a lines -I p sed -n p a|xargs -a lines -I p awk p a|xargs -a lines -n 1 tar cf b.tar a
printf -v 'A[$(factor)]' x|test -v 'A[$(factor)]'|[[ -v A[$(factor)] ]]|[[ 'A[$(factor)]' -eq 1 ]]|let 'A[$(factor)]'|declare -i x='A[$(factor)]'"""
HOT = [hot for hot in re.split(r'\|(?!")|\n', HOT) if hot]
# I: a command, W: a word, V: a variable, Y: a value, Q: a command in quotes.
SCRIPTS = r"""I; I|I || I|I && I|I & I|(I)|{ I; }|! I|if I; then I; fi|echo $(I)|x=$(I)|for V in W; do I; done|while I; do break; done
case W in *) I;; esac|f() { I; }; f|echo "${A:-$(I)}"|echo $((V))|echo $((1+W))|V=Y|V=Y I|export V=Y; I|declare -i A=Y|declare V=Y
f() { local V=Y; }; f|readonly V=Y|read V < list|printf -v V Y|[[ W -eq 1 ]]|[[ -v W ]]|test -v W|[ W -eq 1 ]|let W|((W))|echo ${A[W]}
A[W]=1|echo ${A:W}|echo ${A:1:W}|echo ${!A}|eval I|eval W|trap I EXIT|cd src; I|xargs I < lines|set -- W; "$@"|I > W|I < W|bash -c Q
sh -c Q|sh -c W|unset W|getopts W V|shift W|alias ls=W; ls|mapfile -C W -c 1 A < list|ulimit W|wait W|: ${V:=Y}|exec I|time I|coproc I
find . -exec I \;|echo {W,a}|A=Y; echo $((A))|A=Y; ((A))|A=W; echo ${A:A}|cat <<< "$(I)"|cat < W|for ((V=W;;)); do break; done|trap -- W EXIT
find . -exec ls W -exec I \;|find . -exec I + W -ok ls \;|find aW|tar cf b.tar aW|find . -name a | xargs I|fdfind -x I|cat lines | xargs -I W I|cat lines | xargs I|V=Y; export V; I|A=(W); echo "${A[V]}"|I; I; I
declare -n A=W; echo $A|select V in W; do break; done|select V in I; do break; done""".replace("\n", "|").split("|")
SCRIPTS = [script for script in SCRIPTS if script.strip()] + ["echo W | I", "echo W | xargs I", "I || I", "cat <<E\n$(I)\nE\n", "I |& I"]


def options_in(argv):
    said = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=20, check=False).stdout
    return sorted(set(re.findall(r"(?<![\w/.-])--?[A-Za-z0-9][\w-]*=?", said.decode(errors="replace"))))


def options_of_help():
    """The options that programs say they have."""
    found = {}
    for name in [*PROGRAMS, *WRAPPERS]:
        try:
            found[name] = options_in([name, "--help"])
        except (OSError, subprocess.TimeoutExpired):    # a command of the shell
            continue
    for verb in VERBS:
        found["git " + verb] = options_in(["git", verb, "-h"])
    found["find"], found["gcc"], found["cc"] = FIND, GCC, GCC
    return {name: options for name, options in found.items() if options}


def quoted(chance, word):
    if word[:1] in "'\"$`" or word in ("*", "a*", "{factor,}"):
        return word
    how = chance.random()
    if how < 0.02 and len(word) > 1:
        at = chance.randint(1, len(word) - 1)
        return quoted(chance, word[:at]) + chance.choice(["''", '""', "\\\n"]) + quoted(chance, word[at:])
    if how < 0.08 or not re.fullmatch(r"[\w./:=@%+,-]+", word):
        return "'" + word.replace("'", "'\\''") + "'"
    return word


class Maker:
    def __init__(self, seed, options):
        self.chance, self.options = random.Random(seed), options

    def word(self):
        return self.chance.choice(WORDS)

    def option(self, name):
        """One or two words."""
        pick = self.chance
        option = pick.choice(self.options.get(name) or ["-x", "-I", "-c"])
        value = self.word()
        if option.startswith("--"):
            bare = option.rstrip("=")
            if pick.random() < 0.2:
                bare = bare[:pick.randint(3, len(bare))]
            return pick.choice([[bare], [f"{bare}={value}"], [bare, value], [option.rstrip("=")]])
        how = pick.random()
        if how < 0.25:
            return [option, value]
        if how < 0.45 and not value.startswith(("'", '"', "$", "`")):
            return [option + value]
        if how < 0.6:
            other = pick.choice(self.options.get(name) or ["-x"])
            return [option + other.lstrip("-")[:1], value] if not other.startswith("--") else [option, other]
        return [option]

    def program(self):
        pick = self.chance
        name = pick.choice(SLOW) if pick.random() < 0.01 else pick.choice(PROGRAMS)
        words, key = [name], name
        if name == "git":
            key = "git " + pick.choice(VERBS)
            if pick.random() < 0.15:
                words += self.option("git")
            words.append(key[4:])
        if name == "busybox":
            key = pick.choice(["sed", "awk", "find", "tar", "xargs", "sort", "env", "timeout", "sh"])
            words.append(key)
        if name == "tar" and pick.random() < 0.4:
            words.append("".join(pick.choice("xtcrfvzjICOFTPkC") for _ in range(pick.randint(1, 4))))
        for _ in range(pick.choice([0, 1, 1, 2, 3])):
            words += self.option(key)
        for _ in range(pick.choice([0, 1, 1, 2])):
            words.insert(pick.randint(1, len(words)), self.word()) if pick.random() < 0.3 else words.append(self.word())
        return words

    def wrapper(self, depth):
        pick = self.chance
        name = pick.choice(list(WRAPPERS))
        words = [name]
        for _ in range(pick.choice([0, 1, 1, 2])):
            words += self.option(name)
        if pick.random() < 0.9:
            words += [pick.choice(["5", "1", "lock", "x", "0"]) for _ in range(WRAPPERS[name])]
        if name in ("env", "time") and pick.random() < 0.3:
            words.append(f"{pick.choice(VARIABLES)}={pick.choice(['factor', '1', '.'])}")
        return words + self.command(depth + 1)

    def row(self):
        """A row of the tests, with the denied program in it."""
        row = self.chance.choice([*KNOWN_SHAPES, *DENIED_SHAPES, *UNKNOWN_SHAPES])
        return row.replace("/etc/x", "/tmp/guard/x").replace("/etc", "/tmp/guard")

    def respelled(self, words):
        """Glued, cut, bundled, moved: what may mean the same."""
        pick = self.chance
        for _ in range(pick.choice([0, 1, 1, 2, 2, 3])):
            at = pick.randint(0, len(words) - 1)
            word, following = words[at], words[at + 1:at + 2]
            is_long, is_short = word.startswith("--"), len(word) > 1 and word[0] == "-" and word[1] != "-"
            if is_long and pick.random() < 0.6:
                name, equals, value = word.partition("=")
                words[at] = name[:pick.randint(3, max(3, len(name)))] + equals + value
            elif is_long and "=" in word:
                words[at:at + 1] = word.split("=", 1)
            elif is_short and following and pick.random() < 0.7:
                words[at:at + 2] = [word + (following[0][1:] if following[0][0] == "-" else following[0])]
            elif is_short and len(word) > 2:
                words[at:at + 1] = pick.choice([[word[:2], word[2:]], ["-" + word[1], "-" + word[2:]]])
            elif is_short and at > 1:
                words.insert(pick.randint(1, len(words) - 1), words.pop(at))
            elif at and pick.random() < 0.2:
                words[at:at] = self.option(words[0])
            elif at and pick.random() < 0.2:
                words.insert(at, "--")
            elif at == 0 and pick.random() < 0.3:
                words[0] = pick.choice(["/usr/bin/" + word, "'" + word + "'", "\\" + word, "command " + word, word[:1] + '""' + word[1:]])
        return words

    def mutated(self, words):
        pick = self.chance
        for _ in range(pick.choice([0, 0, 0, 1, 1, 2])):
            if len(words) < 2:
                break
            at = pick.randint(1, len(words) - 1)
            how = pick.randint(0, 5)
            if how == 0:
                words.insert(at, self.word())
            elif how == 1:
                words[at] = self.word()
            elif how == 2 and at + 1 < len(words):
                words[at:at + 2] = [words[at] + words[at + 1]]
            elif how == 3 and at + 1 < len(words):
                words[at], words[at + 1] = words[at + 1], words[at]
            elif how == 4:
                del words[at]
            elif how == 5 and len(words[at]) > 2 and words[at][0] == "-":
                words[at:at + 1] = [words[at][:2], words[at][2:]]
        return words

    def command(self, depth=0):
        how = self.chance.random()
        if depth > 3 or (depth and how < 0.5):
            return self.chance.choice([[DENIED], [DENIED, "x"], ["ls"], ["echo", "a"], ["sh", "-c", f"'{DENIED}'"], ["{}"], ["ls", DENIED]])
        return self.mutated(self.wrapper(depth) if how < 0.75 else self.program())

    def simple(self):
        if self.chance.random() < 0.4:
            words = re.findall(r"(?:'[^']*'|[^ '])+", self.chance.choice(HOT))
            return " ".join(self.mutated(self.respelled(words)) if self.chance.random() < 0.2 else self.respelled(words))
        if self.chance.random() < 0.2:
            row = re.sub(r"\brm\b", DENIED, self.row())
            words = row.split(" ")
            return " ".join(self.mutated(words)) if "'" not in row and '"' not in row else row
        words = self.command() if self.chance.random() < 0.5 else self.mutated(self.program())
        return " ".join(quoted(self.chance, word) for word in words)

    def script(self):
        pick = self.chance
        if pick.random() < 0.7:
            return self.simple()
        inner = {"I": self.simple, "W": self.word, "V": lambda: pick.choice(VARIABLES), "Y": lambda: pick.choice(VALUES),
                 "Q": lambda: "'" + self.simple().replace("'", "'\\''") + "'"}
        return re.sub(r"(?<![A-Za-z])[IWVYQ](?![A-Za-z])", lambda found: inner[found[0]](), pick.choice(SCRIPTS))

    def commands(self, count):
        made = []
        while len(made) < count:
            script = self.script()
            if "\0" not in script and len(script) < 4000:
                made.append([self.chance.choice(["bash", "sh"]), script])
        return made


def judged(carrel, commands, settings):
    lines = "".join(json.dumps({"kind": "shell", "settings": settings, "command": command, "shell": shell}) + "\n" for shell, command in commands)
    done = subprocess.run([carrel, "policy", "check", "--stream"], input=lines, capture_output=True, text=True, check=True)
    decisions = done.stdout.split()
    if len(decisions) != len(commands):
        sys.exit(f"{len(decisions)} answers to {len(commands)} commands: {done.stderr}")
    return decisions


def ran(carrel, recorder, commands):
    """[(whether the recorder ran, whether the guarded directory was written), …]"""
    argv = [carrel, "run", "-v", f"{recorder}:/usr/bin/{DENIED}:ro", "--", "python3", "-c", (HERE / "inside.py").read_text()]
    done = subprocess.run(argv, input=json.dumps(commands), capture_output=True, text=True, check=False)
    lines = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    if len(lines) != len(commands):
        sys.exit(f"a sandbox ended after {len(lines)} of {len(commands)} commands: {done.stderr[-1000:]}\n{commands[len(lines)]}")
    return lines


def build_recorder(work):
    subprocess.run(["cc", "-O1", "-static", "-o", f"{work}/recorder", HERE / "recorder.c"], check=True)
    return f"{work}/recorder"


def is_bad(command, result, may_write):
    return result[0] or (result[1] and tuple(command) not in may_write)


def compare(carrel, recorder, commands, jobs=1):
    """The commands that were allowed and shouldn't; how many were allowed, and how many of some others did what is denied."""
    decisions = list(zip(judged(carrel, commands, SETTINGS), judged(carrel, commands, NO_FILES)))
    allowed = [command for command, decision in zip(commands, decisions) if "allow" in decision]
    # Only the first settings deny what is written.
    may_write = {tuple(command) for command, decision in zip(commands, decisions) if decision[0] != "allow"}
    others = [command for command, decision in zip(commands, decisions) if "allow" not in decision][:max(20, len(commands) // 50)]
    batches = [allowed[i:i + 500] for i in range(0, len(allowed), 500)]
    found = []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for batch, results in zip(batches, pool.map(lambda batch: ran(carrel, recorder, batch), batches)):
            found += [command for command, result in zip(batch, results) if is_bad(command, result, may_write)]
        caught = sum(any(result) for result in ran(carrel, recorder, others))
    # Alone: what a command left behind may have done it.
    found = [command for command in found if is_bad(command, ran(carrel, recorder, [command])[0], may_write)]
    return found, len(allowed), caught, len(others)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("carrel")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    os.nice(19)
    print(f"seed {options.seed}", flush=True)
    maker = Maker(options.seed, options_of_help())
    bad, allowed, caught, others = [], 0, 0, 0
    with tempfile.TemporaryDirectory() as work:
        os.chmod(work, 0o755)
        recorder = build_recorder(work)
        for begin in range(0, options.count, 10_000):
            numbers = compare(options.carrel, recorder, maker.commands(min(10_000, options.count - begin)), options.jobs)
            for shell, command in numbers[0]:
                print(f"allowed, and did what is denied: {shell}: {command!r}", flush=True)
            bad, allowed, caught, others = bad + numbers[0], allowed + numbers[1], caught + numbers[2], others + numbers[3]
    print(f"{len(bad)} of {allowed} allowed commands did what is denied; {caught} of {others} others, of {options.count} made up")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
