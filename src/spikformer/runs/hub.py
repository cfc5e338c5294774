"""Hand a network on through the Hugging Face Hub: its weights, and a page that its card writes.

    sf.push_to_hub("runs/mine", "owner/name")        hf://owner/name@commit#sha256=…, which `sf.load` takes

Needs huggingface_hub, the extra `hub`, and a token that may write (`token=`, HF_TOKEN, or `hf auth login`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from spikformer.errors import FieldError
from spikformer.weights.hub import FILE_NAME, Address, hub_errors, hub_library

if TYPE_CHECKING:
    from spikformer.card import ModelCard, Result
    from spikformer.config import NetworkConfig
    from spikformer.models import SpikingNetwork

_LICENCE = re.compile(r"[a-z0-9][a-z0-9.+-]*")


def push_to_hub(
    model: SpikingNetwork | str | os.PathLike[str],
    repository: str,
    *,
    token: str | None = None,
    private: bool = False,
    message: str = "Weights and card",
) -> str:
    """Put a model, or what `sf.load` takes, into a repository owner/name, which is made if it is not there.

    One commit holds model.safetensors and README.md, the hub's model card with the results of ours; other files of the
    repository stay. Returns the address of exactly these weights.
    """
    from spikformer.models import load, save
    from spikformer.runs.trained import weights_path

    address = Address.parse(f"hf://{repository}")
    if address.repository != repository:
        raise FieldError("repository", f"repository must be owner/name, got {repository!r}.")
    library = hub_library()
    with TemporaryDirectory() as folder:
        path = Path(folder) / FILE_NAME
        network = load(weights_path(model)) if isinstance(model, str | os.PathLike) else model
        save(network, path)
        network = load(path)  # what others will get
        page = hub_page(network.card, network.config, repository).encode()
        files = {FILE_NAME: path.read_bytes(), "README.md": page}
    with hub_errors(address):
        api = library.HfApi(token=token)
        api.create_repo(repository, private=private, exist_ok=True)
        added = [library.CommitOperationAdd(name, content) for name, content in files.items()]
        commit = api.create_commit(repository, added, commit_message=message)
    return str(Address(repository, commit.oid, sha256(files[FILE_NAME]).hexdigest()))


def hub_page(card: ModelCard, config: NetworkConfig, repository: str) -> str:
    """README.md of a repository: the hub's metadata with a model-index, then the card in words."""
    library = hub_library()
    name = repository.partition("/")[2]
    metadata = library.ModelCardData(
        library_name="spikformer",
        pipeline_tag="image-classification",
        tags=["spiking-neural-network", card.architecture],
        datasets=[card.data_set] if card.data_set else None,
        model_name=name,
        eval_results=list(_entries(card)) or None,
        **_licence(card.licence),
    )
    seen = card.preprocessing
    size = "any size" if config.image_size is None else "×".join(map(str, config.image_size))
    facts = {
        "Architecture": f"{card.architecture}, T = {config.time_steps}",
        "Data": card.data_set,
        "Inputs": f"{'event frames' if seen is not None and seen.events else 'images'} of {size}",
        "Classes": ", ".join(card.class_names[:20]) + (" …" if len(card.class_names) > 20 else ""),
        "Recipe": card.recipe,
        "Licence": card.licence,
        "Limits": card.limits,
    }
    lines = [f"- **{word}**: {_text(value)}" for word, value in facts.items() if value]
    body = [
        "---",
        metadata.to_yaml(),
        "---",
        "",
        f"# {name}",
        "",
        "```python",
        "import spikformer as sf",
        "",
        f'model = sf.load("hf://{repository}")',
        "```",
        "",
        *lines,
        "",
        *_table(card.results),
    ]
    return "\n".join(body)


def _entries(card: ModelCard) -> Iterable[Any]:
    """The model-index: what was measured on the test split."""
    data = card.data_set or "unknown"
    for result in card.results:
        if result.split == "test":
            yield hub_library().EvalResult(
                task_type="image-classification",
                dataset_type=data,
                dataset_name=data,
                dataset_split=result.split,
                metric_type=result.metric,
                metric_value=result.value,
            )


def _licence(licence: str | None) -> dict[str, str]:
    """As the hub expects it: an identifier, or the name of another licence."""
    if licence is None:
        return {}
    identifier = licence.partition(";")[0].strip().lower()
    if _LICENCE.fullmatch(identifier):
        return {"license": identifier}
    return {"license": "other", "license_name": _text(licence)[:100]}


def _table(results: Iterable[Result]) -> list[str]:
    rows = [
        f"| {_text(each.metric)} | {_text(each.split)} | {each.value:g} | {each.date} | `{_text(each.command)}` "
        f"| {_text(each.machine or '')} |"
        for each in results
    ]
    if not rows:
        return []
    return ["| metric | split | value | date | command | machine |", "|---|---|---|---|---|---|", *rows, ""]


def _text(text: str) -> str:
    """On one line, with nothing that a table or HTML would take for its own."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("`", "'")
