"""Keys in Milvus: a collection for each segment of a build, named after the build that wrote it.

Collections are never changed, like segments: an open build keeps its own, and the next writer drops
those of interrupted writers.
"""
