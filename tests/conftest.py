"""What holds for every test."""

from hypothesis import settings

# No test may pass or fail by how busy the machine is.
settings.register_profile("speedbench", deadline=None)
settings.load_profile("speedbench")
