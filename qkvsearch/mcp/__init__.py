"""A server of the Model Context Protocol: agents search, recommend and ask why, over one engine.

The tools are plain functions from an engine and the arguments to an object (`tools.py`); they know
nothing of the protocol. `sdk_server.py` gives them to its official SDK, which is imported there and
in `over_stdio.py` alone. `web/mcp_route.py` has the same tools at `/mcp`.
"""
