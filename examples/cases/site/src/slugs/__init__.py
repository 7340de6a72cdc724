"""Names of pages: slugs for their addresses, titles for their HTML."""
import re

from werkzeug.utils import secure_filename


def slug(title):
    return re.sub(r"[^a-z]+", "-", title.lower()).strip("-")


def heading(title):
    return f"<h1>{title}</h1>"


def filename(title):
    return secure_filename(title) + ".html"
