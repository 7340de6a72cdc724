"""Calls run(**arguments) of a tool. What the tool prints goes to standard output; behind it the mark, then {"result": ...} or
{"error": {...}}."""
import binascii
import json
import traceback


def load(here, code):
    """The module, of the bytes that were tested; its file, in a new directory, is for processes that import it again."""
    os.mkdir(here, 0o700)
    path = os.path.join(here, "tool.py")
    with open(path, "wb") as out:
        out.write(code)
    sys.path.insert(0, here)
    module = type(sys)("tool")
    module.__file__ = path
    sys.modules["tool"] = module
    exec(compile(code, path, "exec", dont_inherit=True), module.__dict__)
    return module


def call(module, arguments):
    value = module.run(**arguments)
    if hasattr(value, "__await__"):
        import asyncio

        async def wait():
            return await value
        value = asyncio.run(wait())
    return value


def failure(reason, error):
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return {"error": {"reason": reason, "type": type(error).__name__, "message": str(error), "traceback": text}}


def remove(here):
    try:
        os.unlink(here + "/tool.py")
        os.rmdir(here)
    except OSError:
        pass


def main(mark, code, arguments):
    mark, code, arguments = binascii.a2b_base64(mark).decode(), binascii.a2b_base64(code), json.loads(binascii.a2b_base64(arguments))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    output = os.dup(1)
    keep_environment()
    here = "/tmp/tool-" + mark[:16]
    try:
        answer = {"result": call(load(here, code), arguments)}
    except BaseException as error:
        answer = failure("raised", error)
    remove(here)
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


