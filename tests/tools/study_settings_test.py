"""Studies refuse settings that the names of their models would not tell."""

import pytest

import overlap
from projects.structural import enhancement_study
from tests.training import tiny
from tools import cbar, scheme_study
from training import study


@pytest.mark.parametrize("run", [overlap.run, enhancement_study.run, scheme_study.run, cbar.search])
@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("train", "enhance", "clahe"),
        ("train", "stability_weight", 0.05),
        ("train", "stability_noise", 0.05),
        ("train", "mixup", True),
        ("train", "frozen", "backbone"),
        ("study.finetune", "enhance", "nlm"),
    ],
)
def test_what_no_name_tells_is_refused_before_anything_is_written(run, section, key, value, tmp_path, monkeypatch):
    monkeypatch.setattr(study, "load_dataset", lambda *given, **options: pytest.fail("images were loaded first"))
    config = tiny.config()
    config.study.update(
        {"corruptions": ("noc/border", "noc/hue"), "schemes": ("standard", "augmix+jsd"), "enhancements": ("clahe",)}
    )
    config.search.seeds = (1,)
    recipe = config.train if section == "train" else config.study.finetune
    with config.unlocked():
        recipe[key] = value
    with pytest.raises(ValueError, match=rf"expected config\.{section}\.{key} .* in a study, found {value!r}"):
        run(config, tmp_path / "work")
    assert not (tmp_path / "work").exists()
