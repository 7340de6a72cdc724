import tool


def test_words_are_joined():
    assert tool.run("Hello World") == "hello-world"


def test_signs_are_left_out():
    assert tool.run("Hello, World!") == "hello-world"
