"""The API reference: a Markdown page for each public module.

Names, order and signatures come from the annotations: those of the stub (`python/**/*.pyi`) of a module with native
classes, those of the source of a Python module. Texts are the docstrings that `help()` shows, of the installed package.
"""

import ast
import html
import importlib
import re
from dataclasses import dataclass, field
from pathlib import Path

import docstrings

#: Public modules, ordered as in the index.
MODULES = """
cuda.core cuda.core.graph cuda.core.system cuda.core.system.typing cuda.core.texture cuda.core.checkpoint
cuda.core.utils cuda.core.typing
cuda.bindings.driver cuda.bindings.runtime cuda.bindings.nvrtc cuda.bindings.nvjitlink cuda.bindings.nvvm
cuda.bindings.nvfatbin cuda.bindings.nvml cuda.bindings.cufile cuda.bindings.cudla cuda.bindings.utils
cuda.bindings._v2.driver cuda.bindings._v2.runtime cuda.bindings._v2.nvrtc cuda.pathfinder
cupyrite.dask cupyrite.ray cupyrite.program_caches cupyrite.serialization
""".split()
#: Methods with underscores that a user writes as an operator, a `with` statement or a protocol are not listed.
CONSTRUCTORS = ("__init__", "__new__")
#: Decorators whose constructor has a parameter for each field.
DATA_CLASSES = ("dataclass", "options")
#: Functions that make a property of the type that their first argument is.
PROPERTY_HELPERS = ("reading",)
#: Members of each handle and structure of cuda.bindings: described once, at the beginning of the page.
COMMON = {
    "getPtr": "Handles and structures have `getPtr()`: the address of the C value, which stays the same while the object lives."
}
#: Pages with more names than this have a list of them at the beginning, and no table of contents.
MANY = 100
#: From here on the arguments of a signature get a line each.
WIDTH = 88
#: Sections with the same sentences in each function.
REPEATED = re.compile(r"(\*\*(?:Returns|Raises)\*\*\n.*?)(?=\n\n\*\*[A-Z][a-z ]+\*\*\n|\Z)", re.DOTALL)
ENUM = re.compile(r"enum", re.IGNORECASE)


@dataclass
class Item:
    """A public name of a module."""

    name: str
    node: ast.AST
    value: object
    members: list[ast.stmt] = field(default_factory=list)
    bases: list[str] = field(default_factory=list)

    @property
    def kind(self) -> str:
        if isinstance(self.node, ast.ClassDef):
            if ENUM.search(" ".join(self.bases)):
                return "Enumerations"
            return "Exceptions" if isinstance(self.value, type) and issubclass(self.value, BaseException) else "Classes"
        return "Functions" if isinstance(self.node, (ast.FunctionDef, list)) else "Constants"


class Stubs:
    """Definitions in the stubs and sources below a folder."""

    def __init__(self, root: Path):
        self.root = root
        self._trees: dict[str, dict[str, list[ast.stmt]]] = {}

    def names(self, module: str) -> dict[str, list[ast.stmt]]:
        """Top-level statements by the name that they define; overloads share a name."""
        if module not in self._trees:
            stem = self.root.joinpath(*module.split("."))
            files = [
                stem.with_name(stem.name + ".pyi"),
                stem / "__init__.pyi",
                stem.with_name(stem.name + ".py"),
                stem / "__init__.py",
            ]
            file = next((file for file in files if file.exists()), None)
            if file is None:
                raise SystemExit(f"the reference lacks a stub or source of {module}")
            found: dict[str, list[ast.stmt]] = {}
            for node in _for_type_checkers(_Unquoted().visit(ast.parse(file.read_text())).body):
                for name in _defined(node):
                    found.setdefault(name, []).append(node)
            self._trees[module] = found
        return self._trees[module]

    def definition(self, module: str, name: str) -> list[ast.stmt]:
        """The statements that define a name, in whichever module it is."""
        return self._locate(module, name)[1]

    def _locate(self, module: str, name: str) -> tuple[str, list[ast.stmt]]:
        """The module that defines a name, and its statements."""
        nodes = self.names(module).get(name, [])
        if nodes and isinstance(nodes[0], ast.ImportFrom):
            origin = self._absolute(module, nodes[0])
            original = next(a.name for a in nodes[0].names if (a.asname or a.name) == name)
            return self._locate(origin, original) if origin.startswith(("cuda.", "cupyrite.")) else (origin, [])
        return module, nodes

    def bases_and_members(self, module: str, name: str) -> tuple[list[str], list[ast.stmt]]:
        """Public bases and statements of a class. Members of a private base count as its own."""
        home, nodes = self._locate(module, name)
        node = nodes[0]
        assert isinstance(node, ast.ClassDef)
        bases, members = [], [_read_as_property(member) for member in _for_type_checkers(node.body)]
        for base in map(ast.unparse, node.bases):
            private = base.startswith("_") and not ENUM.search(base)
            nodes = self.definition(home, base) if private else []
            if nodes and isinstance(nodes[0], ast.ClassDef):
                more, inherited = self.bases_and_members(home, base)
                known = {name for member in members for name in _defined(member)}
                known.update(CONSTRUCTORS if known.intersection(CONSTRUCTORS) else ())
                bases += more
                members += [member for member in inherited if not known.intersection(_defined(member))]
            else:
                bases.append(base)
        return bases, members

    def _absolute(self, module: str, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        is_package = self.root.joinpath(*module.split(".")).is_dir()
        parts = module.split(".")[: None if is_package and node.level == 1 else -(node.level - is_package)]
        return ".".join(parts + ([node.module] if node.module else []))

    def public(self, module: str) -> list[str]:
        """The names of `__all__`, else those without underscore that the stub defines or re-exports."""
        names = self.names(module)
        for node in names.get("__all__", []):
            if isinstance(node, ast.Assign) and isinstance(node.value, (ast.List, ast.Tuple)):
                return [str(ast.literal_eval(element)) for element in node.value.elts]
        return [
            n
            for n, nodes in names.items()
            if not n.startswith("_") and not isinstance(nodes[0], (ast.Import, ast.ImportFrom))
        ]


class _Unquoted(ast.NodeTransformer):
    """Replaces annotations that are strings by what they contain."""

    def _annotated(self, node: ast.AST) -> ast.AST:
        for name in ("annotation", "returns"):
            quoted = getattr(node, name, None)
            if isinstance(quoted, ast.Constant) and isinstance(quoted.value, str):
                setattr(node, name, ast.parse(quoted.value, mode="eval").body)
        return self.generic_visit(node)

    visit_arg = visit_AnnAssign = visit_FunctionDef = _annotated


def _for_type_checkers(body: list[ast.stmt]) -> list[ast.stmt]:
    """Statements as type checkers read them: those of `if TYPE_CHECKING`, and of overloaded functions the overloads."""
    out: list[ast.stmt] = []
    for node in body:
        test = ast.unparse(node.test) if isinstance(node, ast.If) else ""
        if test == "TYPE_CHECKING":
            out += node.body
        elif test == "not TYPE_CHECKING":
            out += node.orelse
        else:
            out.append(node)
    overloaded = {node.name for node in out if _has_decorator(node, "overload")}
    return [n for n in out if getattr(n, "name", None) not in overloaded or _has_decorator(n, "overload")]


def _read_as_property(node: ast.stmt) -> ast.stmt:
    """`name = reading(int, ...)` as the property that it makes."""
    if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)):
        return node
    target, call = node.targets[0], node.value
    if not (isinstance(target, ast.Name) and isinstance(call.func, ast.Name) and call.func.id in PROPERTY_HELPERS):
        return node
    return ast.parse(f"@property\ndef {target.id}(self) -> {ast.unparse(call.args[0])}: ...").body[0]


def _has_decorator(node: ast.stmt, name: str) -> bool:
    return any(name in ast.unparse(d) for d in getattr(node, "decorator_list", []))


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
        return [node.name]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    if isinstance(node, ast.ImportFrom):
        return [alias.asname or alias.name for alias in node.names]
    return []


def items(stubs: Stubs, module: str) -> list[Item]:
    """The public names of a module with their definitions and values.

    Raises LookupError if a name has no definition: the reference would be incomplete.
    """
    live = importlib.import_module(module)
    out = []
    for name in stubs.public(module):
        nodes = stubs.definition(module, name)
        if not nodes:
            raise LookupError(f"the stub of {module} does not define {name}, which its __all__ lists")
        is_class = isinstance(nodes[0], ast.ClassDef)
        bases, members = stubs.bases_and_members(module, name) if is_class else ([], [])
        out.append(Item(name, nodes[-1], getattr(live, name, None), members, bases))
        if isinstance(nodes[-1], ast.FunctionDef):
            out[-1].members = list(nodes)
    return out


class Reference:
    """All pages, and where each name is described."""

    def __init__(self, root: Path):
        self.stubs = Stubs(root)
        self.modules = {module: items(self.stubs, module) for module in MODULES}
        #: Page and heading by full name: `cuda.core.Stream.sync`.
        self.places: dict[str, str] = {"cuda.bindings": "index.md"}
        for module, found in self.modules.items():
            self.places[module] = f"{module}.md"
            for item in found:
                self.places.setdefault(f"{module}.{item.name}", f"{module}.md#{item.name}")
                if item.kind == "Classes":
                    for name, _ in _methods(item):
                        self.places[f"{module}.{item.name}.{name}"] = f"{module}.md#{item.name}.{name}"

    def pages(self) -> dict[str, str]:
        """Markdown by file name."""
        out = {f"{module}.md": self.page(module) for module in MODULES}
        out["index.md"] = self.index()
        return out

    def index(self) -> str:
        rows = []
        for module, found in self.modules.items():
            doc = _summary(importlib.import_module(module).__doc__ or "")
            rows.append(f"| [`{module}`]({module}.md) | {doc} | {len(found)} |")
        return (
            "# API reference\n\nEvery public name of every module, with its signature, parameters, results and errors. "
            "Texts are those that `help()` shows. The search field finds names by their parts.\n\n"
            "How `cuda.core` behaves, subject by subject, with examples: [cuda.core](../core.md).\n\n"
            "| module | subject | names |\n|---|---|---|\n" + "\n".join(rows) + "\n"
        )

    def page(self, module: str) -> str:
        doc = importlib.import_module(module).__doc__ or ""
        many = len(self.modules[module]) > MANY
        hidden = "hide: [toc]\n" if many else ""
        out = [f"---\ntitle: {module}\n{hidden}---\n\n# `{module}`", docstrings.to_markdown(doc, self._link(module))]
        members = {
            node.name for item in self.modules[module] for node in item.members if isinstance(node, ast.FunctionDef)
        }
        out += [text for name, text in COMMON.items() if name in members]
        by_kind: dict[str, list[Item]] = {}
        for item in self.modules[module]:
            by_kind.setdefault(item.kind, []).append(item)
        for kind in ("Functions", "Classes", "Exceptions", "Enumerations", "Constants"):
            if kind not in by_kind:
                continue
            out.append(f"## {kind}")
            if many and kind != "Constants":
                names = "".join(f'<a href="#{item.name}">{item.name}</a>\n' for item in by_kind[kind])
                out.append(f'<div class="names" data-search-exclude>\n{names}</div>')
            if kind == "Constants":
                out.append(self._constants(by_kind[kind]))
                continue
            for item in by_kind[kind]:
                out.append(getattr(self, f"_{kind.lower()}")(module, item))
        return "\n\n".join(out) + "\n"

    def _link(self, module: str, owner: str = ""):
        def link(name: str) -> str:
            for full in (f"{module}.{owner}.{name}", f"{module}.{name}", name, f"cuda.core.{name}", f"cuda.{name}"):
                if full in self.places:
                    return f"[`{name}`]({self.places[full]})"
            return f"`{name.rsplit('.', 1)[-1] if name.startswith('cuda.') else name}`"

        return link

    def _functions(self, module: str, item: Item) -> str:
        signatures = "\n".join(signature(node, item.name) for node in item.members)
        doc = docstrings.to_markdown(_doc(item.value, item.members[-1]), self._link(module))
        if module.startswith("cuda.bindings"):
            # The same sentences in each of 3,000 functions: a browser would load them to search.
            doc = REPEATED.sub(r'<div markdown="1" data-search-exclude>\n\n\1\n\n</div>', doc)
        return _entry(f"### `{item.name}` {{ #{item.name} }}", signatures, doc)

    def _classes(self, module: str, item: Item) -> str:
        link = self._link(module, item.name)
        bases = [base for base in item.bases if base not in ("object", "Protocol")]
        constructor = [n for n in item.members if isinstance(n, ast.FunctionDef) and n.name in CONSTRUCTORS]
        fields = [n for n in item.members if isinstance(n, ast.AnnAssign) and not n.target.id.startswith("_")]
        lines = [signature(node, item.name) for node in constructor]
        if not lines and fields and any(_has_decorator(item.node, name) for name in DATA_CLASSES):
            lines = [_wrapped(item.name, [ast.unparse(f) for f in fields], "")]
        heading = f"### `{item.name}` {{ #{item.name} }}"
        doc = docstrings.to_markdown(_doc(item.value, item.node), link)
        if bases:
            doc = f"Derived from {', '.join(link(base) for base in bases)}.\n\n{doc}"
        out = [_entry(heading, "\n".join(lines), doc)]
        attributes, methods = [], []
        for name, nodes in _methods(item):
            value = getattr(item.value, name, None)
            text = _doc(value, nodes[0])
            if _is_property(nodes[0]):
                writable = any("setter" in ast.unparse(d) for n in nodes for d in n.decorator_list)
                kind = ast.unparse(nodes[0].returns) if nodes[0].returns else ""
                attributes.append((name, kind + (" (writable)" if writable else ""), text))
            else:
                methods.append((name, nodes, text))
        if attributes and any(text for *_, text in attributes):
            for name, kind, text in attributes:
                label = f"#### `{name}` {{ #{item.name}.{name} }}"
                out.append(_entry(label, f"{name}: {kind}" if kind else "", docstrings.to_markdown(text, link)))
        elif attributes and "**Attributes**" not in doc:
            rows = [f"| `{name}` | {_code(kind)} |" for name, kind, _ in attributes]
            out.append("| attribute | type |\n|---|---|\n" + "\n".join(rows))
        for name, nodes, text in methods:
            label = f"#### `{name}()` {{ #{item.name}.{name} }}"
            lines = "\n".join(signature(node, name) for node in nodes)
            out.append(_entry(label, lines, docstrings.to_markdown(text, link)))
        return "\n\n".join(out)

    _exceptions = _classes

    def _enumerations(self, module: str, item: Item) -> str:
        link = self._link(module, item.name)
        rows, documented = [], False
        for node in item.members:
            for name in _defined(node):
                member = getattr(item.value, name, None)
                if name.startswith("_") or isinstance(node, ast.FunctionDef):
                    continue
                own = getattr(member, "__doc__", None)
                text = "" if own is None or own == getattr(item.value, "__doc__", None) else _summary(own)
                documented |= bool(text)
                shown = repr(getattr(member, "value", member)) if member is not None else ""
                rows.append((name, shown, text))
        head = ["member", "value"] + ["meaning"] * documented
        table = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
        for name, shown, text in rows:
            table.append(f"| `{name}` | {_code(shown)} |" + (f" {text} |" if documented else ""))
        doc = docstrings.to_markdown(_doc(item.value, item.node), link)
        return _entry(f"### `{item.name}` {{ #{item.name} }}", "", doc) + ("\n\n" + "\n".join(table) if rows else "")

    def _constants(self, found: list[Item]) -> str:
        rows = []
        for item in found:
            value = repr(item.value)
            shown = _code(value) if len(value) < 60 and " at 0x" not in value and value != "None" else ""
            kind = ast.unparse(item.node.annotation) if isinstance(item.node, ast.AnnAssign) else ""
            rows.append(f'| <span id="{item.name}">`{item.name}`</span> | {shown or _code(kind)} |')
        return "| name | value |\n|---|---|\n" + "\n".join(rows)


def _methods(item: Item) -> list[tuple[str, list[ast.FunctionDef]]]:
    """Public methods and properties with their overloads."""
    found: dict[str, list[ast.FunctionDef]] = {}
    for node in item.members:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and node.name not in COMMON:
            found.setdefault(node.name, []).append(node)
    return list(found.items())


def _is_property(node: ast.FunctionDef) -> bool:
    return any("property" in ast.unparse(d) for d in node.decorator_list)


def _doc(value: object, node: ast.AST) -> str:
    """What help() shows, else the stub's docstring. A class without a text of its own shows no inherited one."""
    own = getattr(value, "__doc__", None) or ""
    if isinstance(value, type) and "__doc__" not in vars(value):
        own = ""
    if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
        own = own or ast.get_docstring(node) or ""
    return own


def _summary(doc: str) -> str:
    text = " ".join(docstrings.to_markdown(doc).split("\n\n")[0].split())
    return text.replace("|", r"\|")


def _code(text: str) -> str:
    return f"`{text}`".replace("|", r"\|") if text else ""


def _entry(heading: str, signatures: str, doc: str) -> str:
    # Not a code block: a page with a thousand of them, each with a button to copy it, takes a browser seconds.
    block = f'<div class="signature"><code>{html.escape(signatures)}</code></div>' if signatures else ""
    return "\n\n".join(part for part in (heading, block, doc) if part)


def signature(node: ast.FunctionDef, name: str) -> str:
    """`name(a: int, b=1) -> str`, without `self`, on several lines if it is long."""
    spec = node.args
    bound = not any("staticmethod" in ast.unparse(d) for d in node.decorator_list)
    parts = []
    positional = [*spec.posonlyargs, *spec.args]
    defaults = [None] * (len(positional) - len(spec.defaults)) + list(spec.defaults)
    for index, (arg, default) in enumerate(zip(positional, defaults)):
        if not (index == 0 and bound and arg.arg in ("self", "cls")):
            parts.append(_argument(arg, default))
        if spec.posonlyargs and index == len(spec.posonlyargs) - 1 and parts:
            parts.append("/")
    if spec.vararg:
        parts.append("*" + ast.unparse(spec.vararg))
    elif spec.kwonlyargs:
        parts.append("*")
    parts += [_argument(arg, default) for arg, default in zip(spec.kwonlyargs, spec.kw_defaults)]
    if spec.kwarg:
        parts.append("**" + ast.unparse(spec.kwarg))
    hidden = node.name in CONSTRUCTORS or node.returns is None
    return _wrapped(name, parts, "" if hidden else f" -> {ast.unparse(node.returns)}")


def _argument(arg: ast.arg, default: ast.expr | None) -> str:
    text = ast.unparse(arg)
    if default is None:
        return text
    return f"{text} = {ast.unparse(default)}" if arg.annotation else f"{text}={ast.unparse(default)}"


def _wrapped(name: str, parts: list[str], returns: str) -> str:
    line = f"{name}({', '.join(parts)}){returns}"
    if len(line) <= WIDTH or not parts:
        return line
    return f"{name}(\n    " + ",\n    ".join(parts) + f",\n){returns}"
