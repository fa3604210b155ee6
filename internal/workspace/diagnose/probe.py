# Prints what a library has in place of a name that was asked for and is not there.
# Arguments: form, owner, name, seconds, modules to import. It writes names only, after
# a mark, and nothing at all when it finds nothing. It never imports from the directory
# that it runs in.
import os
import sys

# Before anything else is imported: a file of the model's own may have its name.
here = os.path.realpath(os.getcwd())
sys.path[:] = [p for p in sys.path if p and os.path.realpath(p) != here]

import difflib
import importlib
import inspect
import pkgutil
import threading

form, owner, name, seconds, roots = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]), sys.argv[5:11]
MODULES, NAMES, NEAR = 400, 80, 5

out = os.dup(1)
nothing = os.open(os.devnull, os.O_RDWR)
for stream in (0, 1, 2):
    os.dup2(nothing, stream)
timer = threading.Timer(seconds, os._exit, (0,))
timer.daemon = True
timer.start()


def load(module):
    try:
        return importlib.import_module(module)
    except BaseException:
        if "." in module:
            return load(module.rpartition(".")[0])
        return None


def modules():
    tops = [r.partition(".")[0] for r in roots]
    loaded = list(sys.modules.items())
    mine = [m for n, m in loaded if n.partition(".")[0] in tops]
    # Other modules come after those that were asked for.
    rest = [m for n, m in loaded if n.partition(".")[0] not in tops]
    return [m for m in mine + rest if m is not None][:MODULES]


def find(wanted, kind):
    for module in modules() + [sys.modules["builtins"]]:
        values = list(getattr(module, "__dict__", {}).items())
        for key, value in values:
            try:
                if (key == wanted or getattr(value, "__name__", None) == wanted) and kind(value):
                    return value
            except BaseException:
                continue
    return None


def foreign(module, key):
    # A module that another one imports is in reach of its name and no part of it.
    value = module.__dict__.get(key)
    return inspect.ismodule(value) and not value.__name__.startswith(owner + ".")


def parameters(called):
    try:
        found = inspect.signature(called).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in found if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name not in ("self", "cls")]


def look():
    for root in roots:
        load(root)
    if form in ("module", "submodule"):
        module = load(owner)
        if module is None or module.__name__ != owner:
            return None
        names = [n for n in dir(module) if not foreign(module, n)]
        if hasattr(module, "__path__"):
            names += [m.name for m in pkgutil.iter_modules(module.__path__)]
        return "module " + owner, names
    parts = owner.split(".")
    if form == "attribute":
        found = find(parts[-1], inspect.isclass)
        return found and ("class " + parts[-1], dir(found))
    top = find(parts[0], callable)
    for part in parts[1:]:
        top = getattr(top, part, None)
    if top is None:
        return None
    shown = owner[: -len(".__init__")] if owner.endswith(".__init__") else owner
    return "function " + shown, parameters(top)


def answer():
    found = look()
    if not found:
        return
    what, names = found
    names = sorted(set(n for n in names if isinstance(n, str)))
    public = [n for n in names if not n.startswith("_")] or [n for n in names if not n.startswith("__")]
    if not public or name in public:
        return
    lower = {}
    for n in public:
        lower.setdefault(n.lower(), n)
    near = [lower[n] for n in difflib.get_close_matches(name.lower(), list(lower), NEAR, 0.6)]
    near += [n for n in public if n not in near and len(n) > 3 and (name.lower() in n.lower() or n.lower() in name.lower())]
    lines = ["", "metier-probe 1", "what " + what]
    if near:
        lines.append("near " + " ".join(near[:NEAR]))
    lines.append("has " + " ".join(public[:NAMES]))
    if len(public) > NAMES:
        lines.append("more %d" % (len(public) - NAMES))
    os.write(out, ("\n".join(lines) + "\n").encode("utf-8", "replace"))


try:
    answer()
finally:
    os._exit(0)
