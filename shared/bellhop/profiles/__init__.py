"""Profiles: rendered from a report and its trigger, or from a user's own profile, and stored.

Name reservations, revisions and loops of triggers belong here; deploying a profile does not. Other
features import `profiles.records` only; it imports `rendering`, `catalog`, `clusters`, `api`,
`state` and what is below.
"""
