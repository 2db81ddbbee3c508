"""All sentence patterns; importing this package registers them."""

from generator.patterns import (  # noqa: F401
    commands,
    coordination,
    descriptions,
    infinitives,
    objects,
    places,
    questions,
    relatives,
    statements,
    subordinates,
)
