"""Measure a run's weights and put them into the package, with a card that says so.

    python benchmarks/ship_weights.py runs/digits/last.safetensors digits --licence … --limits …

Run it on a quiet machine: the card has the engine's time. docs/weights.md has the command of every network.
"""

from __future__ import annotations

import argparse
import json

from spikformer.runs.shipping import ship
from spikformer.weights import FOLDER, SUFFIX


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", help="a run folder, or weights in it")
    parser.add_argument("name", help="of the network, as sf.load takes it")
    parser.add_argument("--data", help="folder with the data set's files; by default where the run found them")
    parser.add_argument("--licence", required=True)
    parser.add_argument("--limits", required=True, help="what the network is not for")
    parser.add_argument("--confidence", type=float, help="that `spikformer anytime` chose")
    parser.add_argument("--half", action="store_true", help="store float16, and measure the rounded weights")
    given = parser.parse_args()
    card = ship(
        given.weights,
        FOLDER / f"{given.name}{SUFFIX}",
        licence=given.licence,
        limits=given.limits,
        data=given.data,
        confidence=given.confidence,
        half=given.half,
    )
    print(json.dumps(card.to_dict(), indent=2))


if __name__ == "__main__":
    main()
