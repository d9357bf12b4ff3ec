"""Operations: what people do to an installation: pause, roll back, redeploy, back up, move, wait.

Reading belongs to `diagnosis`, and nothing here prints. `cli` and `runtime` import it; it imports
`extras`, `registration`, `installation`, the features and what is below.
"""
