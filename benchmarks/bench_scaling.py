"""What one training iteration of the ImageNet models takes: memory by batch size, and multiply-accumulates.

    python benchmarks/bench_scaling.py             about two minutes
    python benchmarks/bench_scaling.py --quick     a CIFAR model instead, in seconds

On a CPU, AdamW, random images of the preset's size. Each case has a process of its own, so that its peak memory is its
own; what one more sample costs is the difference between two batch sizes, divided by the samples between them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time

MODELS = ("spikformer_8_384_imagenet", "spikformer_8_512_imagenet", "spikformer_8_768_imagenet")
QUICK = ("spikformer_4_384_cifar10",)
BATCHES, QUICK_BATCHES = (1, 4), (4, 16)  # a CIFAR sample is small beside what libraries allocate once
PRECISIONS = ("float32", "bfloat16")
RECIPE_SHARE = 32  # samples of the recipe's 256 on each of 8 devices


def peak_gigabytes(name: str, batch_size: int, precision: str) -> float:
    """Of one step, in this process."""
    import torch

    import spikformer as sf

    model = sf.create_model(name)
    optimiser = torch.optim.AdamW(model.parameters())
    images = torch.randn(batch_size, model.config.in_channels, *(model.config.image_size or ()))
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
        logits = model(images)
    logits.float().sum().backward()
    optimiser.step()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def gigamacs(name: str) -> float:
    """Of a forward pass, by torch's FLOP counter, on shapes alone."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    import spikformer as sf

    with torch.device("meta"):
        model = sf.create_model(name)
        with FlopCounterMode(display=False) as counter:
            model(torch.empty(1, model.config.in_channels, *(model.config.image_size or ())))
    return counter.get_total_flops() / 2e9


def in_its_own_process(name: str, batch_size: int, precision: str) -> float:
    command = [sys.executable, __file__, "--case", name, str(batch_size), precision]
    # With AMX, some builds of oneDNN fault (tests/conftest.py); memory is all that is measured, so nothing needs it.
    environment = {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_FP16", **os.environ}
    return float(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a CIFAR model instead, in seconds")
    parser.add_argument("--case", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case:
        name, batch_size, precision = arguments.case
        print(peak_gigabytes(name, int(batch_size), precision))
        return
    print(f"one training iteration on a CPU, {platform.machine()}, {time.strftime('%Y-%m-%d')}")
    small, large = QUICK_BATCHES if arguments.quick else BATCHES
    columns = f"{f'batch {small}':>10}{f'batch {large}':>10}{'a sample':>10}{f'{RECIPE_SHARE} of them':>12}"
    print(f"{'':28}{'':10}{'GMAC':>8}{columns}")
    rows = []
    for name in QUICK if arguments.quick else MODELS:
        for precision in PRECISIONS:
            fewer, more = (in_its_own_process(name, batch_size, precision) for batch_size in (small, large))
            sample = (more - fewer) / (large - small)
            row = {"model": name, "precision": precision, "gmacs_forward": gigamacs(name)}
            row |= {f"batch_{small}_gb": fewer, f"batch_{large}_gb": more, "sample_gb": sample}
            rows.append(row)
            print(
                f"{name:28}{precision:10}{row['gmacs_forward']:8.1f}{fewer:7.2f} GB{more:7.2f} GB{sample:7.2f} GB"
                f"{fewer + (RECIPE_SHARE - small) * sample:9.0f} GB",
                flush=True,
            )
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
