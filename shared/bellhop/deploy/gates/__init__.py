"""Gates of deploy: rollout, dependencies, transition, permissions and checks, a file for each.

A gate decides whether a profile may be deployed in a cluster now; it deploys nothing. `deploy`
imports them. A gate imports no other gate: checks run Jobs and query metrics from files of their
own, and the waiters in `dependencies` serve three gates until all share one table.
"""
