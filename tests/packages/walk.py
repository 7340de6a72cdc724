"""Prints what is below a directory as JSON: {path: [kind, mode, sha256 or link target]}. Runs inside and outside."""
import csv
import hashlib
import io
import json
import os
import stat
import sys

top, shown = sys.argv[1].rstrip("/"), "/env"


def content(path, data):
    """The bytes as they would be in /env, without what each installer writes in its own way."""
    if path.endswith(".dist-info/RECORD"):
        rows = [row for row in csv.reader(io.StringIO(data.decode())) if row]
        rows = [row[:1] if row[0].startswith("../../../bin/") or row[0].endswith("/RECORD") else row for row in rows
                if not row[0].endswith((".pyc", "uv_cache.json", "direct_url.json", "REQUESTED"))]
        return json.dumps(sorted(rows)).encode()
    if path.startswith("bin/") and data.startswith(b"#!"):
        return data.replace(top.encode(), shown.encode()).replace(b"/bin/python3", b"/bin/python")
    return data


found = {}
for root, directories, files in os.walk(top):
    for name in directories + files:
        full = os.path.join(root, name)
        path = os.path.relpath(full, top)
        st = os.lstat(full)
        kind = {stat.S_IFDIR: "directory", stat.S_IFREG: "file", stat.S_IFLNK: "link"}.get(stat.S_IFMT(st.st_mode), "other")
        if kind == "link":
            found[path] = [kind, 0, os.readlink(full)]
        elif kind == "file":
            with open(full, "rb") as file:
                found[path] = [kind, stat.S_IMODE(st.st_mode), hashlib.sha256(content(path, file.read())).hexdigest()]
        else:
            found[path] = [kind, stat.S_IMODE(st.st_mode), ""]
json.dump(found, sys.stdout)
