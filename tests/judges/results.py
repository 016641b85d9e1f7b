"""What a judge found, and the comparison with what is recorded.

`recorded/JUDGE.toml` has a table for each part that does not pass, with its outcome and the reason:

    [simpleGL]
    outcome = "not built"
    reason = "needs GLUT"
"""

import dataclasses
import pathlib
import tomllib

RECORDED = pathlib.Path(__file__).resolve().parent / "recorded"
PASSED, WAIVED, FAILED, TOO_SLOW, NOT_BUILT = "passed", "waived", "failed", "too slow", "not built"
OUTCOMES = (PASSED, WAIVED, FAILED, TOO_SLOW, NOT_BUILT)


@dataclasses.dataclass
class Result:
    """A program or test: its outcome, the seconds of its run, and what it or the compiler said last."""

    name: str
    outcome: str
    seconds: float = 0.0
    detail: str = ""


def recorded(judge, folder=RECORDED):
    """The recorded outcomes of a judge: name to outcome and reason. Raises ValueError for an unknown outcome."""
    path = folder / f"{judge}.toml"
    if not path.exists():
        return {}
    table = {name: (row["outcome"], row["reason"]) for name, row in tomllib.loads(path.read_text()).items()}
    for name, (outcome, _) in table.items():
        if outcome not in OUTCOMES:
            raise ValueError(f"{path.name}: {name}: unknown outcome {outcome!r}; expected one of {', '.join(OUTCOMES)}")
    return table


def unexpected(results, table):
    """The results that are worse than recorded: neither passed nor waived, and not with the recorded outcome."""
    bad = [result for result in results if result.outcome not in (PASSED, WAIVED)]
    return [result for result in bad if table.get(result.name, ("", ""))[0] != result.outcome]


def better(results, table):
    """The results that pass although another outcome is recorded."""
    return [result for result in results if result.outcome == PASSED and result.name in table]


def report(judge, results, table):
    """The Markdown text of the results: counts, then each part that did not pass, with the reason or the detail."""
    counts = {outcome: sum(result.outcome == outcome for result in results) for outcome in OUTCOMES}
    lines = [f"## {judge}", "", ", ".join(f"{count} {outcome}" for outcome, count in counts.items()), ""]
    rest = [result for result in results if result.outcome != PASSED]
    if rest:
        lines += ["| name | outcome | seconds | reason |", "|---|---|---|---|"]
    for result in rest:
        outcome, reason = table.get(result.name, ("", ""))
        text = (reason if outcome == result.outcome else f"NOT RECORDED: {result.detail}").replace("|", "\\|")
        lines.append(f"| {result.name} | {result.outcome} | {result.seconds:.1f} | {text} |")
    return "\n".join(lines) + "\n"
