"""The Helm charts: `bellhop` and `bellhop-forwarder`, packed with what other files define."""
