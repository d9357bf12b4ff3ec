"""Notifications of ClusterPromotions to people and programs, by ClusterHealthCheck's Secrets."""
