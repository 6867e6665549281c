"""The same work elsewhere: on engines that several machines carry. Each comes with an extra."""
