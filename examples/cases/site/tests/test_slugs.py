import slugs


def test_words_are_joined():
    assert slugs.slug("Hello, World!") == "hello-world"


def test_digits_are_kept():
    assert slugs.slug("Top 10 of 2026") == "top-10-of-2026"


def test_files():
    assert slugs.filename("../../etc/passwd") == "etc_passwd.html"
