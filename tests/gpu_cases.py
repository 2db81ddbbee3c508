"""What is held of a training run on a pretend GPU, in the quick tests and in tests/deep."""

from pathlib import Path

from on_stand_in import STEPS, Outcome

# What may make the host wait between two steps: a report, validation, a checkpoint, and the plan of the steps.
BETWEEN_STEPS = {"_report", "_validate", "_save", "_plan_steps"}
LOOK_EVERY = 4  # steps of a search between looks at what is done
READS = 4  # tensors that the results of a search are read from


def waits_in_steps(outcome: Outcome) -> dict[str, int]:
    """Return what makes the host wait inside a training step, by place; nothing should."""
    found = dict(outcome.count("train_step", waits=True))
    for event in outcome.events:
        names = {place.split(":")[1] for place in event["stack"]}
        if event["waits"] and "_do_step" in names and not names & BETWEEN_STEPS:
            found[event["stack"][-1]] = event["times"]
    return found


def copies_per_step(outcome: Outcome, steps: int) -> float:
    """Return how many copies to the device a training step makes."""
    return sum(outcome.count("train_step", kind="h2d").values()) / steps


def assert_searches_wait_seldom(outcome: Outcome) -> None:
    """Assert that the host waits for a search only where it looks at what is done, and to read the results."""
    steps, searches = outcome.calls[STEPS], count_searches(outcome)
    waits = outcome.count("_search", waits=True)
    assert searches
    assert sum(waits.values()) <= steps / LOOK_EVERY + READS * searches, (waits, steps, searches)


def count_searches(outcome: Outcome) -> int:
    """Return how many batches were searched: each begins with one copy of its sources."""
    return sum(outcome.count("_search", "_pad_sources", kind="h2d").values())


def largest_difference(run: Path, other: Path) -> float:
    """Return the largest difference between weights of two models, biases of attention's keys left out.

    Those add the same to all the scores of a query, which changes nothing: their gradient is rounding alone, and AdamW
    makes steps of full size of it.
    """
    from safetensors.torch import load_file

    one, two = load_file(run / "model.safetensors"), load_file(other / "model.safetensors")
    assert one.keys() == two.keys()
    differences = []
    for name, weight in one.items():
        parts = list((weight - two[name]).abs().chunk(3))
        differences += [parts[0], parts[2]] if name.endswith("qkv.bias") else parts
    return max(float(part.max()) for part in differences)
