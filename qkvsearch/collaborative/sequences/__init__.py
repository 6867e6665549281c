"""What comes next: self-attention over the order of a history."""
