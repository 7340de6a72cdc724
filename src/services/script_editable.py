import importlib, importlib.metadata as metadata, json, os, pathlib, re, stat, sys
import sysconfig, tempfile, zipfile
is_first, backend, paths = sys.argv[1] == 'first', sys.argv[2], sys.argv[3:]
if not os.path.exists('pyproject.toml') and not os.path.exists('setup.py'):
    sys.exit('the source has neither pyproject.toml nor setup.py')
sys.path[:0] = [os.path.abspath(path) for path in paths]
module, _, attributes = backend.partition(':')
hooks = importlib.import_module(module)
for attribute in filter(None, attributes.split('.')):
    hooks = getattr(hooks, attribute)
if not hasattr(hooks, 'build_editable'):
    sys.exit(f'{backend} can make no editable install (PEP 660)')
def is_there(requirement):
    try:
        return metadata.distribution(re.match(r'[\w.-]+', requirement)[0])
    except metadata.PackageNotFoundError:
        return None
def is_of_extra(requirement):
    return re.search(r'\bextra\s*==|==\s*extra\b', requirement.partition(';')[2])
needed = getattr(hooks, 'get_requires_for_build_editable', list)()
needed = [one for one in needed if not is_of_extra(one) and not is_there(one)]
if needed and is_first:
    print(json.dumps({'needed': needed}))
    sys.exit()
site = pathlib.Path(sysconfig.get_path('purelib'))
with tempfile.TemporaryDirectory() as directory:
    wheel = hooks.build_editable(directory)
    with zipfile.ZipFile(os.path.join(directory, wheel)) as archive:
        info = next(name.split('/')[0] for name in archive.namelist()
                    if name.split('/')[0].endswith('.dist-info'))
        archive.extractall(site)
(site / info / 'direct_url.json').write_text(json.dumps(
    {'url': pathlib.Path.cwd().as_uri(), 'dir_info': {'editable': True}}))
(site / info / 'INSTALLER').write_text('carrel\n')
project = metadata.PathDistribution(site / info)
for entry in project.entry_points:
    if entry.group == 'console_scripts':
        module, _, attribute = entry.value.split('[')[0].strip().partition(':')
        script = pathlib.Path(sys.prefix, 'bin', entry.name)
        script.write_text(f'#!{sys.prefix}/bin/python3\nimport sys\nimport {module}\n'
                          f'sys.exit({module}.{attribute}())\n')
        script.chmod(0o755)
requires = [one for one in project.requires or [] if not is_of_extra(one)]
print(json.dumps({'requires': requires}))
