"""What things are: frozen types of the kinds users write and of the records we keep.

No I/O and no decisions belong here.
"""
