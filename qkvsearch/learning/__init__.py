"""What a build learns about its own heads: their weights, and which scores are noise."""
