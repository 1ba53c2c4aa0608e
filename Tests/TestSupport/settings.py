"""How suites deal with the settings of their caller."""

import os


def forget_settings(*kept):
    """Removes CORDWOOD_… from the environment, which hosts inherit, except for those named."""
    for name in list(os.environ):
        if name.startswith("CORDWOOD_") and name not in kept:
            del os.environ[name]
