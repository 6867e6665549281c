"""What a change did to the answers: the hits of two builds, or of two settings, side by side."""
