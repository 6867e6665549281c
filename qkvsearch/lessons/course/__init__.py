"""The ten lessons, a file each."""
