"""Certificates of an authority that a test makes."""
import shutil
import subprocess

import pytest

KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]


def openssl(directory, *words):
    subprocess.run(["openssl", *words], check=True, cwd=directory, capture_output=True)


def make_authority(directory):
    """ca.pem and ca.key."""
    if not shutil.which("openssl"):
        pytest.skip("no openssl")
    openssl(directory, "req", "-x509", *KEY, "-days", "2", "-subj", "/CN=test authority", "-keyout", "ca.key", "-out", "ca.pem")
    return directory


def make_certificate(authority, place, names="DNS:localhost", days=2):
    """server.pem and server.key in a new directory below the authority's. After 0 days it has expired at once."""
    place = authority / place
    place.mkdir()
    (place / "names").write_text(f"subjectAltName={names}\n")
    openssl(place, "req", *KEY, "-subj", "/CN=daemon", "-keyout", "server.key", "-out", "request")
    openssl(place, "x509", "-req", "-in", "request", "-CA", authority / "ca.pem", "-CAkey", authority / "ca.key", "-CAcreateserial", "-days",
            str(days), "-extfile", "names", "-out", "server.pem")
    return place
