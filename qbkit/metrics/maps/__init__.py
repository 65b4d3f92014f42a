"""Many implementations in many networks: the cubes of sweeps."""
