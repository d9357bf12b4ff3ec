"""Installation: the handle that use cases get, with its records, queues and publisher.

No use case belongs here. `registration`, `operations`, `diagnosis`, `extras`, `runtime` and `cli`
import it; it imports the features and what is below.
"""
