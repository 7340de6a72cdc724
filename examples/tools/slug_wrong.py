"""The first attempt: signs of the title stay in the slug."""


def run(text):
    return "-".join(text.lower().split())
