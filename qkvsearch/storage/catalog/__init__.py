"""The catalog on disk: written once a segment, looked up in all segments as one."""
