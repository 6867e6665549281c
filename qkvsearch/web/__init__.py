"""The server: pages and an API over one engine. Reads what is asked, calls the engine, renders."""
