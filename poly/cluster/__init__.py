"""Tuning with the workers of a `dask.distributed` cluster, which build candidates and time them."""

from poly.cluster.crew import Crew, WorkerCall, connected
from poly.cluster.remote import ClusterMeasurer

__all__ = ["ClusterMeasurer", "Crew", "WorkerCall", "connected"]
