"""A generator for `carrel tool generate`, as `tools.generator` of config.yaml names it.

It reads a specification on standard input and writes tool.py and test_tool.py to its working directory. This one knows one kind of tool:
a sentence with {names} in it, which are the arguments. A real one would ask a model.
"""
import json
import re
import sys

spec = json.load(sys.stdin)
sentence, examples = spec["description"] or "", spec["arguments"]
names = list(dict.fromkeys(re.findall(r"\{([a-z_]+)\}", sentence)))
if set(names) != set(examples) or not names:
    sys.exit(f"'{spec['name']}': the names in the description are not the arguments")
with open("tool.py", "w") as code:
    code.write(f"SENTENCE = {sentence!r}\n\n\ndef run({', '.join(names)}):\n    return SENTENCE.format(**locals())\n")
with open("test_tool.py", "w") as tests:
    tests.write(f"import tool\n\n\ndef test_the_example():\n    assert tool.run(**{examples!r}) == {sentence.format(**examples)!r}\n")
