"""Posts push notifications. Stdin: a line of JSON {url, headers, seconds}, then a body in each line. Stdout: a line of JSON for each of
them, {status} or {error}; the first that was not taken is the last. Nothing of the URL and the headers is written."""
import json
import os
import re
import signal
import sys
import urllib.error
import urllib.request


class Stay(urllib.request.HTTPRedirectHandler):
    """A redirection is an answer like any other."""

    def redirect_request(self, *args):
        return None


def on_alarm(signo, frame):
    raise TimeoutError("no answer in time")


def printable(text):
    return "".join(c if " " <= c <= "~" else "?" for c in text[:200])


def post(opener, head, body):
    signal.alarm(head["seconds"])
    try:
        with opener.open(urllib.request.Request(head["url"], body, head["headers"], method="POST")) as answer:
            return {"status": answer.status}
    except urllib.error.HTTPError as error:
        why = error.read(200).decode(errors="replace")
        # Egress says why it refuses.
        return {"status": error.code, **({"error": printable(why.strip())} if why.startswith("carrel: ") else {})}
    except Exception as error:
        why = str(getattr(error, "reason", error)) or type(error).__name__
        tunnel = re.search("Tunnel connection failed: ([0-9]{3})", why)
        return {"status": int(tunnel[1]), "error": "egress refused or could not connect"} if tunnel else {"error": printable(why)}
    finally:
        signal.alarm(0)


def main():
    head = json.loads(sys.stdin.buffer.readline())
    # Egress judges every host, and says why it refuses: also those that a program would look for in the sandbox.
    for name in ("no_proxy", "NO_PROXY"):
        os.environ.pop(name, None)
    opener = urllib.request.build_opener(Stay)
    signal.signal(signal.SIGALRM, on_alarm)
    for line in sys.stdin.buffer:
        try:
            result = post(opener, head, line.rstrip(b"\n"))
        except TimeoutError as error:  # the alarm came when the answer was there already
            result = {"error": str(error)}
        print(json.dumps(result), flush=True)
        if not 200 <= result.get("status", 0) < 300:
            break


main()
