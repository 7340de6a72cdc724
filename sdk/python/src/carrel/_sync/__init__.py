# Written by sdk/generate-python: change _async/__init__.py instead.
"""The synchronous client. The synchronous one is written from it, by sdk/generate-python."""
