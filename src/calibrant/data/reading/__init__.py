"""How any table is read: by the names of its columns, by what they hold, by how they relate."""

from calibrant.data.reading.record import FRACTION, PERCENT, Reading, joined_readings

__all__ = ["FRACTION", "PERCENT", "Reading", "joined_readings"]
