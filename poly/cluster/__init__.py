"""Tuning with the workers of a `dask.distributed` cluster, which build candidates and time them."""

from poly.cluster.crew import Call, Crew, connected
from poly.cluster.remote import ClusterMeasurer

__all__ = ["Call", "ClusterMeasurer", "Crew", "connected"]
