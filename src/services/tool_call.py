"""Calls run(**arguments) of /workspace/tool.py. Input: a line with a mark, then the arguments as JSON. What the tool prints goes to
standard output; behind it the mark, then {"result": ...} or {"error": {...}}."""
import json
import os
import sys
import traceback


def call(arguments):
    import tool
    value = tool.run(**arguments)
    if hasattr(value, "__await__"):
        import asyncio

        async def wait():
            return await value
        value = asyncio.run(wait())
    return value


def failure(reason, error):
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return {"error": {"reason": reason, "type": type(error).__name__, "message": str(error), "traceback": text}}


def main():
    mark = sys.stdin.readline().strip()
    arguments = json.loads(sys.stdin.read())
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    output = os.dup(1)
    sys.path[0] = "/workspace"
    try:
        answer = {"result": call(arguments)}
    except BaseException as error:
        answer = failure("raised", error)
    try:
        text = json.dumps(answer, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        text = json.dumps(failure("invalid_result", error))
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass
    with open(output, "wb") as out:
        out.write((mark + text).encode("utf-8", "replace"))
    # Threads that the tool has left running don't keep its caller waiting.
    os._exit(0)


main()
