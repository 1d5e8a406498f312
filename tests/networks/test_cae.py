"""The paper's autoencoder, layer by layer."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from denspu.encoders.cae import ConvAutoencoder


def layers(module, kind):
    return [layer for layer in module.modules() if isinstance(layer, kind)]


def test_latent_has_512_values_for_32_pixels():
    assert ConvAutoencoder().encode(torch.zeros(2, 3, 32, 32)).shape == (2, 512)


def test_encoder_is_the_papers():
    encoder = ConvAutoencoder().encoder
    convolutions = layers(encoder, nn.Conv2d)
    assert [c.out_channels for c in convolutions] == [64, 32, 8]
    assert {c.kernel_size for c in convolutions} == {(3, 3)}
    names = [type(layer).__name__ for layer in encoder]
    assert names == [
        "Conv2d", "ReLU", "MaxPool2d",
        "Conv2d", "ReLU", "MaxPool2d",
        "Conv2d", "ReLU",
    ]  # fmt: skip
    assert {pool.kernel_size for pool in layers(encoder, nn.MaxPool2d)} == {2}


def test_decoder_mirrors_it():
    decoder = ConvAutoencoder().decoder
    assert [d.out_channels for d in layers(decoder, nn.ConvTranspose2d)] == [8, 32, 64]
    assert {u.scale_factor for u in layers(decoder, nn.Upsample)} == {2.0}
    assert len(layers(decoder, nn.Upsample)) == 2
    assert isinstance(decoder[-1], nn.Sigmoid)
    assert (decoder[-2].in_channels, decoder[-2].out_channels) == (64, 3)


@pytest.mark.parametrize(("channels", "size"), [(1, 8), (3, 32)])
def test_reconstruction_has_the_shape_of_the_image_and_lies_in_0_1(channels, size):
    net = ConvAutoencoder(channels)
    x = torch.randn(2, channels, size, size, generator=torch.Generator()) * 50
    out = net(x)
    assert out.shape == x.shape
    assert out.min() >= 0
    assert out.max() <= 1
    assert out.std() > 0


def test_latent_is_what_the_decoder_sees():
    net = ConvAutoencoder()
    x = torch.rand(2, 3, 8, 8, generator=torch.Generator())
    assert torch.equal(net.decoder(net.encode(x).reshape(2, 8, 2, 2)), net(x))
