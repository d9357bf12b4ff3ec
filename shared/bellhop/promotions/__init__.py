"""ClusterPromotions: releases, and the state machine that takes them through the stages.

The stages' profiles are rules of the `catalog`, rendered by `profiles` and deployed by `deploy` as
any other. Here are only the releases that freeze their inputs, and when a stage gets which.
`runtime`, `operations`, `diagnosis` and `cli` import it; it imports the packages below.
"""
