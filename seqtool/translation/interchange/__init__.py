"""Models made by other programs, turned into run directories."""
