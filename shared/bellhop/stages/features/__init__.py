"""What profiles bring to clusters, a folder for each sort of it.

A folder holds all that is known of its sort: the steps and the one pure place where they are
planned, and who carries them out. `deployer.py` knows features by `feature.py` alone, and no
feature knows another.
"""
