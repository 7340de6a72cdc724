"""The same, of the first words of the title only."""
import re


def run(text, separator="-", words=3):
    return separator.join(re.findall("[a-z0-9]+", text.lower())[:words])
