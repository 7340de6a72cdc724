#!/usr/bin/python3
"""Compares the shell grammar with shfmt's parser, bash -n and dash -n.

usage: compare.py SHELL_COMMANDS [--count N] [--seed S]

The scripts are those of this machine and N that are made of their lines and of tokens. For each
script that the grammar understands, shfmt has to find the same commands with the same words, and
the shells have to accept it. Exit code 1: a script for which one of them doesn't.
"""
import argparse
import collections
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
DECLARATIONS = (b"export", b"declare", b"local", b"readonly", b"typeset", b"nameref")
TOKENS = rb"""' " ` $( ) $(( )) ${ } { ( \ ; ;; & && | || < > >> # ! [[ ]] = a= a+= a[1]= =( if then fi
do done case x in esac for while until function f() * ? [ ] ~ $x ${x:- ${x# ${#x} $' $" <( >( &> >& 2>&1
<<< time select {a,b} {1..3} @( - -- \' \" \` \$ $$ $# $! echo ls $[1] ${!x} ${x[1]} ${x//a/b} ${x:1:2}
elif else {fd}>x 3<f 3<&-""".split() + [
    b"\n", b"\\\n", b"\t", b" ", b"<<E\n", b"\nE\n", b"<<'E'\n", b"<<-E\n", b"\r", b"\x0c", b"\xc2\xa0", b" # "]
PIECES = [b"echo a", b"ls $x", b"cat <<E\nx\nE\n", b"if a; then b; fi", b"x=$(id)", b"(a)", b"{ a; }",
          b"case x in a) b;; esac", b"for i in 1 2; do a; done", b"f() { a; }", b"`id`", b"[[ a == b ]]",
          b'"a $(b) c"', b"${x:-$(id)}", b"$((1+2))", b"a && b || c", b"a | b", b"! a", b"while a; do b; done <f"]
# Read otherwise by shfmt than by bash and dash: "$((" and "$(" with a line break within, a comment that ends with a
# backslash, and an assignment to what isn't a name, with a bracket.
SHFMT_ERRS = re.compile(rb"\$\\\n\(|\$\(\\\n\(|(^|[\s;&|(])#[^\n]*\\\n|(^|[\s;&|(])[^\s=]*[^\w\s=+][^\s=]*=\S*\[")


def scripts_of_this_machine():
    found = []
    for top in ("/usr", "/etc"):
        for where, _, names in os.walk(top):
            for path in (pathlib.Path(where, name) for name in names):
                if path.is_symlink() or not path.is_file() or not os.access(path, os.R_OK):
                    continue
                with open(path, "rb") as file:
                    first = file.readline(64)
                    if not first.startswith(b"#!") or not first.split()[-1].endswith((b"/sh", b"/bash", b"/dash", b"bash")):
                        continue
                    script = first + file.read()
                if b"\0" not in script and len(script) < 1 << 20:
                    found.append(script)
    return found


def made_up(chance, lines):
    if chance.random() < 0.4:
        return b"".join(chance.choice(TOKENS) + chance.choice([b"", b" "]) for _ in range(chance.randint(2, 9)))
    if chance.random() < 0.5:
        script = b"\n".join(chance.choice(lines) for _ in range(chance.randint(1, 2)))
    else:
        script = b"".join(chance.choice(PIECES) + chance.choice([b";", b"\n", b" ", b"&", b""]) for _ in range(chance.randint(1, 4)))
    for _ in range(chance.randint(0, 3)):
        at = chance.randint(0, len(script))
        if chance.random() < 0.7:
            script = script[:at] + chance.choice(TOKENS) + script[at:]
        else:
            script = script[:at] + script[at + chance.randint(1, 3):]
    return script


def answers(command, scripts):
    printed = subprocess.run(command, input=b"".join(script + b"\0" for script in scripts), check=True, stdout=subprocess.PIPE).stdout
    lines = printed.split(b"\n")[:-1]
    if len(lines) != len(scripts):
        sys.exit(f"{command}: {len(lines)} answers for {len(scripts)} scripts")
    return lines


def commands_of(line):
    """The commands, those without words left out. "elif" is an IfClause to shfmt; bash's "time" is a word to us."""
    found = []
    for command in line.split(b"\x1e"):
        words = command.split(b"\x1f")
        assigned, _, first = words[0].rpartition(b"= ")
        assigned += b"= " if assigned else b""
        while first == b"time":
            words = [assigned + b"".join(words[1:2]), *words[2:]]
            first = words[0][len(assigned):]
        first = words[0].split(b"= ")[-1]
        if first in DECLARATIONS:
            words = [b"DeclClause"]
        if first == b"let":
            words = [b"LetClause"]
        if words not in ([b""], [b"IfClause"], [b"TimeClause"]):
            found.append(words)
    return found


def are_equal(ours, theirs):
    theirs = commands_of(theirs)
    for command in commands_of(ours):
        for other in theirs:  # a word that we don't take for literal may be one to shfmt
            if len(command) == len(other) and all(a == b or a.endswith(b"\x1a") for a, b in zip(command, other)):
                theirs.remove(other)
                break
        else:
            return False
    return not theirs


def accepts(shell, script):
    return subprocess.run([shell, "-n"], input=script, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def disagreements(ours, shfmt, scripts, dialect, variants, shells):
    """Yields (script, whose, its answer) for what is understood. Errors within arithmetic are found at run time only."""
    mine = answers([ours, dialect], scripts)
    theirs = {variant: answers([shfmt, variant], scripts) for variant in variants}
    understood = 0
    for i, script in enumerate(scripts):
        if mine[i].startswith(b"unknown"):
            continue
        understood += 1
        for variant in () if SHFMT_ERRS.search(script) else variants:
            answer = theirs[variant][i]
            is_refused = answer.startswith(b"error: ")
            if is_refused and all(accepts(shell, script) for shell in shells):
                continue
            if is_refused or not are_equal(mine[i], answer):
                yield script, f"shfmt as {variant}", mine[i] + b"\n  " + answer
        for shell in shells:
            if not accepts(shell, script):
                yield script, shell, mine[i]
    print(f"{dialect}: {understood} of {len(scripts)} scripts are understood", flush=True)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("ours")
    options.add_argument("--count", type=int, default=100_000)
    options.add_argument("--seed", type=int, default=1)
    options = options.parse_args()
    with tempfile.TemporaryDirectory() as work:
        shfmt = work + "/shfmt"
        subprocess.run(["go", "build", "-o", shfmt, "."], cwd=HERE / "shfmt", check=True)
        real = scripts_of_this_machine()
        lines = [line for script in real for line in script.split(b"\n") if 0 < len(line) < 200]
        chance = random.Random(options.seed)
        scripts = real + [made_up(chance, lines) for _ in range(options.count)]
        shown = collections.Counter()
        for dialect, variants, shells in (("sh", ("posix", "bash"), ("bash", "dash")), ("bash", ("bash",), ("bash",))):
            for script, whose, answer in disagreements(options.ours, shfmt, scripts, dialect, variants, shells):
                shown[whose] += 1
                if shown[whose] <= 10:
                    print(f"{dialect}, {whose}: {script[:200]!r}\n  {answer[:400].decode(errors='replace')}", flush=True)
    print(f"{sum(shown.values())} disagreements {dict(shown)}")
    return 1 if shown else 0


sys.exit(main())
