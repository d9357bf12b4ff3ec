"""Write the golden files of the command line again: `python -m tests.golden.cli`."""

from tests.golden.cli.files import write

write()
