"""Programs that are built here and reach what is listed: by the proxy's variables, and by names."""
import shutil
import subprocess

import pytest
from harness import PATH, Carrel
from origins import configure, make_certificates, origin

BARE = "unset HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy;"
GET = """package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
)

func main() {
	for _, url := range os.Args[1:] {
		answer, err := http.Get(url)
		if err != nil {
			fmt.Println("refused")
			continue
		}
		body, _ := io.ReadAll(answer.Body)
		fmt.Print(string(body))
	}
}
"""


@pytest.mark.skipif(not shutil.which("go", path=PATH), reason="no go")
def test_go_reaches_what_is_listed(tmp_path):
    """Its own resolver and its own TLS: nothing of the C library is used."""
    (tmp_path / "get.go").write_text(GET)
    variables = {"PATH": PATH, "HOME": str(tmp_path), "CGO_ENABLED": "0", "GO111MODULE": "off", "GOFLAGS": "", "GOPROXY": "off"}
    subprocess.run(["go", "build", "-o", "get", "get.go"], cwd=tmp_path, env=variables, check=True)
    configure(tmp_path / "carrel")
    carrel, certificates = Carrel(tmp_path), make_certificates(tmp_path)
    with origin() as plain, origin(certificates) as tls:
        urls = f"http://origin.test:{plain.port}/go https://origin.test:{tls.port}/go https://other.test:{tls.port}/closed"
        done = carrel.sh(f"export SSL_CERT_FILE=$PWD/ca.pem; ./get {urls}; {BARE} ./get {urls}",
                         "--allow-domain", f"origin.test:{plain.port}", "--allow-domain", f"origin.test:{tls.port}",
                         "-v", f"{tmp_path}/get:/workspace/get:ro", "-v", f"{tmp_path}/ca.pem:/workspace/ca.pem:ro")
        assert done.stdout == f"origin.test:{plain.port} /go\norigin.test:{tls.port} /go\nrefused\n" * 2, (done.stdout, done.stderr)
        assert not [path for _, path in tls.requests if path == "/closed"]
