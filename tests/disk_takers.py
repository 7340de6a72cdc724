"""Programs that take more disk space than they are allowed, each in a way that a sum over the directory tree doesn't show.
They go on until they are ended."""
_OPEN = "import os, signal, socket, mmap\nkeep = []\ndef new():\n" \
        "  f = os.open('x', os.O_RDWR | os.O_CREAT | os.O_EXCL); os.unlink('x')\n" \
        "  for _ in range(4): os.write(f, bytes(1 << 20))\n  return f\n"
_END = "\nsignal.pause()"

HIDDEN = {
    "deleted, open": _OPEN + "for _ in range(100): keep.append(new())" + _END,
    "deleted, mapped": _OPEN + "for _ in range(100): f = new(); keep.append(mmap.mmap(f, 4096)); os.close(f)" + _END,
    "deleted, open in another process": _OPEN + "if os.fork() == 0:\n  for _ in range(100): keep.append(new())\n  signal.pause()" + _END,
    "in flight": _OPEN + "a, b = socket.socketpair()\n"
    "for _ in range(140): f = new(); socket.send_fds(a, [b'x'], [f]); os.close(f)" + _END,
    "in flight, in a socket in flight": _OPEN + "a, b = socket.socketpair(); c, d = socket.socketpair()\n"
    "for _ in range(140): f = new(); socket.send_fds(a, [b'x'], [f]); os.close(f)\n"
    "socket.send_fds(c, [b'x'], [a.fileno(), b.fileno()]); a.close(); b.close()" + _END,
    "empty files": "import os, signal\nfor i in range(8000): os.close(os.open(str(i), os.O_CREAT | os.O_WRONLY))" + _END,
    "links": "import os, signal\nfor i in range(8000): os.symlink('x', str(i))" + _END,
}
# Ten processes, 4 GB in all. They leave the processors to everyone else: how much they write must depend on when Carrel looks, not
# on how long Carrel waits for a processor on a busy machine.
PARALLEL = "import os\nos.nice(19)\nfor p in range(10):\n  if os.fork() == 0:\n    for k in range(100):\n" \
           "      f = os.open(f'{p}.{k}', os.O_CREAT | os.O_WRONLY)\n      for _ in range(16): os.write(f, bytes(1 << 18))\n" \
           "    os._exit(0)\nfor p in range(10): os.wait()\nimport signal; signal.pause()"
