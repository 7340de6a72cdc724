# The index that pip takes when nothing is configured, as "index URL": asked of the pip that this
# interpreter has, else of the one bundled for ensurepip. Plain ASCII: passed to `python -I -c`.
import os
import sys


def bundled():
    import ensurepip

    places = [getattr(ensurepip, "_WHEEL_PKG_DIR", None), os.path.join(os.path.dirname(ensurepip.__file__), "_bundled")]
    for place in places:
        if place and os.path.isdir(place):
            for name in sorted(os.listdir(place), reverse=True):
                if name.startswith("pip-") and name.endswith(".whl"):
                    yield os.path.join(place, name)


def ask():
    from pip._internal.models.index import PyPI

    print("index %s" % PyPI.simple_url)


try:
    ask()
except ImportError:
    for wheel in bundled():
        sys.path.insert(0, wheel)
        ask()
        break
    else:
        sys.exit("it has no pip")
