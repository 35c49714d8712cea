"""The version of poly: the package's, and that of the engine in tuning records."""

__version__ = "0.1.0"
