"""The one way out: every HTTP call to an address that somebody gives is made from here."""
