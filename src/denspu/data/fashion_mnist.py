"""Fashion-MNIST: 70,000 grey 28×28 pictures of clothes and shoes in ten classes.

60,000 to train on and 10,000 to test with, 7,000 a class. By default the tops
(T-shirt, pullover, coat, shirt) are positive, as in Table 1 of the Dens-PU paper.

Source: https://github.com/zalandoresearch/fashion-mnist (H. Xiao, K. Rasul,
R. Vollgraf, 2017, arXiv:1708.07747). Licence: MIT, copyright 2017 Zalando SE.

The checksums are those of the decoded arrays, so that recompressed files pass.
"""

from __future__ import annotations

from pathlib import Path

from denspu.data._formats import read_idx
from denspu.data._spec import Arrays, Layout, Package, RemoteFile, Spec

_FILES = {
    "X_train": ("train-images-idx3-ubyte", 3),
    "y_train": ("train-labels-idx1-ubyte", 1),
    "X_test": ("t10k-images-idx3-ubyte", 3),
    "y_test": ("t10k-labels-idx1-ubyte", 1),
}


def _read(folder: Path) -> Arrays:
    return {
        part: read_idx(folder / name, ndim) for part, (name, ndim) in _FILES.items()
    }


SPEC = Spec(
    name="fashion-mnist",
    summary="70,000 grey pictures of clothes, 28×28; positive: tops",
    class_names=(
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    ),
    positive=(0, 2, 4, 6),
    licence="MIT (Zalando SE, 2017)",
    homepage="https://github.com/zalandoresearch/fashion-mnist",
    shapes={
        "X_train": (60_000, 28, 28),
        "y_train": (60_000,),
        "X_test": (10_000, 28, 28),
        "y_test": (10_000,),
    },
    sha256={
        "X_train": "2e487a6c89124f78f2d7521542223cafe96f7123c3ca13d447772ac6ecbb3012",
        "y_train": "657fbd221bfc9f4198cc14b5619cc33ec57c58dd0e47af4d99d6650759e869a7",
        "X_test": "c867c93ff95360594e8ec3287995350b824dd110b11595c0e13d5423f621867a",
        "y_test": "3d0e6c6ea990b53b6f8f500a41cac93881d981b315f84578b7d915342ade01e9",
    },
    layouts=(
        Layout(
            title="IDX files, plain or .gz",
            files=tuple(name for name, _ in _FILES.values()),
            read=_read,
            gzipped=True,
        ),
    ),
    mirrors=(
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    ),
    files=(
        RemoteFile("train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
        RemoteFile("train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe"),
        RemoteFile("t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79"),
        RemoteFile("t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310"),
    ),
    installed=Path("/usr/share/datasets/fashion-mnist"),
    package=Package("apt-get", "dataset-fashion-mnist"),
)
