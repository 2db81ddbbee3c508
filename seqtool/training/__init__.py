"""Loss, schedule, step, checkpoints, workers, progress, and the trainer that puts them together."""
