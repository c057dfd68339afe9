"""Is the instrument right? Planted truth, measured as any model is, and held against what was planted."""

from truegap.instrument.check import RESULT, check_instrument
from truegap.instrument.plan import FULL, LITE, PROFILES, Profile, profile
from truegap.instrument.records import Check, Line

__all__ = ["FULL", "LITE", "PROFILES", "RESULT", "Check", "Line", "Profile", "check_instrument", "profile"]
