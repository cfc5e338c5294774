"""The energy of real networks, against sums taken by hand; constants, conventions and twins."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from tests.mistakes import field_error
from torch import Tensor

import spikformer as sf
from spikformer.analysis.energy import Constants, EnergyReport, Operations, audit, measure_energy
from spikformer.analysis.firing import measure_firing
from spikformer.analysis.operations import count_operations
from spikformer.analysis.specimens import frames_for, shrunk, specimen
from spikformer.models import Spikformer

TINY, EVENTS, TWIN = "spikformer_tiny_digits", "spikformer_tiny_digits_dvs", "transformer_4_384_cifar10"
CHOICES = list(product(("paper", "strict", "entrywise"), ("every_step", "once")))


def watched(model: Spikformer, x: Tensor) -> tuple[EnergyReport, dict[str, Tensor]]:
    """The report, and what each convolution and linear layer read."""
    read: dict[str, Tensor] = {}
    handles = [
        module.register_forward_pre_hook(lambda _module, given, name=name: read.update({name: given[0]}))
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Conv2d | torch.nn.Linear)
    ]
    report = measure_energy(model, [x])
    for handle in handles:
        handle.remove()
    return report, read


def energies(report: EnergyReport) -> list[float]:
    return [report.energy_mj(*choice) for choice in CHOICES]


@pytest.fixture(scope="module")
def digits() -> Spikformer:
    return specimen(shrunk(TINY))


@pytest.fixture(scope="module")
def report(digits: Spikformer) -> EnergyReport:
    return measure_energy(digits, [frames_for(digits.config, 5)])


@pytest.mark.parametrize("name", [TINY, EVENTS])
def test_every_weighted_layer_by_hand(name: str) -> None:
    model = specimen(shrunk(name))
    x = frames_for(model.config, 3)
    before = {layer.name: layer.macs for layer in count_operations(model)}
    report, read = watched(model, x)
    steps = model.config.time_steps
    layers = [layer for layer in report.layers if layer.kind != "attention"]
    assert [layer.name for layer in layers] == list(read)
    for layer in layers:
        entries, dense = read[layer.name], steps * before[layer.name]
        static = layer.name == "stem.stages.0.conv" and name == TINY
        mean, nonzero, ones = (part.double().mean().item() for part in (entries, entries != 0, entries == 1))
        binary = bool(((entries == 0) | (entries == 1)).all())
        for first_conv, times in (("every_step", dense), ("once", dense // steps if static else dense)):
            first = layer.name == "stem.stages.0.conv"
            expected = {
                "paper": (times, 0) if first else (0, mean * times),
                "strict": (0, nonzero * times) if binary else (times, 0),
                "entrywise": ((nonzero - ones) * times, ones * times),
            }
            for convention, operations in expected.items():
                found = layer.operations(convention, first_conv)
                assert found == pytest.approx(operations, rel=1e-9, abs=1e-6), (layer.name, convention, first_conv)
        assert (layer.binary, layer.num_steps, layer.macs) == (binary, steps, before[layer.name])
        assert layer.kind == ("conv" if "conv" in layer.name else "linear")


def test_a_total_is_the_sum_of_its_layers_at_the_energy_of_each_operation(report: EnergyReport) -> None:
    for choice in CHOICES:
        total = report.operations(*choice)
        by_layer = [layer.operations(*choice) for layer in report.layers]
        assert total == pytest.approx(tuple(np.sum(by_layer, axis=0)))
        assert report.energy_mj(*choice) == pytest.approx((4.6 * total.macs + 0.9 * total.acs) * 1e-12 * 1e3)
    assert len(set(energies(report))) == 6, "every convention has a meaning"
    assert report.operations() == report.operations("paper", "every_step")


def test_computing_the_first_convolution_once_saves_its_other_steps(report: EnergyReport, digits: Spikformer) -> None:
    macs = 6 * 8 * 9 * 32
    assert report.layers[0].macs == macs
    for convention in ("paper", "strict"):
        saved = report.energy_mj(convention) - report.energy_mj(convention, "once")
        assert saved == pytest.approx(3 * macs * 4.6e-9)
    nonzero = (frames_for(digits.config, 5) != 0).double().mean().item()
    saved = report.energy_mj("entrywise") - report.energy_mj("entrywise", "once")
    assert saved == pytest.approx(3 * macs * nonzero * 4.6e-9)


def test_event_frames_have_nothing_to_compute_once() -> None:
    model = specimen(shrunk(EVENTS, time_steps=3))
    for time_steps in (3, 5):
        frames = frames_for(model.config.override(time_steps=time_steps), 2)
        report = measure_energy(model, [frames])
        every, once = energies(report)[::2], energies(report)[1::2]
        assert every == once
        assert report.time_steps == time_steps
        assert report.operations("paper").macs == time_steps * report.layers[0].macs


def test_constants_are_arguments(digits: Spikformer, report: EnergyReport) -> None:
    firing = measure_firing(digits, [frames_for(digits.config, 5)])
    assert energies(audit(digits, firing)) == energies(report)
    free = [audit(digits, firing, Constants(*pair)) for pair in ((1.0, 0.0), (0.0, 1.0), (46.0, 9.0))]
    for choice in CHOICES:
        macs_only, acs_only, tenfold = (each.energy_mj(*choice) for each in free)
        assert macs_only == pytest.approx(report.operations(*choice).macs * 1e-9)
        assert acs_only == pytest.approx(report.operations(*choice).acs * 1e-9)
        assert tenfold == pytest.approx(10 * report.energy_mj(*choice))
    assert free[2].twin_energy_mj == pytest.approx(10 * report.twin_energy_mj)
    assert free[1].twin_energy_mj == 0
    measured = measure_energy(digits, [frames_for(digits.config, 5)], Constants(2.0, 3.0))
    assert measured.constants == Constants(2.0, 3.0)
    assert measured.energy_mj() == pytest.approx(sum(np.multiply(report.operations(), (2, 3))) * 1e-9)


@pytest.mark.parametrize("cost", [-1.0, float("nan"), float("inf")])
def test_impossible_constants_raise(cost: float) -> None:
    with field_error("mac_pj", cost):
        Constants(mac_pj=cost)
    with field_error("ac_pj", cost):
        Constants(ac_pj=cost)
    with field_error("membrane_pj", cost):
        Constants(membrane_pj=cost)


@pytest.mark.parametrize("attention", ["ssa", "softmax", "identity", "none"])
def test_the_twin_computes_the_same_layers_once_with_softmax(attention: str) -> None:
    config = shrunk(TINY, attention=attention, num_heads=8)
    model = specimen(config)
    report = measure_energy(model, [frames_for(config, 1)])
    twin = config.override(neuron="relu", time_steps=1)
    if attention != "none":
        twin = twin.override(attention="softmax_float_value")
    expected = sum(layer.macs for layer in count_operations(Spikformer(twin)))
    assert report.twin_macs == expected
    assert report.twin_energy_mj == pytest.approx(expected * 4.6e-9)


def test_a_conventional_network_is_its_own_twin() -> None:
    twin = specimen(shrunk(TWIN))
    report = measure_energy(twin, [frames_for(twin.config, 2)])
    assert report.operations("strict") == Operations(macs=report.twin_macs)
    assert report.energy_mj("strict") == pytest.approx(report.twin_energy_mj)
    paper = report.operations("paper")
    assert paper.acs == 0
    assert report.twin_macs - paper.macs == 2 * 12 * 12 * twin.config.embed_dim, "the paper counts one product of two"
    assert report.operations("entrywise").acs < 0.01 * report.twin_macs
    assert report.num_neurons == 0


def test_memory_is_a_word_for_every_operation_and_two_for_every_membrane(report: EnergyReport) -> None:
    def free(weight_pj: float, membrane_pj: float) -> EnergyReport:
        return replace(report, constants=Constants(weight_pj=weight_pj, membrane_pj=membrane_pj))

    sizes = {"stages.0": 6 * 8 * 32, "stages.1": 6 * 8 * 64, "position": 12 * 64}
    neurons = sum(sizes.values()) + 2 * 12 * (64 * 6 + 256)
    assert report.num_neurons == neurons
    for choice in CHOICES:
        operations = sum(report.operations(*choice))
        assert free(1.0, 0.0).memory_mj(*choice) == pytest.approx(operations * 1e-9)
        assert free(0.0, 1.0).memory_mj(*choice) == pytest.approx(2 * neurons * 4 * 1e-9)
        assert report.memory_mj(*choice) == pytest.approx((operations + 2 * neurons * 4) * 1e-8)
    assert free(3.0, 5.0).twin_memory_mj == pytest.approx(report.twin_macs * 3e-9)
    assert free(3.0, 5.0).energy_mj() == report.energy_mj(), "which does not count memory"


def test_it_is_a_mean_over_samples(digits: Spikformer, report: EnergyReport) -> None:
    x = frames_for(digits.config, 5)
    reported: list[int] = []

    def batches() -> Iterator[Tensor]:
        yield x[:2]
        yield x[2:]

    streamed = measure_energy(digits, batches(), on_batch=reported.append)
    assert reported == [2, 3]
    assert energies(streamed) == pytest.approx(energies(report))
    assert streamed.num_samples == report.num_samples == 5
    alone = [measure_energy(digits, [x[:1]]).energy_mj(), measure_energy(digits, [x[1:]]).energy_mj()]
    assert (alone[0] + 4 * alone[1]) / 5 == pytest.approx(report.energy_mj())
    assert alone[0] != pytest.approx(alone[1], rel=1e-6)


def test_a_silent_network_still_sees_its_image() -> None:
    model = specimen(shrunk(TINY))
    torch.nn.init.constant_(model.stem.stages[0].norm.bias, -100.0)
    for layer in (model.stem.stages[1], model.stem.position):
        torch.nn.init.constant_(layer.norm.bias, -100.0)
    report = measure_energy(model, [frames_for(model.config, 1)])
    silent = [layer for layer in report.layers[1:4] if layer.kind != "attention"]
    assert [sum(layer.operations(*choice)) for layer in silent for choice in CHOICES] == [0] * 18


def test_an_open_size_is_taken_from_the_batches() -> None:
    config = shrunk(TINY)
    model = specimen(config)
    unsized = specimen(config.override(image_size=None))
    unsized.load_state_dict(model.state_dict())
    x = frames_for(config, 2)
    assert energies(measure_energy(unsized, [x])) == energies(measure_energy(model, [x]))


def test_plain_data_say_the_same(report: EnergyReport) -> None:
    reported = json.loads(json.dumps(report.to_dict()))
    assert reported["num_samples"] == 5
    assert reported["time_steps"] == 4
    assert reported["constants"] == {"mac_pj": 4.6, "ac_pj": 0.9, "weight_pj": 10.0, "membrane_pj": 10.0}
    assert (reported["runtime"], reported["attention_order"]) == ("torch", "query_key_first")
    assert reported["twin"] == {"macs": report.twin_macs, "energy_mj": report.twin_energy_mj}
    for convention, first_conv in CHOICES:
        assert reported["energy_mj"][convention][first_conv] == report.energy_mj(convention, first_conv)
        assert reported["operations"][convention][first_conv] == report.operations(convention, first_conv)._asdict()
        by_layer = sum(layer["energy_pj"][convention][first_conv] for layer in reported["layers"])
        assert by_layer * 1e-9 == pytest.approx(report.energy_mj(convention, first_conv))
    assert [layer["name"] for layer in reported["layers"]] == [layer.name for layer in report.layers]
    keys = {"name", "kind", "macs", "num_steps", "mean_input", "density", "binary", "energy_pj"}
    assert all(layer.keys() == keys for layer in reported["layers"])


def test_a_layer_it_does_not_know_is_an_error() -> None:
    model = specimen(shrunk(TINY))
    model.blocks[0].mlp.extra = torch.nn.Conv1d(2, 2, 1).double()
    with field_error("blocks.0.mlp.extra", "Conv1d"):
        measure_energy(model, [frames_for(model.config, 1)])


def test_nothing_to_measure() -> None:
    with field_error("batches"):
        measure_energy(specimen(shrunk(TINY)), [])


def test_it_has_a_public_name(report: EnergyReport) -> None:
    assert sf.measure_energy is measure_energy
    assert replace(report, constants=Constants(0, 0)).energy_mj() == 0


@pytest.mark.parametrize("join", ["add", "and", "iand"])
def test_a_network_without_attention_is_counted_layer_by_layer(join: str) -> None:
    """Sums of spikes are integers, which `strict` multiplies; products of spikes are spikes, which it adds."""
    model = specimen(shrunk("sew_wide_7b_net_cifar10dvs", join=join))
    report = sf.measure_energy(model, [frames_for(model.config, batch_size=2)])
    first, *others, head = report.layers
    assert report.attention_order is None
    assert (first.name, head.name) == ("layers.0.conv", "head")
    assert first.operations("paper") == (4 * first.macs, 0)
    assert all(layer.operations("paper").macs == 0 for layer in others)
    reads_sums = {layer.name for layer in others if layer.operations("strict").macs}
    after_joins = {f"layers.{layer}.layers.0.conv" for layer in (3,)} | {"layers.5.conv"}
    assert reads_sums == (after_joins if join == "add" else set())
