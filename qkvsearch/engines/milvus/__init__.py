"""Keys in Milvus: a collection for each segment of a build, named by the build that it came with.

Collections are written once and never changed, as segments are: whoever has a build open sees its
own, and what interrupted writers left is dropped by the next one.
"""
