"""Files and other sources of tables: any of them to rows of text cells."""
