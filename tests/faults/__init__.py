"""What may go wrong around a workspace, done to it on purpose: `make faults SEED=1`."""
