"""The entry points of the stage that is called ingest."""
