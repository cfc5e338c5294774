"""Whitening: the first convolution's filters, and what they make of pictures."""

import torch
import torch.nn.functional as F

from spikformer.data import Loader
from spikformer.training.start import whiten


def test_filters_come_in_pairs_and_decorrelate(make_trainer, digits) -> None:
    model = make_trainer().model
    conv = model.stem.stages[0].conv
    before = conv.weight.clone()
    whiten(model, digits)
    pairs = min(len(conv.weight), 2 * conv.weight[0].numel()) // 2
    assert torch.equal(conv.weight[0 : 2 * pairs : 2], -conv.weight[1 : 2 * pairs : 2])
    assert torch.equal(conv.weight[2 * pairs :], before[2 * pairs :])
    (batch,) = Loader(digits, "train", 128, training=False).epoch(0)
    responses = F.conv2d(digits.prepare(batch.samples), conv.weight[0 : 2 * pairs : 2])
    covariance = torch.cov(responses.transpose(0, 1).flatten(1))
    assert covariance.diagonal().max() < 1.001
    assert covariance.diagonal()[0] > 0.99  # the largest eigenvalue is far above the floor
    assert (covariance - covariance.diagonal().diag()).abs().max() < 0.01


def test_a_recipe_asks_for_it_once(make_trainer) -> None:
    plain, white = make_trainer(), make_trainer(whiten=True)
    for trainer in (plain, white):
        trainer.start()
    first, other = (trainer.model.stem.stages[0].conv.weight for trainer in (plain, white))
    assert not torch.equal(first, other)
    assert torch.equal(plain.model.head.weight, white.model.head.weight)
