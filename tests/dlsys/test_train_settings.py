"""What a training is told: schedules of the rate, and settings that are wrong, lost or others."""

import json
import math

import numpy as np
import pytest
from test_train import QUICK, SETTINGS

from dlsys import ops
from dlsys.gradcheck import evaluate
from dlsys.train import Settings, SettingsError
from dlsys.train import __main__ as command

RATES = {
    "constant": [1, 1, 1, 1],
    "step": [1, 0.1, 0.01, 0.001],
    "cosine": [1, 0.75, 0.25, 0],
    "exponential": [1, 0.91**2, 0.91**4, 0.91**6],
}


@pytest.mark.parametrize("name", RATES)
def test_the_rate_follows_its_schedule(name):
    counter = ops.variable("counter")
    rate = Settings(schedule=name, epochs=6, rate=2.0).rates(10)(counter)
    for step, wanted in zip((0, 20, 40, 60), RATES[name], strict=True):
        (got,) = evaluate([rate], {counter: step})
        np.testing.assert_allclose(got, 2 * wanted, atol=1e-12)
    warmed = Settings(schedule=name, epochs=6, rate=2.0, warm_up=4).rates(10)(counter)
    (got, same) = (evaluate([each], {counter: 3})[0] for each in (warmed, rate))
    np.testing.assert_allclose(got, same * 0.75)


def test_other_settings_do_not_go_on_with_a_run(tmp_path):
    kept = tmp_path / "settings.json"
    SETTINGS.keep(kept)
    SETTINGS.compare(kept)
    with pytest.raises(SettingsError, match=r"rate is 0\.3, was 0\.02; hint: another --output"):
        Settings(**{**vars(SETTINGS), "rate": 0.3}).compare(kept)
    kept.write_text(json.dumps({**vars(SETTINGS), "nesterov": True}))
    with pytest.raises(SettingsError, match="another version of dlsys, by nesterov; hint"):
        SETTINGS.compare(kept)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{", "is damaged: Expecting"),
        (b"\xff\xfe", "is damaged"),
        (b"", "is damaged"),
        (b"[]", "holds no settings"),
        (None, "is missing"),
    ],
)
def test_damaged_settings_of_a_run_are_named_with_what_to_do(tmp_path, capsys, content, words):
    asked = [*QUICK, "--output", str(tmp_path)]
    assert command.main(asked) == 0
    (tmp_path / "settings.json").unlink()
    if content is not None:
        (tmp_path / "settings.json").write_bytes(content)
    assert command.main([*asked, "--resume"]) == 2
    said = capsys.readouterr().err
    assert "settings.json tells how the run began, and it " + words in said
    assert "hint: another --output" in said


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            (n, v)
            for n in ("rate", "decay", "momentum")
            for v in (math.nan, math.inf, -0.1, "0.1", None)
        ),
        ("momentum", 1.0),
        *((n, v) for n in ("epochs", "batch", "warm_up", "seed") for v in (-1, 2.5, "3")),
        ("epochs", 0), ("epochs", 10**14), ("batch", 0), ("schedule", "fast"),
    ],
)  # fmt: skip
def test_settings_that_mean_nothing_are_refused_with_what_would(name, value):
    with pytest.raises(SettingsError, match=rf"^(the )?{name} is .*; hint: .*\w"):
        Settings(**{name: value})
