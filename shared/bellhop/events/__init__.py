"""Events: from an object to matches, aggregations and reports, with the guard of their deletions.

Nothing here calls a cluster, except access reviews, or renders a profile. Other features import
`events.records` only; it imports `rendering`, `catalog`, `clusters`, `api`, `state` and below.
"""
