"""far.py FD PORT CMD...: in a network namespace of its own, hands a listening socket of 127.0.0.1:PORT over the socket FD, then is CMD.

Who has the other end of FD serves it: all that CMD reaches is that port."""
import array
import os
import socket
import subprocess
import sys

over, port, command = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]), sys.argv[3:]
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
listener = socket.create_server(("127.0.0.1", port))
over.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [listener.fileno()]))])
over.recv(1)    # it is served
listener.close()
os.execv(command[0], command)
