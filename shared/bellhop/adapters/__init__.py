"""The world behind the ports, one folder a technology; the folders know nothing of each other."""
