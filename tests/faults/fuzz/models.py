"""Folders of models with files changed: an encoder that reads, or an error that names the file."""

import json
import shutil
from functools import cache
from pathlib import Path

from qkvsearch.text.encoders import pretrained
from tests.faults import fuzz


@cache
def model():
    """The folder of a random transformer of two layers that reads twelve tokens."""
    import tempfile

    from tests.text.test_transformer import write_folder

    return Path(write_folder(Path(tempfile.mkdtemp(prefix="faults-model-")) / "bert"))


def fuzz_models(trial):
    given = model()
    names = [str(file.relative_to(given)) for file in given.rglob("*") if file.is_file()]

    def make(chance):
        return chance.choice(names), chance

    def use(made):
        name, chance = made
        path = Path(shutil.copytree(given, trial.folder / f"m{trial.counts['inputs']}"))
        try:
            change(path / name, chance)
            encoder = pretrained(str(path))
            encoder.encode("deep sea water")
            encoder.attend("deep red")
        finally:
            shutil.rmtree(path)

    fuzz.inputs(trial, make, use, n=50)


def change(file, chance):
    content = file.read_bytes()
    if chance.random() < 0.05:
        return file.unlink()
    if file.suffix == ".json" and chance.random() < 0.7:
        changed = fuzz.changed_json(json.loads(content), chance)
        file.write_text(json.dumps(changed))
    elif file.suffix == ".safetensors" and chance.random() < 0.6:
        length = int.from_bytes(content[:8], "little")
        header = fuzz.changed_json(json.loads(content[8 : 8 + length]), chance)
        made = json.dumps(header).encode()
        size = len(made) if chance.random() < 0.9 else chance.choice([0, 2**40, len(made) - 1])
        file.write_bytes(size.to_bytes(8, "little") + made + content[8 + length :])
    else:
        roll = chance.random()
        file.write_bytes(fuzz.pickled() if roll < 0.05 else fuzz.changed_bytes(content, chance))
    return None
