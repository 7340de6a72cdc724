"""carrel config show: what is in force, and where it comes from."""
import json
import pathlib


def show(carrel, *words):
    done = carrel("config", "show", *words, "-o", "json")
    assert done.returncode == 0, done.stderr
    return {item["key"]: item for item in json.loads(done.stdout)["items"]}, done.stderr


def write(carrel, text):
    path = pathlib.Path(carrel.env["CARREL_HOME"], "config.yaml")
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o644)


def test_the_file_and_the_defaults(carrel):
    write(carrel, "serve:\n  rate: 5\n  hosts: [desk.example]\n")
    items, _ = show(carrel)
    assert items["serve.rate"] == {"key": "serve.rate", "value": 5, "from": "file", "line": 2, "option": None}
    assert items["serve.hosts"]["value"] == ["desk.example"] and items["serve.hosts"]["line"] == 3
    assert items["serve.connections"] == {"key": "serve.connections", "value": 1000, "from": "default", "line": None, "option": None}
    assert set(show(carrel, "serve.rate", "archives")[0]) == {"serve.rate", "archives.on_remove", "archives.on_expiry", "archives.format"}
    table = carrel("config", "show", "serve.rate").stdout
    assert table.split() == ["KEY", "VALUE", "FROM", "serve.rate", "5", "config.yaml:2"]


def test_a_home_that_is_not_there_is_not_made(carrel):
    carrel.env["CARREL_HOME"] = str(pathlib.Path(carrel.home, "none"))
    assert show(carrel, "audit.enabled")[0]["audit.enabled"]["value"] is True
    assert not pathlib.Path(carrel.home, "none").exists()


def test_what_is_wrong_is_named(carrel):
    done = carrel("config", "show", "serve.rat")
    assert done.returncode == 125 and "there is no key 'serve.rat'" in done.stderr
    write(carrel, "serve:\n  rate: many\n")
    done = carrel("config", "show")
    assert done.returncode == 125 and "line 2: serve.rate: 'many' is not a number" in done.stderr


def test_options_of_the_daemon_hold(carrel, tmp):
    write(carrel, "serve:\n  log_level: warn\n  idle_sandbox: 1m\n")
    started = carrel("serve", "--background", "--listen", "unix:own.sock", "--log-level", "error", cwd=tmp)
    assert started.returncode == 0, started.stderr
    try:
        items, err = show(carrel, "serve")
        assert items["serve.listen"]["value"] == ["unix:own.sock"] and items["serve.listen"]["option"] == "--listen"
        assert items["serve.log_level"] == {"key": "serve.log_level", "value": "error", "from": "option", "line": None, "option": "--log-level"}
        assert items["serve.idle_sandbox"]["value"] == "1m" and not err
        write(carrel, "serve:\n  idle_sandbox: 2m\n")
        assert "has changed since the daemon" in show(carrel, "serve")[1]
        assert carrel("serve", "--reload").returncode == 0
        items, err = show(carrel, "serve")
        assert items["serve.idle_sandbox"]["value"] == "2m" and items["serve.log_level"]["value"] == "error" and not err
    finally:
        assert carrel("serve", "--stop").returncode == 0
    assert show(carrel, "serve")[0]["serve.listen"]["value"] == []
