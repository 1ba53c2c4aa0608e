"""What suites do about the settings of whoever runs them."""

import os


def forget_settings(*kept):
    """Takes CORDWOOD_… out of the environment, which hosts inherit, but for what is named."""
    for name in list(os.environ):
        if name.startswith("CORDWOOD_") and name not in kept:
            del os.environ[name]
