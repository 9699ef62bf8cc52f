"""Networks from settings, stored and read back."""

import json
from pathlib import Path

import pytest
import torch

from seqlm.core.errors import DataError
from seqlm.rnn.building import build_network, load_network, save_network
from small_runs import config

CPU = torch.device("cpu")


def test_weights_come_back_and_changed_files_are_refused(tmp_path: Path) -> None:
    settings = config(model="gru", embedding="learned", tie_weights=True)
    made = build_network(settings, 6, settings.seed).weights()
    save_network(tmp_path, "x", settings, 6, made)
    loaded = load_network(tmp_path, "x", CPU).weights()
    assert all(torch.equal(loaded[name], made[name]) for name in made)
    with pytest.raises(DataError, match="holds the run 'x', not 'y'"):
        load_network(tmp_path, "y", CPU)
    path = tmp_path / "weights.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match="does not match the SHA-256"):
        load_network(tmp_path, "x", CPU)
    description = json.loads((tmp_path / "model.json").read_text())
    (tmp_path / "model.json").write_text(json.dumps(description | {"format": 1}))
    with pytest.raises(DataError, match="not of format 2"):
        load_network(tmp_path, "x", CPU)
