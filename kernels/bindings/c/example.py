"""What a picture shows, through the C library alone: python example.py LIBRARY ENGINE PICTURE.

Needs neither spikformer's package nor NumPy; Pillow decodes the picture.
"""

import ctypes
import sys
from ctypes import POINTER, byref, c_char_p, c_double, c_float, c_int, c_size_t, c_void_p
from typing import ClassVar

from PIL import Image


class Shape(ctypes.Structure):
    """As in spikformer.h."""

    _fields_: ClassVar = [
        (name, c_size_t) for name in ("channels", "height", "width", "patch_size", "time_steps", "num_classes")
    ]


class Preprocessing(ctypes.Structure):
    """As in spikformer.h."""

    _fields_: ClassVar = [
        ("input", c_int),
        *((name, c_size_t) for name in ("height", "width", "channels", "time_steps")),
        ("crop_ratio", c_double),
        ("resampling", c_int),
        ("mean", POINTER(c_float)),
        ("std", POINTER(c_float)),
    ]


def main(library: str, path: str, picture: str) -> str:
    """The name of the most likely class."""
    core = ctypes.CDLL(library)
    core.spikformer_last_error.restype = core.spikformer_class_name.restype = c_char_p

    def call(name: str, *arguments: object) -> None:
        if getattr(core, name)(*arguments) != 0:
            raise RuntimeError(core.spikformer_last_error().decode())

    engine, shape, seen = c_void_p(), Shape(), Preprocessing()
    call("spikformer_load_file", path.encode(), None, byref(engine))
    try:
        call("spikformer_get_shape", engine, byref(shape))
        call("spikformer_get_preprocessing", engine, byref(seen))
        image = Image.open(picture).convert("RGB" if seen.channels == 3 else "L")
        x = (c_float * (seen.channels * seen.height * seen.width))()
        logits = (c_float * shape.num_classes)()
        size = (c_size_t(image.height), c_size_t(image.width), c_size_t(len(image.getbands())))
        call("spikformer_prepare", engine, image.tobytes(), *size, x)
        size = (c_size_t(1), c_size_t(0), c_size_t(seen.height), c_size_t(seen.width))
        call("spikformer_run", engine, x, *size, logits, None)
        best = max(range(shape.num_classes), key=logits.__getitem__)
        name = core.spikformer_class_name(engine, c_size_t(best))
        return name.decode() if name else "unnamed"
    finally:
        core.spikformer_free(engine)


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
