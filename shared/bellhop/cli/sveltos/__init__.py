"""From the objects of a Sveltos management cluster to a folder that Bellhop applies.

Only `commands.import_` imports it.
"""
