"""What a sandbox shows of the host's /etc and /var: the configuration that programs need, and nothing else."""
import os

import pytest

NEEDED = ["/etc/ImageMagick-6", "/etc/alternatives", "/etc/chromium.d", "/etc/emacs", "/etc/fonts", "/etc/groff",
          "/etc/libreoffice", "/etc/manpath.config", "/etc/mime.types", "/etc/papersize", "/etc/php", "/etc/sgml",
          "/etc/texmf", "/etc/xml", "/var/cache/fontconfig", "/var/lib/ghostscript", "/var/lib/sgml-base",
          "/var/lib/texmf", "/var/lib/xml-core"]
CLOSED = ["/etc/shadow", "/etc/ssh", "/etc/ssl/private", "/etc/sudoers", "/etc/machine-id", "/etc/resolv.conf",
          "/etc/network", "/etc/gitconfig", "/etc/pip.conf", "/etc/npmrc", "/etc/profile", "/etc/apt", "/etc/pam.d",
          "/etc/subuid", "/var/lib/postgresql", "/var/lib/systemd", "/var/log", "/var/spool"]


def listed(carrel, paths):
    done = carrel.run("--", "sh", "-c", 'for path; do [ -e "$path" ] && echo "$path"; done; true', "-", *paths)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_configuration_of_installed_programs_is_shown(carrel):
    there = [path for path in NEEDED if os.path.exists(path)]
    assert "/etc/mime.types" in there, "this host lacks media-types, which Debian's Python depends on"
    assert listed(carrel, NEEDED) == there


def test_secrets_and_the_identity_of_the_host_are_not_shown(carrel):
    assert listed(carrel, CLOSED) == []


def test_mimetypes_are_those_of_the_host(carrel):
    guess = "import mimetypes; print(mimetypes.guess_type('paper.epub')[0])"
    done = carrel.run("--", "python3", "-c", guess)
    assert done.stdout == "application/epub+zip\n", done.stderr


@pytest.mark.parametrize("path", ["/etc/mime.types", "/etc/alternatives", "/etc/localtime"])
def test_volume_replaces_what_is_shown_by_default(carrel, tmp, path):
    mine = tmp / "mine"
    if os.path.isdir(path):
        mine.mkdir()
        (mine / "file").write_text("mine\n")
    else:
        mine.write_text("mine\n")
    done = carrel.run("-v", f"{mine}:{path}:ro", "--", "sh", "-c", f"cat {path} || cat {path}/file")
    assert done.stdout == "mine\n", done.stderr


def test_volume_over_etc_itself_is_refused(carrel, tmp):
    done = carrel.run("-v", f"{tmp}:/etc", "--", "true")
    assert done.returncode == 125 and "/etc" in done.stderr


def test_reverse_lookup_answers_from_hosts_without_waiting(carrel):
    text = """
import socket
print(socket.gethostbyaddr("127.0.0.1")[0], socket.gethostbyaddr("::1")[0], socket.getfqdn())
try: socket.gethostbyaddr("192.0.2.1")
except socket.herror: print("unknown")
try: socket.getaddrinfo("nobody.invalid", 80)
except socket.gaierror as err: print(err.errno == socket.EAI_NONAME)
"""
    done = carrel.run("--timeout", "20s", "--", "python3", "-c", text)
    assert done.stdout == "localhost localhost localhost\nunknown\nTrue\n", done.stderr
