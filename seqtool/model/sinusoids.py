"""The paper's encodings of positions (Vaswani et al. 2017), as numbers: the same table here and in every export."""

import numpy as np
from numpy.typing import NDArray


def sinusoids(n_positions: int, width: int) -> NDArray[np.float32]:
    """Return (positions, width), sin on even and cos on odd places, wavelengths from 2 pi to 20000 pi.

    Angles are computed in float64: in float32 they are off by 3e-5 at position 500.
    """
    rates = 10000.0 ** (np.arange(0, width, 2, dtype=np.float64) / width)
    angles = np.arange(n_positions, dtype=np.float64)[:, None] / rates
    return np.stack((np.sin(angles), np.cos(angles)), axis=-1).reshape(n_positions, width).astype(np.float32)
