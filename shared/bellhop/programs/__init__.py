"""Programs that others wrote: where they are found, how they are downloaded, and how they run."""
