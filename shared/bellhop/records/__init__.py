"""The records of `bellhop.model.record` in the store: keys, encoding, sealing, claim checks.

Stages talk to `Records`; nothing above knows partitions, and nothing here decides.
"""

from bellhop.records.records import Records
from bellhop.records.sealing import Sealer
from bellhop.records.table import Kept

__all__ = ["Kept", "Records", "Sealer"]
