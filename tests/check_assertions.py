"""Finds tests without an assertion, which nothing but an unexpected exception or a crash fails.

    python tests/check_assertions.py [FOLDER]

`cargo xtask lint` runs it. These count as assertions, in the test itself or in a function or fixture of tests/ that it calls:
`assert`, `pytest.raises`, `pytest.warns`, `pytest.fail`, `raise AssertionError`, warnings as errors, and calls of functions named
check…, assert…, expect….
"""

import ast
import pathlib
import sys

TESTS = pathlib.Path(__file__).resolve().parent
VERBS = ("check", "assert", "expect")
PYTEST = ("deprecated_call", "fail", "raises", "warns")

# "folder/test_file.py::test_name": the reason why there is nothing to compare.
EXCEPTIONS = {}


def calls(tree):
    """(base, name) of each call: base is None for `name(...)`, "a" for `a.name(...)`, and "" for longer expressions."""
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        function = call.func
        if isinstance(function, ast.Name):
            yield None, function.id
        elif isinstance(function, ast.Attribute):
            yield getattr(function.value, "id", ""), function.attr


def asserts_itself(tree):
    """Whether the code has an assertion of its own."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.Raise) and node.exc is not None and "AssertionError" in ast.unparse(node.exc):
            return True
        if isinstance(node, ast.Call) and "simplefilter('error'" in ast.unparse(node):
            return True
    return any(
        (base == "pytest" and name in PYTEST) or name.lstrip("_").startswith(VERBS) for base, name in calls(tree)
    )


def is_fixture(function):
    return any("fixture" in ast.unparse(decorator) for decorator in function.decorator_list)


def after_yield(fixture):
    """The statements of a fixture that run after its test."""
    lines = [node.lineno for node in ast.walk(fixture) if isinstance(node, ast.Yield)]
    return [node for node in ast.walk(fixture) if lines and getattr(node, "lineno", 0) > lines[0]]


def nested(function):
    return [node for node in ast.walk(function) if isinstance(node, ast.FunctionDef) and node is not function]


class Module:
    """A file of tests/: its functions, the methods of its classes, and what it imports from other files of tests/."""

    def __init__(self, path, root):
        self.path = path
        tree = ast.parse(path.read_bytes(), str(path))
        self.functions, self.methods, self.tests = {}, {}, []
        for node in ast.walk(tree):
            scope = isinstance(node, ast.ClassDef | ast.Module | ast.If)
            for child in (*node.body, *getattr(node, "orelse", ())) if scope else ():
                if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                    continue
                names = self.methods if isinstance(node, ast.ClassDef) else self.functions
                names.setdefault(child.name, []).append(child)
                if child.name.startswith("test_") and path.name.startswith("test_"):
                    self.tests.append(child)
        # Name here: (file, name there, or None for the file itself).
        self.imports = {}
        for node in ast.walk(tree):
            for alias in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
                name = alias.asname or alias.name
                of = [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
                for words, there in ((of, alias.name), ([*of, alias.name], None)):
                    file = "/".join(words).removeprefix("tests/").replace(".", "/") + ".py"
                    for found in (root / file, path.parent / file):
                        if words and found.is_file():
                            self.imports[name] = (found, there)
        folders = [folder for folder in path.parents if folder.is_relative_to(root)]
        self.conftests = [folder / "conftest.py" for folder in folders if (folder / "conftest.py").is_file()]

    def autouse(self, modules):
        """Names of the fixtures that every test of the file uses."""
        for module in (self, *(modules[path] for path in self.conftests)):
            for name, functions in module.functions.items():
                if any("autouse=True" in ast.unparse(d) for f in functions for d in f.decorator_list):
                    yield name


def definitions(modules, module, base, name, fixtures):
    """The functions of tests/ that a call `base.name(...)` in the module may run, each with its module."""
    if base is None and name in module.functions:
        return [(module, function) for function in module.functions[name]]
    if base is None and name in fixtures:
        return fixture(modules, module, name)
    path, there = module.imports.get(base or name, (None, None))
    # `file.name()` of an imported file, or `name()` of an imported function.
    imports_file = path is not None and there is None
    imports_function = path is not None and there is not None
    if (base is not None and imports_file) or (base is None and imports_function):
        other = modules[path]
        there = there or name
        if there in other.functions:
            return [(other, function) for function in other.functions[there]]
        return definitions(modules, other, None, there, ()) if there in other.imports else []
    # A method of the test's class, or of the object that a fixture gives.
    if base == "self" or base in fixtures:
        seen = [module, *(modules[path] for path in (*module.conftests, *(p for p, _ in module.imports.values())))]
        return [(other, function) for other in seen for function in other.methods.get(name, ())]
    return []


def fixture(modules, module, name):
    """The definition of a fixture that a test of the module sees."""
    path, there = module.imports.get(name, (None, None))
    places = [
        (module, name),
        *([(modules[path], there)] if there else []),
        *((modules[c], name) for c in module.conftests),
    ]
    found = [(other, f) for other, word in places for f in other.functions.get(word, ()) if is_fixture(f)]
    return found[:1]


class Checker:
    """Answers whether functions assert; memoizes the answers."""

    def __init__(self, modules):
        self.modules, self.answers = modules, {}

    def asserts(self, module, function):
        """Whether a call of the function can fail by an assertion."""
        if function not in self.answers:
            self.answers[function] = False  # while it is computed: for functions that call themselves
            # What a fixture asserts itself holds before the test; what it hands to the test is its inner functions.
            trees = nested(function) if is_fixture(function) else [function]
            self.answers[function] = any(self.tree_asserts(module, tree, function) for tree in trees)
        return self.answers[function]

    def tree_asserts(self, module, tree, function):
        fixtures = {argument.arg for argument in function.args.args}
        return asserts_itself(tree) or any(
            self.asserts(*found)
            for base, name in calls(tree)
            for found in definitions(self.modules, module, base, name, fixtures)
        )

    def test_asserts(self, module, test):
        """Whether a test asserts, or a fixture does after it."""
        if self.asserts(module, test):
            return True
        for name in {*(argument.arg for argument in test.args.args), *module.autouse(self.modules)}:
            for other, found in fixture(self.modules, module, name):
                if any(self.tree_asserts(other, statement, found) for statement in after_yield(found)):
                    return True
        return False


def main(root=TESTS):
    root = pathlib.Path(root).resolve()
    modules = {path: Module(path, root) for path in sorted(root.rglob("*.py"))}
    checker = Checker(modules)
    wrong = {
        f"{module.path.relative_to(root)}::{test.name}": test.lineno
        for module in modules.values()
        for test in module.tests
        if not checker.test_asserts(module, test)
    }
    lines = [
        f"{root.name}/{name.replace('::', f':{line}: ')} has no assertion"
        for name, line in wrong.items()
        if name not in EXCEPTIONS
    ]
    lines += [
        f"{name}: has an assertion or does not exist; remove it from EXCEPTIONS"
        for name in EXCEPTIONS
        if name not in wrong
    ]
    print("\n".join(lines) or "every test has an assertion")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
