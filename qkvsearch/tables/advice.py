"""What errors about a table advise."""


def about_documents(file: str) -> str:
    """Return what an error about a table says of a text file, which may have been meant as a
    document; "" for other files.

    >>> about_documents("items.csv")
    ''
    """
    if not file.lower().endswith((".txt", ".txt.gz")):
        return ""
    return (
        ". A .txt file with names of columns is read as a table: to read it as a document, name "
        "its folder, or a pattern in quotes such as 'notes/*.txt'"
    )
