"""docs/extending.md is true: its blocks run in order, and what they register works from outside the package."""

import re
import subprocess
import sys
from pathlib import Path

GUIDE = (Path(__file__).parent.parent / "docs" / "extending.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)

CHECKS = """
from spikformer.analysis.specimens import frames_for, specimen
from spikformer.runs.checks import batch_invariance, streaming
from spikformer.models import build_model
from spikformer.presets import get_preset

tiny = get_preset("spikformer_tiny_digits").config.override(depth=1)
configs = {
    "adaptive": tiny.override(neuron="adaptive_lif"),
    "rational": tiny.override(neuron="rational_lif"),
    "surrogate": tiny.override(neuron="fast_sigmoid_lif"),
    "channel": tiny.override(attention="channel"),
    "plain": get_preset("plain_digits").config,
}
for name, config in configs.items():
    network = specimen(config)
    for check in streaming(name, network) + batch_invariance(name, network):
        assert check.holds, check
    path = f"{name}.safetensors"
    sf.save(network, path)
    loaded = sf.load(path)
    assert type(loaded) is type(network) and loaded.config == config
    x = frames_for(config, batch_size=2)
    assert torch.equal(loaded(x), network(x))
    assert sf.measure_energy(loaded, [x]).to_dict()
    assert sf.summary(loaded).num_parameters == sum(p.numel() for p in loaded.parameters())
    if name == "plain":
        engine = sf.compile_engine(loaded)
        assert abs(engine(x) - network(x).detach().numpy()).max() < 1e-5
        continue
    try:
        sf.compile_engine(loaded)
    except ValueError:
        continue
    raise AssertionError(f"the engine cannot know {name}")
"""


def test_the_blocks_run_and_what_they_register_works(tmp_path: Path) -> None:
    """In a process of its own, for what is registered stays."""
    code = "\n".join([*BLOCKS, CHECKS])
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert "layers.0.conv" in result.stdout
    assert len(BLOCKS) == 10
