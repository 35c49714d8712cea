"""Files, the cache on disk, and processes."""
