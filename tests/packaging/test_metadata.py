"""Descriptions and fields that package registries show."""

import re
import sys
import tomllib

import pytest

from helpers import TESTS

ROOT = TESTS.parent
if not (ROOT / "distributions").is_dir():
    pytest.skip("needs the whole repository", allow_module_level=True)
sys.path.insert(0, str(ROOT / "distributions"))

import assemble  # noqa: E402
import rehearsal  # noqa: E402
import stand_in  # noqa: E402


def test_descriptions_link_to_nothing_that_an_index_lacks():
    text = assemble.description((ROOT / "README.md").read_text())
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    assert all(re.match(r"https?:|#", target) for target in targets), targets
    assert assemble.description("[a](https://b.c) [d](docs/e.md)") == "[a](https://b.c) d"


def test_descriptions_have_a_content_type():
    for name in stand_in.NAMES:
        assert "Description-Content-Type: text/markdown\n" in stand_in.StandIn(name).metadata()


def test_published_crates_have_the_fields_of_the_registry():
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
    published = []
    for member in workspace["members"]:
        package = tomllib.loads((ROOT / member / "Cargo.toml").read_text())["package"]
        if package.get("publish") is False:
            continue
        published.append(package["name"])
        assert package["description"] and package["license"] == {"workspace": True}
        assert 1 <= len(package["keywords"]) <= 5 and 1 <= len(package["categories"]) <= 5
        assert all(re.fullmatch(r"[a-z][a-z0-9_+-]{0,19}", word) for word in package["keywords"])
        assert (ROOT / member / package["readme"]).read_text().startswith(f"# {package['name']}\n")
    assert sorted(published) == sorted(rehearsal.CRATES)
