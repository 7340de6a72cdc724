"""Makes a slug of a title: its words in lower case, joined by a separator."""
import re


def run(text, separator="-"):
    return separator.join(re.findall("[a-z0-9]+", text.lower()))
