"""How Hypothesis runs: repeatable by default, far longer with `--hypothesis-profile=thorough`."""

from hypothesis import HealthCheck, settings

# Whole rows are large examples, and a busy machine is no defect.
CHECKS = (HealthCheck.too_slow, HealthCheck.data_too_large)

settings.register_profile(
    "ci", derandomize=True, deadline=None, max_examples=100, suppress_health_check=CHECKS
)
settings.register_profile(
    "thorough", deadline=None, max_examples=10_000, suppress_health_check=CHECKS
)
settings.load_profile("ci")
