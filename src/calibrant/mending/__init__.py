"""What does a stated confidence mean here? Maps with a promise, saved as plain data."""

from calibrant.core.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(
    __name__,
    {".estimator": ("Mend",), ".mend_map": ("MendMap", "load_mend")},
)
__all__ = ["Mend", "MendMap", "load_mend"]
