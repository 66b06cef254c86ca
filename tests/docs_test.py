"""The documents: sizes, links, and commands and flags that exist."""

import re
import tomllib

import numpy as np
import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

import corruptions
from tests.pages import FENCE, HOWTO, LINK, PAGES, PROGRAMS, ROOT, check_command, commands, source_of, text_of
from tests.refusing import refuses


def test_readme_is_short():
    assert len((ROOT / "README.md").read_text().split()) <= 900


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_named_files_exist(page):
    text, rooms = page.read_text(), "|".join(path.name for path in ROOT.iterdir() if path.is_dir())
    targets = [link["target"].partition("#")[0] for link in LINK.finditer(FENCE.sub("", text))]
    linked = [page.parent / target for target in targets if target and not re.match(r"[a-z]+:", target)]
    named = [ROOT / name for name in re.findall(rf"`((?:{rooms})/[\w/.-]+\.\w+)`", text)]
    made_by_the_site = ROOT / "docs/reference/list.md"
    missing = [path for path in linked + named if not path.exists() and path.resolve() != made_by_the_site]
    assert not missing, f"{page.name} names {missing}"


@pytest.mark.parametrize("page", PAGES + PROGRAMS, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_and_their_flags_exist(page):
    for command in commands(text_of(page)):
        check_command(command, page)


def test_the_readme_counts_the_registered_corruptions():
    # A module that another test imports may have registered more.
    ours = {"imagenet_c", "noc", "cbar", "laion_c", "optics", "optics_release", "camera"}
    number = sum(name.partition("/")[0] in ours for name in corruptions.names())
    assert f"| {number} corruptions: LAION-C, lenses, cameras too |" in (ROOT / "README.md").read_text()


def test_every_benchmark_has_a_gallery_on_the_site():
    text = (ROOT / "docs/howto/corrupt.md").read_text()
    parts = {"imagenet_noc", "imagenet_c_bar", "cifar10_c_bar"}  # shown in the galleries of the candidates
    known = [name for name in corruptions.benchmarks() if (ROOT / f"docs/images/{name}.png").exists()]
    assert len(known) == 11 and not parts & set(known)
    for name in known:
        assert f"../images/{name}.png" in text, name


def test_recipes_have_ten_lines_of_code_at_most():
    for page in HOWTO:
        for block in FENCE.finditer(page.read_text()):
            lines = [line for line in block["body"].splitlines() if not line.lstrip().startswith("#")]
            assert len(lines) <= 10, f"{page.name}: {block['body']}"


def test_howto_names_every_command():
    shown = {source_of(command) for page in HOWTO for command in commands(page.read_text())}
    for source in [*ROOT.glob("*.py"), *(p for p in (ROOT / "tools").glob("[a-z]*.py"))]:
        assert source in shown, f"docs/howto/ does not show {source.relative_to(ROOT)}"


def test_a_broken_link_fails_the_site(tmp_path, monkeypatch, caplog):
    """Two pages with the site's settings and hooks; `make docs` builds the whole site."""
    (tmp_path / "docs").mkdir()
    page = "# Here\n\n[there](two.md#task) [ours](../tests/docs_test.py) CLONE_ADDRESS HOME_PAGE\n"
    (tmp_path / "docs/index.md").write_text(page)
    (tmp_path / "docs/two.md").write_text("# There\n\n## Task\n")
    folders = {"docs_dir": str(tmp_path / "docs"), "site_dir": str(tmp_path / "site")}
    smaller = {"plugins": [], "extra_css": [], "theme": "mkdocs", "strict": True}
    smaller["nav"] = ["index.md", "two.md", "reference/list.md"]
    config = load_config(str(ROOT / "mkdocs.yml"), **folders, **smaller)
    (hooks,) = config.hooks.values()
    monkeypatch.setattr(hooks, "OUTSIDE", {})
    monkeypatch.setattr(hooks, "thumbnails", dict)
    monkeypatch.setattr(hooks, "ROOT", tmp_path)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/docs_test.py").touch()
    build(config)
    for address in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"].values():
        assert address in (tmp_path / "site/index.html").read_text()
        assert not any(address in path.read_text() for path in [*PAGES, ROOT / "mkdocs.yml", ROOT / "CITATION.cff"])
    (tmp_path / "docs/index.md").write_text(f"{page}[nowhere](two.md#no-such-task) [gone](../tests/no_such_test.py)\n")
    refuses(lambda: build(config), "2 warnings", kind=Abort)
    assert "no-such-task" in caplog.text and "no_such_test" in caplog.text


def test_the_list_of_corruptions_shows_them(tmp_path):
    """The clean pictures of a gallery are equal where the cells are cut at their places."""
    config = load_config(str(ROOT / "mkdocs.yml"), plugins=[])
    (hooks,) = config.hooks.values()
    for benchmark in hooks.GALLERIES:
        clean = [np.asarray(first) for first, _ in hooks.cells_of(benchmark).values()]
        assert all((picture == clean[0]).all() for picture in clean) and clean[0].std() > 30, benchmark
    shown = hooks.thumbnails()
    assert set(corruptions.names()) - set(shown) <= {"noc/arlequin", "camera/snow_bgr"}
    assert all(
        (np.asarray(shown[name]) != clean[0]).any() for name in ("imagenet_c/fog", "noc/border", "laion_c/mosaic")
    )
    page = hooks.list_of_corruptions()
    assert page.count('<img src="thumbnails/') == len(set(corruptions.names()) & set(shown))
