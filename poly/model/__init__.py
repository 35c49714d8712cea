"""The cost model: predicts the time of a schedule from its integer sets and the machine's caches and rates."""

from poly.model.choice import ASSUMED_STRIDE, Choice, tile_shape, tile_shapes
from poly.model.core import Caches

__all__ = ["ASSUMED_STRIDE", "Caches", "Choice", "tile_shape", "tile_shapes"]
