"""The exit statuses of all commands. 0 says that the command did what was asked, and found nothing wrong."""

WRONG = 1
"""The work was done, and something is wrong: a result, a check, or the answer to a question was no."""

REFUSED = 2
"""The command cannot be done as it was asked: its options, a nest, a file, this machine."""

SLOWER = 3
"""A comparison found something that is slower than before."""

INTERRUPTED = 130
"""Ctrl-C ended the command, as for any program."""
