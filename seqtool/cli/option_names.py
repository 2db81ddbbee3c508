"""How the command line writes the parameters that messages of the library name."""

import re

from seqtool.errors import PARAMETER

# An option has the name of its parameter, with these exceptions.
OTHER_NAMES = {
    "banned": "--ban",
    "config_file": "--config",
    "model": "-m",
    "out": "-o",
    "overrides": "--set",
    "prefixes": "--prefix",
    "required": "--require",
    "start_from": "--from",
}


def with_options(message: str) -> str:
    """Return a message with `beam` written as --beam, `engine='torch'` as --engine torch, `sample=True` as --sample."""
    return PARAMETER.sub(_write_option, message)


def _write_option(parameter: re.Match[str]) -> str:
    name, value = parameter.groups()
    option = OTHER_NAMES.get(name, "--" + name.replace("_", "-"))
    return option if value in (None, "True") else option + " " + value.strip("'\"")
