"""Docstrings in numpydoc's format as Markdown.

Belongs here: sections, inline markup and doctests of this project's docstrings. Markup that they do not use stays text.
"""

import inspect
import re
from collections.abc import Callable

#: Sections whose entries are `name : type` lines with indented text.
LISTS = {"Parameters", "Other Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns"}
SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
INLINE = re.compile(
    r"``(?P<code>.+?)``|:\w+(?::\w+)?:`(?P<role>[^`]+)`|`(?P<text>[^`<]+) <(?P<url>[^`>]+)>`_+|`(?P<name>[^`]+)`|(?P<bare>https?://[^\s)>]*[^\s)>.,])"
)
#: The Markdown of a name that a role mentions.
Link = Callable[[str], str]


def to_markdown(doc: str, link: Link = lambda name: f"`{name}`") -> str:
    """The Markdown of a docstring. `link` gives the text for a name in a role such as :class:`Stream`."""
    parts = SECTION.split(inspect.cleandoc(doc))
    out = [_prose(parts[0], link)]
    for title, body in zip(parts[1::2], parts[2::2]):
        if title in LISTS:
            out.append(f"**{title}**\n\n{_entries(body, link)}")
        else:
            out.append(f"**{title}**\n\n{_prose(body, link)}")
    return "\n\n".join(part for part in out if part.strip())


def _entries(body: str, link: Link) -> str:
    """Entries as a list; text that belongs to none, such as `A tuple.`, as paragraphs."""
    out: list[str] = []
    for block in re.split(r"\n(?=\S)", body.strip("\n")):
        head, _, text = block.partition("\n")
        name, colon, kind = head.partition(" : ")
        text = _prose(inspect.cleandoc("\n" + text), link)
        if not colon and not text and re.search(r"[.:]$|\w \w", head):
            out.append(f"\n{_inline(head, link)}\n")
            continue
        head = (
            f"`{name}` (*{_inline(kind, link)}*)" if colon else f"`{head}`" if "`" not in head else _inline(head, link)
        )
        if "\n" in text:
            text = "\n\n    " + text.replace("\n", "\n    ") + "\n"
        out.append(f"- {head}{': ' if text else ''}{text}")
    return "\n".join(out)


def _prose(text: str, link: Link) -> str:
    """Paragraphs, lists and doctests."""
    out = []
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        if block.lstrip().startswith("==="):
            out.append(_table(block, link))
        elif block.lstrip().startswith(">>>"):
            out.append(f"```pycon\n{inspect.cleandoc(block)}\n```")
        elif block.startswith((" ", "\t")):
            out.append(f"```text\n{inspect.cleandoc(block)}\n```")
        else:
            out.append(_inline(re.sub(r"::$", ":", block), link))
    text = "\n\n".join(out)
    return text.replace("\n```\n\n```pycon\n", "\n\n")  # Doctests that follow each other are one block.


def _table(block: str, link: Link) -> str:
    """A simple table: rulers of `=` show where columns begin. Without a ruler below a first row it has no head."""
    lines = inspect.cleandoc(block).split("\n")
    starts = [found.start() for found in re.finditer("=+", lines[0])]
    ends = [*starts[1:], None]
    rows = [[_inline(line[a:b].strip(), link) for a, b in zip(starts, ends)] for line in lines if line[:1] != "="]
    if len([line for line in lines if line[:1] == "="]) < 3:
        rows.insert(0, [""] * len(starts))
    rows.insert(1, ["---"] * len(starts))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _inline(text: str, link: Link) -> str:
    out, at = [], 0
    for found in INLINE.finditer(text):
        out.append(_escape(text[at : found.start()]))
        at = found.end()
        if found["role"]:
            name = found["role"].removeprefix("~")
            out.append(link(name))
        elif found["url"]:
            out.append(f"[{_escape(found['text'])}]({found['url']})")
        elif found["bare"]:
            out.append(f"<{found['bare']}>")
        else:
            out.append(f"`{found['code'] or found['name']}`")
    return "".join(out) + _escape(text[at:])


def _escape(text: str) -> str:
    return re.sub(r"([*<\[\]|])", r"\\\1", text).replace(r"\<", "&lt;").replace(r"\[", "&#91;").replace(r"\]", "&#93;")
