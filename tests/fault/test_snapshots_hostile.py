"""Snapshots, forks, diffs and archives of a workspace while a program inside changes all that they look at."""
# security: files
import contextlib
import http.client

from harness import eventually
from rest import created, output_of

SECRET = "what-the-host-keeps"

# What can't be measured ends with its disk limit: directories stay readable. They become links to the host and back, files grow by large holes and get more names, marks of overlays are
# forged, and nothing may be read or listed in between.
RACE = """
import contextlib, os, random, socket, sys
HOST = sys.argv[1]
os.makedirs("deep/" + "d/" * 100)
for n in range(20):
    open(f"file{n}", "w").write("x" * n)
    os.makedirs(f"dir{n}/sub")
    open(f"dir{n}/sub/secret", "w").write("harmless")
dice, step = random.Random(1), 0
while not os.path.exists("stop"):
    step += 1
    n, m = dice.randrange(20), dice.randrange(20)
    with contextlib.suppress(OSError):
        match step % 10:
            case 0: os.rename(f"dir{n}", "aside"); os.symlink(HOST, f"dir{n}")
            case 1: os.unlink(f"dir{n}"); os.rename("aside", f"dir{n}")
            case 2: os.rename(f"dir{n}/sub", f"dir{m}/other"); os.symlink(HOST, f"dir{n}/sub")
            case 3: os.unlink(f"dir{n}/sub"); os.rename(f"dir{m}/other", f"dir{n}/sub")
            case 4: os.truncate(f"file{n}", dice.choice([0, 1 << 29, 5]))
            case 5: os.unlink(f"link{n}"); os.link(f"file{m}", f"link{n}")
            case 6: os.setxattr(f"dir{n}", "user.overlay.opaque", b"y"); os.setxattr(f"file{n}", "user.overlay.redirect", b"/etc")
            case 7: os.unlink(f"fifo{n}"); os.mkfifo(f"fifo{n}")
            case 8: os.chmod(f"file{n}", dice.choice([0, 0o600]))
            case 9: os.unlink(f"file{n}"); os.symlink(HOST + "/secret", f"file{n}")
    with contextlib.suppress(OSError):
        open("fifo0", "x").close()
    with contextlib.suppress(OSError):
        if step % 50 == 0:
            os.mknod("device", 0o20600, os.makedev(1, 1))
    open("steps.new", "w").write(str(step))
    os.replace("steps.new", "steps")        # whoever reads it finds a whole number
"""


def test_a_program_that_races_gets_nothing_of_the_host_and_breaks_nothing(daemon, tmp_path_factory):
    host = tmp_path_factory.mktemp("host")
    (host / "secret").write_text(SECRET)
    with created(daemon) as w:
        name, url = w["name"], f"/v1/workspaces/{w['name']}"
        daemon.request("PUT", f"{url}/files/race.py", RACE.encode())
        run = daemon.post(f"{url}/exec", {"argv": ["python3", "race.py", str(host)], "background": True}).headers["Location"]
        assert eventually(lambda: daemon.get(f"{url}/files/steps").body.isdigit(), 60), daemon.get(run)
        for n in range(4):
            made = daemon.post(f"{url}/snapshots", {"tag": f"s{n}"})
            assert made.status == 201, made
            found = daemon.get(f"{url}/diff")
            assert found.status == 200 and SECRET.encode() not in found.body, found
            with contextlib.suppress(http.client.HTTPException):    # cut off where a file became shorter
                assert SECRET.encode() not in daemon.get(f"{url}/archive").body
        steps = int(daemon.get(f"{url}/files/steps").body or 0)
        assert eventually(lambda: int(daemon.get(f"{url}/files/steps").body or 0) > steps, 60), daemon.get(run)
        assert daemon.request("PUT", f"{url}/files/stop", b"").status == 201
        assert daemon.get(f"{run}?wait").json()["reason"] == "exited"
        forks = daemon.post(f"{url}/fork", {"name": f"{name}-f", "snapshot": "s3"}).json()["items"]
        try:
            # What it holds is what the program made: each path is read in a sandbox that has nothing of the host.
            listed = output_of(daemon, forks[0]["name"], "chmod -R u+rwX . 2>/dev/null; find . -type f -size -100k ! -name race.py -exec cat {} +")
            assert SECRET not in listed
            assert output_of(daemon, forks[0]["name"], "test ! -e device; ls deep/d/d") == "d\n"
        finally:
            assert daemon.delete(f"/v1/workspaces/{forks[0]['name']}").status == 204
        assert eventually(lambda: all(s["content_id"] for s in daemon.get(f"{url}/snapshots").json()["items"]), 60)
        # No exact name of a forged mark is obeyed after a rollback.
        assert daemon.post(f"{url}/rollback", {"snapshot": "s0"}).status == 200
        assert output_of(daemon, name, "chmod -R u+rwX dir* 2>/dev/null; ls -d dir* aside 2>/dev/null | wc -l").strip() in ("20", "21")
