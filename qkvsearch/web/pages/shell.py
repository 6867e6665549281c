"""The words that every page needs: the menu's help, errors, and the dialog for a token."""

from qkvsearch.lessons.messages import say


def words() -> dict[str, str]:
    """By the names that the scripts know them by; these fill in their {names} themselves."""
    return {
        "help": say("Keys on this page"),
        "helpSearch": say("go to the box"),
        "helpMove": say("from one result to the next"),
        "helpOpen": say("open or close the reasons"),
        "helpMenu": say("to the page of this number"),
        "helpHelp": say("this list"),
        "helpEscape": say("close, or back to the box"),
        "close": say("Close"),
        "offline": say("The server cannot be reached. It may have been stopped."),
        "token": say("This server asks for its token"),
        "tokenField": say("Token"),
        "tokenUse": say("Use it"),
        "tokenWrong": say("The server does not take the token that was given."),
        "tokenWhy": say("It stays in this tab and is forgotten when the tab is closed."),
        "busy": say("The server is busy; trying again."),
        "loading": say("Loading…"),
        "failed": say("That did not work: {detail}"),
    }
