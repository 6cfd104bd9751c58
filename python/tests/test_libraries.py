"""Libraries that build on numpy compute within a limit what they compute without one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import tidemark

MIB = 1 << 20
Column = npt.NDArray[np.float64]


def of_scipy(data: Column) -> Column:
    """A spectrum, a filter, and a system of equations."""
    from scipy import fft, linalg, signal

    filtered = signal.sosfilt(signal.butter(4, 0.1, output="sos"), data)
    spectrum = np.abs(fft.rfft(filtered))
    matrix = data[: 600 * 600].reshape(600, 600) + 600 * np.eye(600)
    return np.concatenate([spectrum[:1000], linalg.solve(matrix, data[:600])])


def of_pandas(data: Column) -> Column:
    """Groups, a join, and moving sums."""
    import pandas as pd

    frame = pd.DataFrame({"key": (data * 1000).astype("i8"), "value": data})
    means = frame.groupby("key")["value"].mean().rename("mean").reset_index()
    joined = frame.merge(means, on="key", how="left")
    joined["rest"] = joined["value"] - joined["mean"]
    sums = joined["rest"].rolling(100).sum().dropna().to_numpy()
    return np.array(sums[::1000])


def of_scikit_learn(data: Column) -> Column:
    """Centres of clusters, and a regression."""
    from sklearn.cluster import KMeans
    from sklearn.linear_model import Ridge

    points = data[: data.size // 8 * 8].reshape(-1, 8)
    found = KMeans(4, n_init=1, max_iter=5, random_state=1).fit(points)
    fitted = Ridge().fit(points, points @ np.arange(8.0) + found.labels_)
    return np.concatenate([found.cluster_centers_.ravel(), fitted.coef_])


@pytest.mark.parametrize(
    ("library", "compute"),
    [("scipy", of_scipy), ("pandas", of_pandas), ("sklearn", of_scikit_learn)],
)
def test_results_are_those_without_a_limit(
    engine: tidemark.Engine, tmp_path: Path, library: str, compute: Callable[[Column], Column]
) -> None:
    pytest.importorskip(library)
    size = MIB // 2
    plain = compute(np.random.default_rng(5).random(size))
    with tidemark.memory_limit("1M", swap=tmp_path, swap_size="256M") as limit:
        limited = compute(np.random.default_rng(5).random(size))
        counted = limit.statistics()
    assert counted.page_outs > 1000 and counted.resident_bytes <= limit.memory
    # Threads of a library may add in another order.
    assert np.allclose(limited, plain, rtol=1e-9, atol=1e-12)
