"""Train the networks of docs/seeing.md whose attention is masks, on digits: each in a minute or two.

python docs/pictures/train.py
"""

from __future__ import annotations

import spikformer as sf
from spikformer.config import NetworkConfig, QKFormerConfig, SpikeDrivenConfig

NETWORKS: dict[str, NetworkConfig] = {
    "spike_driven": SpikeDrivenConfig(
        image_size=(8, 8), in_channels=1, depth=2, embed_dim=64, num_heads=4, pool_stages=(False, True)
    ),
    "qkformer": QKFormerConfig(image_size=(8, 8), in_channels=1, embed_dim=64, num_heads=4),
}


def main() -> None:
    for name, config in NETWORKS.items():
        output = f"runs/pictures/{name}_digits"
        sf.train("spikformer_tiny_digits", model=config, output=output, overwrite=True, epochs=6, threads=1)


if __name__ == "__main__":
    main()
