"""Library of rendering, pure: from manifests and objects to the contents of profiles.

Templates, generators, references, patches, secrecy of Secrets' values, drift by managed fields.
No store, no queue, no cluster and no clock belong here. Every feature may import it; it imports
`catalog`, `clusters`, `api`, the engines and what is below.
"""
